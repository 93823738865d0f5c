/**
 * Turns journal entries into rows to write. Keeps only the newest version of each entity, groups the rows by table and
 * sorts them by key.
 */
import { storeLimits as limits } from '../store/limits.js';
import { type Entity, type JournalTable, journalTables, parseEntity } from './tables.js';

export interface JournalEntry {
  readonly partition: number;
  readonly version: number;
  readonly entity: string;
  /**
   * The complete new record. Empty for a deleted entity, except in tables whose records mark a deletion themselves
   * (`isTombstone`).
   */
  readonly image: Buffer;
  /**
   * The key of a HASH, or '' if there is none. The HASH's field `v` was set when this entry was added. The HASH may
   * leave Redis once Postgres has the version in `v`.
   */
  readonly state: string;
}

/** Consecutive entries from the start of a partition's journal. */
export interface JournalPrefix {
  readonly partition: number;
  readonly entries: readonly JournalEntry[];
  readonly last: number;
  /** Whether the journal contained no further entries when it was read. */
  readonly whole: boolean;
}

/** The newest version of an entity within a batch. */
export interface Change extends Entity {
  readonly entry: JournalEntry;
  /** The version of the entity's oldest entry within the batch. */
  readonly first: number;
  readonly record: Buffer | null;
  /**
   * The newest record of this entity in the batch, even if a later entry deletes the entity. Empty if the batch
   * contains no record of it.
   */
  readonly image: Buffer;
}

export interface SequenceChange {
  readonly table: JournalTable;
  readonly partition: number;
  /** The key of the entry with the greatest number of the sequence. The last element of the key is this number. */
  readonly key: readonly number[];
  /**
   * The greatest version among the batch's entries of this sequence. The entry with this version may differ from the
   * entry with the greatest number.
   */
  readonly version: number;
  /**
   * The incarnation of the partition when the greatest number was assigned. Only the first batch that contains this
   * number has the correct value. Postgres ignores the value from later batches.
   */
  readonly incarnation: number;
}

export interface Gathered {
  /** The changes, sorted by table and key, so that all writers lock rows in the same order. */
  readonly changes: readonly Change[];
  readonly unreadable: readonly JournalEntry[];
}

const tableOrder = new Map(journalTables.map((table, i) => [table, i]));

function compareKeys(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

const compareChanges = (a: Change, b: Change): number =>
  a.table === b.table
    ? compareKeys(a.key, b.key)
    : (tableOrder.get(a.table) as number) - (tableOrder.get(b.table) as number);

/**
 * Keeps the newest version of each entity. Uses the name of the entity as the map key. Each entity belongs to a single
 * partition, so its name is unique across partitions.
 */
export function gather(entries: Iterable<JournalEntry>): Gathered {
  const newest = new Map<string, { entry: JournalEntry; first: number; image: Buffer }>();
  for (const entry of entries) {
    const known = newest.get(entry.entity);
    if (known === undefined) newest.set(entry.entity, { entry, first: entry.version, image: entry.image });
    else if (known.entry.version < entry.version) {
      known.entry = entry;
      if (entry.image.length > 0) known.image = entry.image;
    } else if (entry.version < known.first) known.first = entry.version;
  }
  const changes: Change[] = [];
  const unreadable: JournalEntry[] = [];
  for (const { entry, first, image } of newest.values()) {
    const entity = parseEntity(entry.entity);
    if (entity) {
      const { table, key } = entity;
      const gone = entry.image.length === 0 || table.dated?.isTombstone(entry.image);
      changes.push({ table, key, entry, first, record: gone ? null : entry.image, image });
    } else unreadable.push(entry);
  }
  return { changes: changes.sort(compareChanges), unreadable };
}

/** Groups changes by table. The changes must be sorted by table. */
export function byTable(changes: readonly Change[]): Array<readonly [JournalTable, readonly Change[]]> {
  const runs: Array<readonly [JournalTable, readonly Change[]]> = [];
  for (let from = 0; from < changes.length; ) {
    const { table } = changes[from] as Change;
    let to = from + 1;
    while (changes[to]?.table === table) to++;
    runs.push([table, changes.slice(from, to)]);
    from = to;
  }
  return runs;
}

function sameSequence(a: readonly number[], b: readonly number[]): boolean {
  for (let i = 0; i < a.length - 1; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Returns the greatest value of each sequence. The changes must be sorted by key. */
export function sequences(table: JournalTable, changes: readonly Change[]): SequenceChange[] {
  const found: SequenceChange[] = [];
  let version = 0;
  changes.forEach(({ key, entry, first }, i) => {
    version = Math.max(version, entry.version);
    const next = changes[i + 1];
    if (next && sameSequence(key, next.key)) return;
    const incarnation = Math.floor(first / limits.versions_per_incarnation);
    found.push({ table, partition: entry.partition, key, version, incarnation });
    version = 0;
  });
  return found;
}
