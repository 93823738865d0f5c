/**
 * Records which people have a browser window open on any node. Each node records its own windows in Redis and renews
 * these records before they expire. A node without push notifications records nothing. If Redis loses a record, the
 * person gets an unnecessary notification.
 */
import type { StoreContext } from '../core/context.js';
import { groupBy, piecesOf } from '../core/groups.js';
import { storeLimits as limits } from '../limits.js';

export type Presence = ReturnType<typeof createPresence>;

export interface PresenceOptions {
  /** Whether this node records its own windows. If false, this node only reads the records of other nodes. */
  readonly noting: boolean;
  readonly onError: (error: unknown) => void;
}

export function createPresence(
  { scripts, keys, time, random }: StoreContext,
  { noting, onError }: PresenceOptions,
) {
  const node = random.bytes(9).toString('base64url');
  const here = new Set<number>();

  const at = (partition: number) => ({ windows: keys.windowsRoot(partition) });
  /** Splits users into batches, so that no script blocks Redis for long. */
  const pieces = (users: Iterable<number>) =>
    [...groupBy(users, keys.partitions.of)].flatMap(([partition, all]) =>
      piecesOf(all.map(String), limits.presence_batch_max).map((piece) => [partition, piece] as const),
    );

  async function note(users: Iterable<number>, ttl_ms: number): Promise<void> {
    for (const [partition, piece] of pieces(users))
      await scripts.call('presence/note', partition, at(partition), { node, ttl_ms, users: piece });
  }

  let renewing = false;
  const renew = () => {
    if (renewing) return;
    renewing = true;
    note(here, limits.presence_ttl_ms)
      .catch(onError)
      .finally(() => {
        renewing = false;
      });
  };
  const timer = noting ? time.every(limits.presence_renew_ms, renew).unref() : undefined;

  return {
    /** Records that a person has opened a first window on this node, or has closed the last window on this node. */
    changed(user: number, present: boolean) {
      if (!noting) return;
      if (present) here.add(user);
      else here.delete(user);
      note([user], present ? limits.presence_ttl_ms : 0).catch(onError);
    },
    async among(users: readonly number[]): Promise<ReadonlySet<number>> {
      const present = new Set<number>();
      await Promise.all(
        pieces(users).map(async ([partition, piece]) => {
          const found = await scripts.call('presence/read', partition, at(partition), { users: piece });
          for (const user of found.present as readonly unknown[]) present.add(Number(String(user)));
        }),
      );
      return present;
    },
    close: () => time.cancel(timer),
  };
}
