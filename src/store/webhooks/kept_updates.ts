/** Stores delivered updates for replays, if the setting UPDATES_DAYS is set (decision 0081). */
import { byShard } from '../../postgres/shards.js';
import { insertKept, type KeptUpdate } from '../../postgres/webhooks/kept_updates.js';
import type { StoreContext } from '../core/context.js';

export type { KeptUpdate } from '../../postgres/webhooks/kept_updates.js';
export type KeptUpdates = ReturnType<typeof createKeptUpdates>;

export function createKeptUpdates({ shards, keys }: StoreContext) {
  return {
    /**
     * Stores updates. After an error, the caller may store the same updates again, because storing an update twice
     * changes nothing.
     */
    async append(updates: readonly KeptUpdate[]): Promise<void> {
      const divided = byShard(shards, updates, ({ bot }) => keys.partitions.of(bot));
      await Promise.all(
        [...divided].map(([, own]) => {
          const { bot } = own[0] as KeptUpdate;
          return insertKept(shards.at(keys.partitions.of(bot)), own);
        }),
      );
    },
  };
}
