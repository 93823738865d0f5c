import { z } from 'zod';
import { routeNamed } from '../../actions/webhooks.js';
import { fail } from '../../errors.js';
import { ruleLimits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { storeLimits } from '../../store/limits.js';
import { allDead, type ReplayAsk } from '../../store/webhooks/replays.js';
import { botId } from '../../wire/fields.js';
import { boolean, integer, optional, routeName } from '../../wire/schema.js';
import { queuedCount } from '../../wire/webhook_results.js';

interface Given {
  readonly from_update_id?: number | undefined;
  readonly to_update_id?: number | undefined;
  readonly dead_letters?: boolean | undefined;
}

/**
 * Returns which updates to replay: a range, or all dead letters if only `dead_letters` is given. Throws
 * `parameter_required` or `parameter_wrong`.
 */
function askOf({ from_update_id: from, to_update_id: to, dead_letters }: Given): ReplayAsk {
  if (dead_letters && from === undefined && to === undefined) return allDead;
  if (from === undefined) return fail('parameter_required', { name: 'from_update_id' });
  if (to === undefined) return fail('parameter_required', { name: 'to_update_id' });
  if (to < from) return fail('parameter_wrong', { name: 'to_update_id', what: 'at least from_update_id' });
  return { from, to, delivered: !dead_letters, ofOwner: true };
}

const updateId = optional(
  integer().pipe(z.number().min(0, { error: 'an update_id' }).max(ruleLimits.id_max)),
);

/**
 * Delivers stored updates again. A webhook gets each update with its original `update_id`, so that the receiver can
 * drop duplicates. A bot that polls gets them with new ids, because its offset has already passed the original ids.
 */
export const replayUpdates = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/webhook/replay',
  summary: `Delivers updates again, each with its original update_id. The call can replay all dead letters, or a range of update ids. A range selects from the dead letters and from the last ${ruleLimits.delivery_successes_kept} successful deliveries. One call delivers at most ${storeLimits.replay_max} updates.`,
  params: z.object({
    bot_id: botId,
    from_update_id: updateId.describe('Id of the first update of a range'),
    to_update_id: updateId.describe('Id of the last update of the range'),
    dead_letters: optional(boolean).describe(
      'True to replay only dead letters. Without a range, all dead letters are replayed',
    ),
    route: optional(routeName).describe('Selects the updates of this webhook route'),
  }),
  result: queuedCount,
  errors: ['bot_not_found', 'not_bot_owner', 'route_name_invalid', 'route_not_found'],
  handler: async ({ user, store }, { bot_id, route, ...given }) => {
    const bot = await store.bots.owned(user.id, bot_id);
    const ask = { ...askOf(given), route: await routeNamed(store, bot.id, route) };
    const { queued } = await store.replays.replay(bot.id, ask);
    return { queued };
  },
});
