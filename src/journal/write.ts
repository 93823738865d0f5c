/**
 * Writes a batch to Postgres in one transaction. If Postgres refuses entries because of their data, finds these entries
 * and quarantines them.
 */
import { bigintArray, byteaArray } from '../postgres/arrays.js';
import { type RaisedMark, raiseMark } from '../postgres/marks.js';
import { type Call, isDataError, type Pool, type Statement, statement } from '../postgres/pool.js';
import {
  byTable,
  type Change,
  gather,
  type JournalEntry,
  type JournalPrefix,
  type SequenceChange,
  sequences,
} from './batch.js';
import { type JournalTable, journalTables } from './tables.js';

export interface Written {
  readonly changes: readonly Change[];
  readonly sequences: readonly SequenceChange[];
}

export interface WrittenBatch extends Written {
  /** The mark that the transaction raised (`history.ts` explains marks). */
  readonly raised: readonly RaisedMark[];
}

interface Encoded extends Written {
  readonly calls: readonly Call[];
}

export interface PreparedBatch extends Encoded {
  readonly watermarks: Call;
  readonly unreadable: readonly JournalEntry[];
}

/** Called for each quarantined entry, so that the caller can count it, log it at level error, or raise an alert. */
export type OnQuarantine = (entry: JournalEntry, reason: string) => void;

const reasonLengthMax = 500;

/** Returns the statement that writes rows. Its parameters give a day as the number of days since 1970. */
function upsert({ table, columns, dated }: JournalTable): Statement {
  const all = [...columns, ...(dated ? ['day'] : [])];
  const keys = all.join(', ');
  const values = all.map((column) => (column === 'day' ? "date '1970-01-01' + day::int" : column));
  const arrays = all.map((_, i) => `$${i + 1}::bigint[]`);
  const n = all.length;
  return statement(
    `flush_${table}`,
    `insert into ${table} as stored (${keys}, version, record, deleted_at)
     select ${values.join(', ')}, version, record, case when record is null then now() end
     from unnest(${arrays.join(', ')}, $${n + 1}::bigint[], $${n + 2}::bytea[]) as rows (${keys}, version, record)
     on conflict (${keys}) do update
     set version = excluded.version, record = excluded.record, deleted_at = excluded.deleted_at
     where stored.version < excluded.version`,
  );
}

function upsertSequence({ table, columns, last }: NonNullable<JournalTable['sequence']>): Statement {
  const keys = columns.join(', ');
  const arrays = columns.map((_, i) => `$${i + 1}::bigint[]`);
  const n = columns.length;
  return statement(
    `flush_${table}`,
    `insert into ${table} as stored (${keys}, ${last}, version, incarnation)
     select * from unnest(${arrays.join(', ')}, $${n + 1}::bigint[], $${n + 2}::bigint[], $${n + 3}::bigint[])
     on conflict (${keys}) do update
     set ${last} = greatest(stored.${last}, excluded.${last}), version = greatest(stored.version, excluded.version),
       incarnation = case when stored.${last} < excluded.${last} then excluded.incarnation else stored.incarnation end
     where stored.${last} < excluded.${last} or stored.version < excluded.version`,
  );
}

/**
 * Returns the statement for tombstones that have no day. Older releases wrote such tombstones, because they did not
 * partition messages by day. The statement searches every partition of the table for the row.
 */
function buryUndated({ table, columns }: JournalTable): Statement {
  const arrays = columns.map((_, i) => `$${i + 1}::bigint[]`);
  const n = columns.length;
  return statement(
    `flush_undated_${table}`,
    `update ${table} stored set version = rows.version, record = null, deleted_at = now()
     from unnest(${arrays.join(', ')}, $${n + 1}::bigint[]) as rows (${columns.join(', ')}, version)
     where ${columns.map((column) => `stored.${column} = rows.${column}`).join(' and ')} and stored.version < rows.version`,
  );
}

const upserts = new Map(journalTables.map((table) => [table, upsert(table)]));
const undatedBurials = new Map(
  journalTables.flatMap((table) => (table.dated ? [[table, buryUndated(table)]] : [])),
);
const sequenceUpserts = new Map(
  journalTables.flatMap((table) => (table.sequence ? [[table, upsertSequence(table.sequence)]] : [])),
);

/**
 * Raises the watermarks of a batch. Refuses the batch if a partition's incarnation was raised after its journal was
 * read, because Redis may have lost some of the entries. The row lock ensures that a transaction that raises the
 * incarnation runs entirely before or entirely after this one.
 */
const raiseWatermarks = statement(
  'flush_watermarks',
  `insert into partitions as stored (partition, flushed_version, incarnation, flushed_at)
   select *, now() from unnest($1::bigint[], $2::bigint[], $3::bigint[])
   on conflict (partition) do update
   set flushed_version = case
         when stored.left_at is not null then refuse_left_partition(stored.partition)
         when stored.incarnation > excluded.incarnation then refuse_older_flush(stored.partition)
         else greatest(stored.flushed_version, excluded.flushed_version) end,
       flushed_at = now()`,
);

/**
 * Refuses a transaction if a partition's incarnation was raised after the incarnation was read. Unlike
 * `raiseWatermarks`, does not change the watermarks.
 */
const checkIncarnations = statement(
  'check_incarnations',
  `select case when p.incarnation > read.incarnation then refuse_older_flush(p.partition) end
   from unnest($1::bigint[], $2::bigint[]) as read (partition, incarnation)
   join partitions p on p.partition = read.partition
   order by p.partition for share of p`,
);

const registeredIncarnations = statement(
  'flush_incarnations',
  'select partition, incarnation from partitions where partition = any($1::int[])',
);

const quarantineEntry = statement(
  'flush_quarantine',
  `insert into quarantine (partition, version, entity, image, reason) values ($1, $2, $3, $4, $5)
   on conflict do nothing`,
);

const keyColumn = (keys: readonly { readonly key: readonly number[] }[], column: number): Buffer =>
  bigintArray(keys.map(({ key }) => key[column] as number));

function sequenceCall(table: JournalTable, found: readonly SequenceChange[]): Call | null {
  const statement = sequenceUpserts.get(table);
  if (!statement) return null;
  const columns = table.sequence?.columns.length ?? 0;
  const values = [
    // The key columns of the sequences. The last column contains the greatest number of each sequence.
    ...Array.from({ length: columns + 1 }, (_, i) => keyColumn(found, i)),
    bigintArray(found.map(({ version }) => version)),
    bigintArray(found.map(({ incarnation }) => incarnation)),
  ];
  return { statement, values };
}

function rowCalls(table: JournalTable, rows: readonly Change[]): Call[] {
  const keysOf = (some: readonly Change[]) => table.columns.map((_, i) => keyColumn(some, i));
  const versionsOf = (some: readonly Change[]) => bigintArray(some.map(({ entry }) => entry.version));
  const { dated } = table;
  const stored = dated ? rows.filter(({ image }) => image.length > 0) : rows;
  const upsert: Call = {
    statement: upserts.get(table) as Statement,
    values: [
      ...keysOf(stored),
      ...(dated ? [bigintArray(stored.map(({ image }) => dated.day(image)))] : []),
      versionsOf(stored),
      byteaArray(stored.map(({ record }) => record)),
    ],
  };
  const undated = dated ? rows.filter(({ image }) => image.length === 0) : [];
  if (undated.length === 0) return [upsert];
  const burial: Call = {
    statement: undatedBurials.get(table) as Statement,
    values: [...keysOf(undated), versionsOf(undated)],
  };
  return stored.length === 0 ? [burial] : [upsert, burial];
}

function encode(changes: readonly Change[]): Encoded {
  const calls: Call[] = [];
  const allSequences: SequenceChange[] = [];
  for (const [table, rows] of byTable(changes)) {
    calls.push(...rowCalls(table, rows));
    if (!table.sequence) continue;
    const found = sequences(table, rows);
    allSequences.push(...found);
    calls.push(sequenceCall(table, found) as Call);
  }
  return { changes, sequences: allSequences, calls };
}

/** Returns the registered incarnations of partitions, or 0 for a partition that was never opened. */
export async function readIncarnations(
  pool: Pool,
  partitions: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ partition: number; incarnation: number }>(registeredIncarnations, [
    partitions,
  ]);
  const registered = new Map(rows.map(({ partition, incarnation }) => [partition, incarnation]));
  return new Map(partitions.map((partition) => [partition, registered.get(partition) ?? 0]));
}

/** `incarnations` must have been read from Postgres before the journals were read. */
export function prepareBatch(
  prefixes: readonly JournalPrefix[],
  incarnations: ReadonlyMap<number, number>,
): PreparedBatch {
  const { changes, unreadable } = gather(prefixes.flatMap(({ entries }) => entries));
  return { watermarks: watermarks(prefixes, incarnations), unreadable, ...encode(changes) };
}

function watermarks(prefixes: readonly JournalPrefix[], incarnations: ReadonlyMap<number, number>): Call {
  const sorted = [...prefixes].sort((a, b) => a.partition - b.partition);
  const values = [
    bigintArray(sorted.map(({ partition }) => partition)),
    bigintArray(sorted.map(({ last }) => last)),
    bigintArray(sorted.map(({ partition }) => incarnations.get(partition) ?? 0)),
  ];
  return { statement: raiseWatermarks, values };
}

/**
 * Returns the last statement of a transaction whose entities were read from Redis and not from a journal. The statement
 * fails if an incarnation was raised after `incarnations` was read. Read `incarnations` from Postgres before the
 * entities from Redis.
 */
export function incarnationCheck(incarnations: ReadonlyMap<number, number>): Call {
  const sorted = [...incarnations].sort(([a], [b]) => a - b);
  const values = [0, 1].map((column) => bigintArray(sorted.map((pair) => pair[column] as number)));
  return { statement: checkIncarnations, values };
}

type Quarantine = (entry: JournalEntry, reason: string) => Promise<void>;

const quarantineIn =
  (pool: Pool, onQuarantine: OnQuarantine): Quarantine =>
  async (entry, reason) => {
    // Replaces U+0000, because Postgres cannot store it in text.
    const entity = entry.entity.replaceAll('\0', '\ufffd');
    const { count } = await pool.query(quarantineEntry, [
      entry.partition,
      entry.version,
      entity,
      entry.image,
      reason.replaceAll('\0', '\ufffd').slice(0, reasonLengthMax),
    ]);
    // Reports an entry only once. If the batch was written before, the entry is already in quarantine.
    if (count > 0) onQuarantine(entry, reason);
  };

/** Runs statements in a transaction that it always rolls back. Throws the errors of the statements. */
async function tryOut(pool: Pool, calls: readonly Call[]): Promise<void> {
  const end = new Error('rolled back');
  const tried = pool.transaction(async (tx) => {
    for (const { statement, values } of calls) await tx.query(statement, values);
    throw end;
  });
  await tried.catch((error) => {
    if (error !== end) throw error;
  });
}

/**
 * Returns the changes that Postgres accepts. Halves the refused changes repeatedly until each refused entry is
 * isolated, and quarantines these entries.
 */
async function accepted(
  pool: Pool,
  changes: readonly Change[],
  quarantine: Quarantine,
): Promise<readonly Change[]> {
  try {
    await tryOut(pool, encode(changes).calls);
    return changes;
  } catch (error) {
    if (!isDataError(error)) throw error;
    if (changes.length === 1) {
      await quarantine((changes[0] as Change).entry, (error as Error).message);
      return [];
    }
    const middle = changes.length >> 1;
    const first = await accepted(pool, changes.slice(0, middle), quarantine);
    return [...first, ...(await accepted(pool, changes.slice(middle), quarantine))];
  }
}

/** Writes in one transaction all changes that are not quarantined. Returns the written changes. */
async function commitAccepted(
  pool: Pool,
  batch: Encoded,
  quarantine: Quarantine,
  commit: (calls: readonly Call[]) => Promise<unknown>,
): Promise<Written> {
  try {
    await commit(batch.calls);
    return batch;
  } catch (error) {
    if (!isDataError(error)) throw error;
  }
  const rest = encode(await accepted(pool, batch.changes, quarantine));
  await commit(rest.calls);
  return rest;
}

export async function writeEntries(
  pool: Pool,
  entries: readonly JournalEntry[],
  onQuarantine: OnQuarantine,
  check: Call,
): Promise<void> {
  const batch = encode(gather(entries).changes);
  const commit = (calls: readonly Call[]) => pool.batch([...calls, check]);
  if (batch.calls.length > 0) await commitAccepted(pool, batch, quarantineIn(pool, onQuarantine), commit);
}

export async function writeSequences(
  pool: Pool,
  table: JournalTable,
  found: readonly SequenceChange[],
  check: Call,
): Promise<void> {
  const call = sequenceCall(table, found);
  if (call !== null && found.length > 0) await pool.batch([call, check]);
}

/**
 * Writes a batch to the shard of this pool, to which all partitions of the batch must belong. When this function
 * returns, each entry is in quarantine, or its table has this version or a later one, so the entries may leave the
 * journal. Throws any error of the database itself. After such an error, the journals must not be trimmed, and the same
 * batch can be written again. If `markRow` is given, the transaction raises the mark in this row (`history.ts` explains
 * marks). The caller must store this mark in Redis before entries leave the journal.
 */
export async function writeBatch(
  pool: Pool,
  batch: PreparedBatch,
  onQuarantine: OnQuarantine,
  markRow?: number,
): Promise<WrittenBatch> {
  let raised: readonly RaisedMark[] = [];
  const commit = async (changes: readonly Call[]) => {
    const calls = [...changes, batch.watermarks];
    if (markRow === undefined) await pool.batch(calls);
    else raised = await pool.batch<RaisedMark>(calls, (server) => raiseMark(server, markRow));
  };
  const quarantine = quarantineIn(pool, onQuarantine);
  for (const entry of batch.unreadable) await quarantine(entry, 'unknown or malformed entity');
  const written = await commitAccepted(pool, batch, quarantine, commit);
  return { raised, ...written };
}
