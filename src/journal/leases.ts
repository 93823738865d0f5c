/**
 * Divides partitions among the running flushers. Each registers with a heartbeat, and each computes the same share by
 * rendezvous hashing, so that a flusher that starts or dies moves only its own partitions. A short lease on a
 * partition keeps two flushers that disagree for a moment from doing the same work; the result is correct even if
 * both do it. A flusher that is alone takes no leases.
 */
import { createHash } from 'node:crypto';
import { limits } from '../limits.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';

export interface LeaseOptions {
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  /** Id of this flusher, unique among flushers. */
  readonly id: string;
  readonly onError: (error: Error) => void;
}

export interface Leases {
  /** Registers this flusher. Resolves after the first round, even one that failed and will be repeated. */
  start(): Promise<void>;
  /** Partitions that this flusher may read. */
  held(): readonly number[];
  /** Returns all leases, so that other flushers can take the partitions at once. */
  leave(): Promise<void>;
}

const beatMs = limits.journal_lease_ms / 3;

function weight(flusher: string, partition: number): number {
  return createHash('sha1').update(`${partition} ${flusher}`).digest().readUInt32BE();
}

/** Whether rendezvous hashing gives the partition to `id` among the `live` flushers. */
export function isShareOf(id: string, live: readonly string[], partition: number): boolean {
  const own = weight(id, partition);
  return live.every((other) => {
    if (other === id) return true;
    const theirs = weight(other, partition);
    return theirs < own || (theirs === own && other < id);
  });
}

export function createLeases({ runner, keys, id, onError }: LeaseOptions): Leases {
  const held = new Set<number>();
  let share: { readonly live: string; readonly partitions: ReadonlySet<number> } | null = null;
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();
  let left = false;

  const beat = async (leaving: boolean): Promise<string[]> => {
    const args = { id, stale_ms: limits.journal_lease_ms, leaving };
    return (await runner.call('journal/heartbeat', 0, { flushers: keys.flushers() }, args)).live;
  };
  const take = async (partition: number): Promise<void> => {
    const args = { owner: id, ms: limits.journal_lease_ms };
    const result = await runner.call('journal/lease', partition, { lease: keys.flushLease(partition) }, args);
    if (result.status === 'ok') held.add(partition);
    else held.delete(partition);
  };
  const release = async (partition: number): Promise<void> => {
    held.delete(partition);
    await runner.call('journal/release', partition, { lease: keys.flushLease(partition) }, { owner: id });
  };

  function shareAmong(live: readonly string[]): ReadonlySet<number> {
    const names = [...live].sort().join(' ');
    if (share?.live !== names) {
      const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
      share = { live: names, partitions: new Set(all.filter((p) => isShareOf(id, live, p))) };
    }
    return share.partitions;
  }

  async function tend(): Promise<void> {
    try {
      const live = await beat(false);
      const wanted = shareAmong(live);
      // A flusher that is alone needs no leases. It and a new flusher may both read a journal until the next
      // heartbeat.
      if (live.length === 1) {
        for (const partition of wanted) held.add(partition);
        return;
      }
      const unwanted = [...held].filter((partition) => !wanted.has(partition));
      await Promise.all([...[...wanted].map(take), ...unwanted.map(release)]);
    } catch (error) {
      onError(error as Error);
    }
  }

  function schedule(): void {
    timer = setTimeout(() => {
      round = tend().then(() => {
        if (!left) schedule();
      });
    }, beatMs);
  }

  return {
    async start() {
      round = tend();
      await round;
      if (!left) schedule();
    },
    held: () => [...held],
    async leave() {
      left = true;
      clearTimeout(timer);
      await round;
      try {
        await beat(true);
        await Promise.all([...held].map(release));
      } catch (error) {
        // A lease that could not be returned expires.
        onError(error as Error);
      }
      held.clear();
    },
  };
}
