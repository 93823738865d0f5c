/**
 * Settles a batch after its commit: removes its entries from the journal. Their entities may then leave Redis when they
 * are unused.
 */

import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { ruleLimits as limits } from '../rules/limits.js';
import type { Keys } from '../store/core/keys.js';
import type { JournalPrefix } from './batch.js';
import type { HotBudget } from './hot_budget.js';
import type { Written } from './write.js';

interface Settled {
  readonly entities: string[];
  readonly versions: number[];
  /** The first `brief` entities of the list leave Redis soon. */
  brief: number;
}

const none = (): Settled => ({ entities: [], versions: [], brief: 0 });

function add(
  to: Map<number, Settled>,
  partition: number,
  entity: string,
  version: number,
  brief = false,
): void {
  const settled = to.get(partition) ?? none();
  if (brief) {
    settled.entities.splice(settled.brief, 0, entity);
    settled.versions.splice(settled.brief++, 0, version);
  } else {
    settled.entities.push(entity);
    settled.versions.push(version);
  }
  to.set(partition, settled);
}

/**
 * Returns the state keys that entries name. Includes entries that a newer entry replaced, because any of them may be
 * the last one that contains its state.
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

/**
 * Settles the entries of a committed batch with one script per partition. If a partition fails, for instance because
 * its slot is being moved, the other partitions are still settled. `written` excludes quarantined entries. Their
 * entities must stay in Redis, because Postgres lacks them.
 */
export async function settlePrefixes(
  runner: ScriptRunner,
  keys: Keys,
  { hotTtlMs, budget }: { readonly hotTtlMs: number; readonly budget: HotBudget },
  prefixes: readonly JournalPrefix[],
  written: Written,
): Promise<SettleResult> {
  const records = new Map<number, Settled>();
  const states = new Map<number, Settled>();
  for (const { table, key, entry, record } of written.changes) {
    if (!table.record) continue;
    // Keeps a tombstone in Redis, because Postgres may be restored to a state before the deletion.
    const brief = record !== null && !budget.admits(key[0] as number, record.length);
    add(records, entry.partition, table.record(keys, key), entry.version, brief);
  }
  for (const { table, partition, key, version } of written.sequences) {
    if (table.sequence?.state) add(states, partition, table.sequence.state(keys, key), version);
  }
  for (const { partition, state, version } of namedStates(prefixes, written)) {
    add(states, partition, state, version);
  }
  async function settle({ partition, last }: JournalPrefix): Promise<number> {
    const record = records.get(partition) ?? none();
    const state = states.get(partition) ?? none();
    const { length } = await runner.call(
      'journal/settle',
      partition,
      {
        meta: keys.meta(partition),
        journal: keys.journal(partition),
        entities: [...record.entities, ...state.entities],
      },
      {
        after: `${last + 1}-0`,
        hot_ms: runner.isFull(partition) ? limits.hot_ttl_ms_min : hotTtlMs,
        records: record.entities.length,
        brief: record.brief,
        versions: [...record.versions, ...state.versions],
      },
    );
    return length;
  }

  const lengths = new Map<number, number>();
  const failures = new Map<number, Error>();
  await Promise.all(
    prefixes.map((prefix) =>
      settle(prefix).then(
        (length) => lengths.set(prefix.partition, length),
        (error: Error) => failures.set(prefix.partition, error),
      ),
    ),
  );
  return { lengths, failures };
}
