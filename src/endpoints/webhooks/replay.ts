import { z } from 'zod';
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { allDead, type ReplayAsk } from '../../store/webhooks/replays.js';
import { botId } from '../../wire/fields.js';
import { boolean, integer, optional } from '../../wire/schema.js';
import { queuedCount } from '../../wire/webhook_results.js';

interface Given {
  readonly from_update_id?: number | undefined;
  readonly to_update_id?: number | undefined;
  readonly dead_letters?: boolean | undefined;
}

/** The requested range, or all dead letters. Errors: `parameter_required`, `parameter_wrong`. */
function askOf({ from_update_id: from, to_update_id: to, dead_letters }: Given): ReplayAsk {
  if (dead_letters && from === undefined && to === undefined) return allDead;
  if (from === undefined) return fail('parameter_required', { name: 'from_update_id' });
  if (to === undefined) return fail('parameter_required', { name: 'to_update_id' });
  if (to < from) return fail('parameter_wrong', { name: 'to_update_id', what: 'at least from_update_id' });
  return { from, to, delivered: !dead_letters, ofOwner: true };
}

const updateId = optional(integer().pipe(z.number().min(0, { error: 'an update_id' }).max(limits.id_max)));

/**
 * Replays to a webhook keep the `update_id`, so that receivers can drop duplicates. Replays to polling get a new one,
 * because polling offsets only grow.
 */
export const replayUpdates = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/webhook/replay',
  summary: `Delivers updates again under the same update_id: all dead letters, or a range of dead letters and the last ${limits.delivery_successes_kept} deliveries. At most ${limits.replay_max} a call.`,
  params: z.object({
    bot_id: botId,
    from_update_id: updateId.describe('First update of a range'),
    to_update_id: updateId.describe('Last update of the range'),
    dead_letters: optional(boolean).describe('Only dead letters; all of them without a range'),
  }),
  result: queuedCount,
  errors: ['bot_not_found', 'not_bot_owner'],
  handler: async ({ user, store }, { bot_id, ...given }) => {
    const bot = await store.bots.owned(user.id, bot_id);
    const { queued } = await store.replays.replay(bot.id, askOf(given));
    return { queued };
  },
});
