import { z } from 'zod';
import { routeNamed, webhookNamed } from '../../actions/webhooks.js';
import { fail } from '../../errors.js';
import { ruleLimits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { storeLimits as limits } from '../../store/limits.js';
import { viewReplay } from '../../view/deliveries.js';
import { botId } from '../../wire/fields.js';
import { answer, integer, optional, routeName } from '../../wire/schema.js';
import { webhookReplay } from '../../wire/webhook_results.js';

const path = '/api/me/bots/{bot_id}/webhook/replays';
const owners = ['bot_not_found', 'not_bot_owner'] as const;

const updateId = integer().pipe(z.number().min(0, { error: 'an update_id' }).max(ruleLimits.id_max));
const timeMax = 10_000_000_000;
const timeError = { error: 'a Unix time in seconds' };
const unixTime = integer().pipe(z.number().min(0, timeError).max(timeMax, timeError));

/** Starts a replay. Workers do the work, so the call does not wait for deliveries. */
export const startReplay = defineEndpoint({
  verb: 'POST',
  path,
  summary:
    'Starts a replay. A replay delivers the stored updates since a given time or update_id again, to the webhook or to one of the webhook routes. Petrel stores the pending updates, the dead letters and the last successful deliveries of a bot. If UPDATES_DAYS is set, Petrel also stores all updates that were delivered in the last UPDATES_DAYS days. New updates are delivered before the updates of a replay. A bot can have one replay at a time.',
  params: z.object({
    bot_id: botId,
    from_update_id: optional(updateId).describe('Id of the first update'),
    from_time: optional(unixTime).describe('Time of the first update, Unix time in seconds'),
    route: optional(routeName).describe('The webhook route that gets the updates. Absent for the webhook'),
  }),
  result: webhookReplay,
  errors: [...owners, 'route_name_invalid', 'route_not_found', 'webhook_not_set', 'replay_running'],
  handler: async ({ user, store }, { bot_id, route, from_update_id: from, from_time: time }) => {
    const bot = await store.bots.owned(user.id, bot_id);
    if (from === undefined && time === undefined) fail('parameter_required', { name: 'from_update_id' });
    if (from !== undefined && time !== undefined)
      fail('parameter_wrong', { name: 'from_time', what: 'absent if from_update_id is given' });
    const slot = (await routeNamed(store, bot.id, route))?.slot ?? 0;
    await webhookNamed(store, bot.id, route);
    const ask = { slot, from: from ?? 0, fromTime: time ?? null };
    return viewReplay(await store.historyReplays.start(bot.id, ask));
  },
});

export const listReplays = defineEndpoint({
  verb: 'GET',
  path,
  summary: `Lists the last ${limits.replays_kept} replays of a bot with their progress, newest first.`,
  params: z.object({ bot_id: botId }),
  result: z.strictObject({ items: z.array(webhookReplay) }),
  errors: owners,
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    return { items: (await store.historyReplays.list(bot.id)).map(viewReplay) };
  },
});

export const cancelReplay = defineEndpoint({
  verb: 'DELETE',
  path: `${path}/{replay_id}`,
  summary:
    'Cancels a replay, so that its remaining updates are not delivered. Does nothing if the replay has already ended.',
  params: z.object({
    bot_id: botId,
    replay_id: integer(answer('replay_not_found'))
      .pipe(z.number().max(ruleLimits.id_max, { error: answer('replay_not_found') }))
      .describe('Id of the replay'),
  }),
  result: webhookReplay,
  errors: [...owners, 'replay_not_found'],
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    return viewReplay(await store.historyReplays.cancel(bot.id, p.replay_id));
  },
});
