/**
 * Tracks which people have a window open on any node. Each node records its own windows in Redis and renews the
 * records, which expire by themselves. Nothing is recorded where push notifications are off. A lost record only costs
 * an unnecessary notification.
 */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import type { StoreContext } from '../core/context.js';

export interface Presence {
  /** Reports that a person's first window opened on this node, or that the last one closed. */
  changed(user: number, here: boolean): void;
  /** The people among these who have a window open on any node. */
  among(users: readonly number[]): Promise<ReadonlySet<number>>;
  close(): void;
}

export interface PresenceOptions {
  /** Whether to record this node's windows. Without it, the node only reads the records of others. */
  readonly noting: boolean;
  readonly onError: (error: unknown) => void;
}

export function createPresence(
  { scripts, keys }: StoreContext,
  { noting, onError }: PresenceOptions,
): Presence {
  const node = randomBytes(9).toString('base64url');
  const here = new Set<number>();

  function byPartition(users: Iterable<number>): Map<number, string[]> {
    const found = new Map<number, string[]>();
    for (const user of users) {
      const partition = keys.partitions.of(user);
      found.set(partition, [...(found.get(partition) ?? []), String(user)]);
    }
    return found;
  }

  /** Splits users into batches, so that no script blocks Redis for long. */
  function* pieces(users: Iterable<number>): Iterable<readonly [number, readonly string[]]> {
    for (const [partition, all] of byPartition(users))
      for (let i = 0; i < all.length; i += limits.presence_batch_max)
        yield [partition, all.slice(i, i + limits.presence_batch_max)];
  }

  async function note(users: Iterable<number>, ttl_ms: number): Promise<void> {
    for (const [partition, piece] of pieces(users))
      await scripts.call(
        'presence/note',
        partition,
        { windows: keys.windowsRoot(partition) },
        { node, ttl_ms, users: piece },
      );
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
  const timer = noting ? setInterval(renew, limits.presence_renew_ms).unref() : undefined;

  return {
    changed(user, present) {
      if (!noting) return;
      if (present) here.add(user);
      else here.delete(user);
      note([user], present ? limits.presence_ttl_ms : 0).catch(onError);
    },
    async among(users) {
      const present = new Set<number>();
      await Promise.all(
        [...pieces(users)].map(async ([partition, piece]) => {
          const found = await scripts.call(
            'presence/read',
            partition,
            { windows: keys.windowsRoot(partition) },
            { users: piece },
          );
          for (const user of found.present as readonly unknown[]) present.add(Number(String(user)));
        }),
      );
      return present;
    },
    close: () => clearInterval(timer),
  };
}
