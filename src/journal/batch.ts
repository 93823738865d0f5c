/** Turns journal entries into rows to write: the newest version of each entity, grouped by table and sorted by key. */
import { limits } from '../limits.js';
import { type Entity, type JournalTable, journalTables, parseEntity } from './tables.js';

/** One entry of a journal, as read from Redis. */
export interface JournalEntry {
  readonly partition: number;
  readonly version: number;
  readonly entity: string;
  /** The whole new record. Empty for a deleted entity, or a record that marks the deletion. */
  readonly image: Buffer;
  /**
   * Key of the HASH that may leave Redis once its field `v`, which this entry's step set, is in Postgres; '' for
   * none.
   */
  readonly state: string;
}

/** A contiguous run of a partition's journal, from its start. */
export interface JournalPrefix {
  readonly partition: number;
  readonly entries: readonly JournalEntry[];
  /** Version of the last entry of the prefix. */
  readonly last: number;
  /** Whether the prefix reached the end of the journal when it was read. */
  readonly whole: boolean;
}

/** The newest version of an entity within a batch. */
export interface Change extends Entity {
  readonly entry: JournalEntry;
  /** Version of the oldest entry of the entity within the batch. */
  readonly first: number;
  /** The record to store; null for a tombstone. */
  readonly record: Buffer | null;
  /** The newest image within the batch that is not empty; empty if there is none. */
  readonly image: Buffer;
}

/** The greatest value that a batch brings for one sequence. */
export interface SequenceChange {
  readonly table: JournalTable;
  readonly partition: number;
  /** The greatest key of the sequence. Its last column is the greatest value of the sequence. */
  readonly key: readonly number[];
  /** The greatest version of the sequence in the batch. The entry with the greatest key may have a lower one. */
  readonly version: number;
  /** Incarnation under which the greatest key was given out, if this batch is the first that contains the key. */
  readonly incarnation: number;
}

/** Entries split into changes of known entities and entries whose entity cannot be read. */
export interface Gathered {
  /** Sorted by table and key: every writer takes row locks in one order. */
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
 * Keeps the newest version of each entity. An entity lies in one partition only, so its text is enough as the map
 * key.
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

/** Splits changes that are sorted by table into one run per table. */
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

/** Whether two keys are equal in every column except the last. */
function sameSequence(a: readonly number[], b: readonly number[]): boolean {
  for (let i = 0; i < a.length - 1; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** The greatest value of each sequence among changes of one table, which must be sorted by key. */
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
