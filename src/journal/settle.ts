/**
 * Settles batches after their commit. Settling removes the batches' entries from the journal. Redis may then also drop
 * the changed entities when they are unused.
 */

import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { ruleLimits as limits } from '../rules/limits.js';
import type { Keys } from '../store/core/keys.js';
import type { JournalPrefix } from './batch.js';
import type { HotBudget } from './hot_budget.js';
import type { Written } from './write.js';

/** A batch whose transaction is committed. */
export interface Committed {
  readonly prefixes: readonly JournalPrefix[];
  /**
   * The written changes, without quarantined entries. Postgres lacks the entities of quarantined entries, so Redis must
   * keep these entities.
   */
  readonly written: Written;
}

/**
 * The entries of one partition, which one script settles. If a key is in several batches, only its newest version is
 * listed, because Redis has no older version.
 */
interface Settling {
  /** The version of the last entry to settle in this partition. */
  last: number;
  readonly records: Map<string, number>;
  /** The records that may leave Redis soon. */
  readonly brief: Map<string, number>;
  readonly states: Map<string, number>;
}

/**
 * Returns the written entries whose `state` names a HASH. The result also contains entries that a newer entry of the
 * batch replaced, because the newer entry may not name the HASH.
 */
function namedStates(prefixes: readonly JournalPrefix[], written: Written) {
  const named = prefixes.flatMap(({ entries }) => entries.filter(({ state }) => state !== ''));
  if (named.length === 0) return named;
  const stored = new Set(written.changes.map(({ entry }) => entry.entity));
  return named.filter(({ entity }) => stored.has(entity));
}

export interface SettleResult {
  readonly lengths: ReadonlyMap<number, number>;
  readonly failures: ReadonlyMap<number, Error>;
}

function keepNewest(versions: Map<string, number>, key: string, version: number): void {
  versions.set(key, Math.max(version, versions.get(key) ?? 0));
}

/** Adds the entries and keys of a committed batch to `settling`, by partition. */
function gather(
  settling: ReadonlyMap<number, Settling>,
  keys: Keys,
  budget: HotBudget,
  { prefixes, written }: Committed,
): void {
  for (const { table, key, entry, record } of written.changes) {
    const of = settling.get(entry.partition);
    if (!table.record || of === undefined) continue;
    const name = table.record(keys, key);
    // Keeps a tombstone in Redis, because Postgres may be restored to a state before the deletion.
    const isBrief = record !== null && !budget.admits(key[0] as number, record.length);
    keepNewest(isBrief ? of.brief : of.records, name, entry.version);
    (isBrief ? of.records : of.brief).delete(name);
  }
  for (const { table, partition, key, version } of written.sequences) {
    const of = settling.get(partition);
    if (of && table.sequence?.state) keepNewest(of.states, table.sequence.state(keys, key), version);
  }
  for (const { partition, state, version } of namedStates(prefixes, written)) {
    const of = settling.get(partition);
    if (of) keepNewest(of.states, state, version);
  }
}

/**
 * Settles the entries of committed batches with one script per partition. The batches must be in the order of their
 * commits. Skips partitions for which `isDue` returns false. If a partition fails, for instance because its slot is
 * being migrated, the other partitions are still settled.
 */
export async function settleBatches(
  runner: ScriptRunner,
  keys: Keys,
  { hotTtlMs, budget }: { readonly hotTtlMs: number; readonly budget: HotBudget },
  batches: readonly Committed[],
  isDue: (partition: number) => boolean,
): Promise<SettleResult> {
  const settling = new Map<number, Settling>();
  for (const { prefixes } of batches)
    for (const { partition, last } of prefixes) {
      const known = settling.get(partition);
      if (known) known.last = last;
      else if (isDue(partition))
        settling.set(partition, { last, records: new Map(), brief: new Map(), states: new Map() });
    }
  for (const batch of batches) gather(settling, keys, budget, batch);

  async function settle(partition: number, { last, records, brief, states }: Settling): Promise<number> {
    const { length } = await runner.call(
      'journal/settle',
      partition,
      {
        meta: keys.meta(partition),
        journal: keys.journal(partition),
        entities: [...brief.keys(), ...records.keys(), ...states.keys()],
      },
      {
        after: `${last + 1}-0`,
        hot_ms: runner.isFull(partition) ? limits.hot_ttl_ms_min : hotTtlMs,
        records: brief.size + records.size,
        brief: brief.size,
        versions: [...brief.values(), ...records.values(), ...states.values()],
      },
    );
    return length;
  }

  const lengths = new Map<number, number>();
  const failures = new Map<number, Error>();
  await Promise.all(
    [...settling].map(([partition, own]) =>
      settle(partition, own).then(
        (length) => lengths.set(partition, length),
        (error: Error) => failures.set(partition, error),
      ),
    ),
  );
  return { lengths, failures };
}
