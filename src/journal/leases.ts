/**
 * Divides partitions among the running flushers. Each flusher registers with a heartbeat, and all of them compute the
 * same division by rendezvous hashing. When a flusher starts or dies, only its own partitions move. For a moment, two
 * flushers may disagree about the division. A short lease on each partition then prevents them from doing the same work
 * twice. If there is only one flusher, it takes no leases.
 */
import { createHash } from 'node:crypto';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { journalLimits as limits } from './limits.js';

export interface LeaseOptions {
  readonly runner: ScriptRunner;
  readonly keys: Keys;
  readonly id: string;
  readonly onError: (error: Error) => void;
  readonly time?: Time;
}

const beatMs = limits.journal_lease_ms / 3;

function weight(flusher: string, partition: number): number {
  return createHash('sha1').update(`${partition} ${flusher}`).digest().readUInt32BE();
}

export function isShareOf(id: string, live: readonly string[], partition: number): boolean {
  const own = weight(id, partition);
  return live.every((other) => {
    if (other === id) return true;
    const theirs = weight(other, partition);
    return theirs < own || (theirs === own && other < id);
  });
}

export function createLeases({ runner, keys, id, onError, time = systemTime }: LeaseOptions) {
  const held = new Set<number>();
  /**
   * The last division of the partitions among the flushers: the ids of all flushers, and the partitions of this
   * flusher.
   */
  let share: { readonly live: string; readonly partitions: ReadonlySet<number> } | null = null;
  let timer: Timer | undefined;
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
      // A flusher that is alone takes no leases and writes all journals. When another flusher starts, both may write
      // the same journal until the next heartbeat.
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

  /**
   * Starts to renew the heartbeat and the leases. Resolves after the first attempt, even if that attempt failed and
   * will be repeated.
   */
  function start(): Promise<void> {
    round = tend().then(() => {
      if (!left) timer = time.after(time.untilNext(beatMs), start);
    });
    return round;
  }

  return {
    start,
    held: (): readonly number[] => [...held],
    /** Releases all leases, so that other flushers can take over immediately. */
    async leave() {
      left = true;
      time.cancel(timer);
      await round;
      try {
        await beat(true);
        await Promise.all([...held].map(release));
      } catch (error) {
        // Only reports the error, because a lease that could not be released expires anyway.
        onError(error as Error);
      }
      held.clear();
    },
  };
}
