/** Applies a bot's routes to Redis. Every step can be repeated, and the sweep completes interrupted changes. */
import { fail } from '../../errors.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { queueId, queuesIn } from '../core/queue_ids.js';
import { packRoutes, type RemovedRoute, type RouteRecord } from '../core/route_record.js';
import { queueKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Queues } from '../updates/queues.js';
import type { QueueSwitch } from './queue_switch.js';

export type RouteQueues = ReturnType<typeof createRouteQueues>;

export function createRouteQueues(
  { scripts, keys }: StoreContext,
  queues: Queues,
  turn: QueueSwitch,
  wake: (queue: number) => void,
) {
  /**
   * Applies the current settings to the queues of routes. Skips a queue that is not open, because it gets its settings
   * from Postgres when it is opened.
   */
  async function switchAll(bot: number, routes: readonly RemovedRoute[], version: number, active: boolean) {
    for (const { slot, set, dropped } of routes)
      await turn.tryTo(queueId(bot, slot), {
        ...{ version: String(version), set: String(set), active, mask: '' },
        drop: dropped === 0 ? '' : String(dropped),
      });
  }

  /** Moves the updates out of the queues of removed routes, and then installs the list of routes. */
  async function install(bot: number, record: RouteRecord, version: number, active: boolean): Promise<void> {
    const at = { ...queueKeys(keys, bot), routes: keys.routes(bot) };
    const removed = record.removed.map(({ slot }) => String(slot));
    const args = { bot: String(bot), routes: packRoutes(record, version, active), removed };
    let opened = 0;
    for (let call = 0; call < limits.route_moves_max && opened < fillAttemptsMax; call++) {
      const result = await scripts.call('webhooks/set_routes', keys.partitions.of(bot), at, args);
      if (result.status !== 'ok') {
        opened++;
        await queues.open(bot);
        continue;
      }
      const strays = result.strays.map((slot) => ({ slot: Number(slot), set: version, dropped: 0 }));
      await switchAll(bot, strays, version, false);
      removed.push(...result.strays);
      for (const queue of queuesIn(bot, result.wake)) wake(queue);
      if (result.done) return;
    }
    fail('unavailable', { retry_after: 1 });
  }

  return {
    /**
     * Stops the deliveries of removed routes, installs the list of routes, and then switches the queues of the routes.
     * Also removes routes that are in Redis but not in Postgres. `version` is the version of the bot's settings. If
     * `active` is false, nothing is delivered. Error: `unavailable`.
     */
    async apply(bot: number, record: RouteRecord, version: number, active: boolean): Promise<void> {
      await switchAll(bot, record.removed, version, false);
      await install(bot, record, version, active);
      await switchAll(bot, record.routes, version, active);
    },
  };
}
