/**
 * Limits how many DNS lookups a bot and its owner may cause, because each lookup is a query to the installation's name
 * servers. Also limits how many pings an owner may send.
 */
import { takeCalls } from '../core/buckets.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export function createLookUps(context: StoreContext) {
  const takeOf = (account: number, calls: number, what: 'host' | 'ping' = 'host') =>
    takeCalls(context, what, account, { calls, intervalUs: 60_000_000 / calls });

  return {
    /** Counts a DNS lookup. `bot` is null if a person caused the lookup without a bot. Error: `too_many_requests`. */
    async take(owner: number, bot: number | null) {
      // Counts against the bot first, so that rejected lookups use up nothing for the owner's other bots.
      if (bot !== null) await takeOf(bot, limits.host_look_ups_per_bot_max);
      await takeOf(owner, limits.host_look_ups_per_owner_max);
    },
    /** Counts a ping that the owner sends to a webhook. Error: `too_many_requests`. */
    takePing: (owner: number) => takeOf(owner, limits.pings_per_owner_max, 'ping'),
  };
}
