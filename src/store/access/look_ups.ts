/** Limits the DNS lookups that a bot and its owner may cause, because they use the installation's name servers. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import type { StoreContext } from '../core/context.js';

export interface LookUps {
  /** Counts a lookup of a person's bot, or of the person if `bot` is null. Error: `too_many_requests`. */
  take(owner: number, bot: number | null): Promise<void>;
}

export function createLookUps({ scripts, keys }: StoreContext): LookUps {
  async function takeOf(account: number, calls: number): Promise<void> {
    const partition = keys.partitions.of(account);
    const { wait } = await scripts.call(
      'limits/take',
      partition,
      { bucket: keys.rate(partition, `host:${account}`) },
      { calls, interval_us: Math.round(60_000_000 / calls), count: 1 },
    );
    if (wait > 0) fail('too_many_requests', { retry_after: Math.ceil(wait / 1_000) });
  }

  return {
    async take(owner, bot) {
      // The bot's own limit comes first, so that its rejected lookups take nothing from the owner's other bots.
      if (bot !== null) await takeOf(bot, limits.host_look_ups_per_bot_max);
      await takeOf(owner, limits.host_look_ups_per_owner_max);
    },
  };
}
