/**
 * Limits the DNS lookups that a bot and its owner may cause, because lookups use the installation's name servers. Also
 * limits the pings of an owner.
 */
import { takeCalls } from '../core/buckets.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export function createLookUps(context: StoreContext) {
  const takeOf = (account: number, calls: number, what: 'host' | 'ping' = 'host') =>
    takeCalls(context, what, account, { calls, intervalUs: 60_000_000 / calls });

  return {
    /**
     * Counts a DNS lookup. `bot` is null for a lookup of a person without a bot. Error: `too_many_requests`.
     */
    async take(owner: number, bot: number | null) {
      // Checks the bot's own limit first, so that rejected lookups do not count against the owner's other bots.
      if (bot !== null) await takeOf(bot, limits.host_look_ups_per_bot_max);
      await takeOf(owner, limits.host_look_ups_per_owner_max);
    },
    /** Counts a ping of one of the owner's webhooks. Error: `too_many_requests`. */
    takePing: (owner: number) => takeOf(owner, limits.pings_per_owner_max, 'ping'),
  };
}
