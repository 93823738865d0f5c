/** Copies whole tables out of a database, or into an empty database. All tables are read in one snapshot. */
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { openSession } from './session.js';

export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
}

export interface SequenceState {
  readonly name: string;
  readonly last: string;
  /** Whether the sequence has already returned the value `last`. */
  readonly called: boolean;
}

/** The content of all tables at the moment when the snapshot was opened. */
export type Snapshot = Awaited<ReturnType<typeof openSnapshot>>;

/** The tables that are not copied, because the migration runner and running nodes fill them. */
const ownTables = ['schema_migrations', 'redis_nodes', 'shard_nodes'];

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

const shapes = `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
  from pg_class c join pg_attribute a on a.attrelid = c.oid
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
   and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and c.relname <> all($1::text[])
 group by c.relname order by c.relname`;

const references = `select k.conrelid::regclass::text as child, k.confrelid::regclass::text as parent
  from pg_constraint k where k.contype = 'f' and k.conrelid <> k.confrelid and k.connamespace = 'public'::regnamespace`;

/** Sorts tables so that each one follows the tables that it references. Throws if the references form a cycle. */
function ordered(
  tables: readonly TableShape[],
  links: readonly { readonly child: string; readonly parent: string }[],
): TableShape[] {
  const left = new Map(tables.map((table) => [table.name, table]));
  const sorted: TableShape[] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter(
      ({ name }) => !links.some(({ child, parent }) => child === name && left.has(parent)),
    );
    if (free.length === 0) throw new Error(`tables refer to each other: ${[...left.keys()].join(', ')}`);
    for (const table of free) {
      left.delete(table.name);
      sorted.push(table);
    }
  }
  return sorted;
}

const connect = (url: string) => openSession(url, 'petrel-copy', 5_000);

export async function openSnapshot(url: string) {
  const client = await connect(url);
  await client.query('begin isolation level repeatable read read only');
  return {
    /** Returns the tables in an order in which each table follows the tables that it references. */
    async tables(): Promise<TableShape[]> {
      const tables = await client.query<{ name: string; columns: string[] }>(shapes, [ownTables]);
      const links = await client.query<{ child: string; parent: string }>(references);
      return ordered(tables.rows, links.rows);
    },
    async sequences(): Promise<SequenceState[]> {
      const { rows } = await client.query<{ name: string }>(
        "select sequencename as name from pg_sequences where schemaname = 'public' order by 1",
      );
      const states: SequenceState[] = [];
      for (const { name } of rows) {
        const state = await client.query(
          `select last_value::text as last, is_called as called from ${quoted(name)}`,
        );
        states.push({ name, ...state.rows[0] });
      }
      return states;
    },
    /** Returns the number of partitions, and the check values of keys and peppers. */
    async installation(): Promise<Record<string, string>> {
      const { rows } = await client.query('select name, value from installation');
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    },
    async copyOut(
      { name, columns }: TableShape,
      to: readonly [...NodeJS.ReadWriteStream[], Writable],
    ): Promise<number> {
      // Copies the result of a query, because COPY of a partitioned table omits the rows in its partitions.
      const out = client.query(
        copyTo(`copy (select ${columns.map(quoted).join(', ')} from ${quoted(name)}) to stdout`),
      );
      await pipeline([out, ...to]);
      return out.rowCount ?? 0;
    },
    // Closes the connection without a commit, because the transaction has only read.
    close: (): Promise<void> => client.end(),
  };
}

export async function isEmpty(url: string): Promise<boolean> {
  const client = await connect(url);
  try {
    const { rows } = await client.query(
      "select not exists (select from pg_tables where schemaname = 'public') as empty",
    );
    return rows[0].empty;
  } finally {
    await client.end();
  }
}

export interface TableSource extends TableShape {
  readonly rows: number;
  open(): readonly [Readable, ...NodeJS.ReadWriteStream[]];
}

/**
 * Replaces the content of these tables, in the given order, and the state of the sequences, in one transaction. Throws
 * the errors of Postgres. Also throws if a table received an unexpected number of rows. After an error, the database is
 * unchanged.
 */
export async function copyIn(
  url: string,
  tables: readonly TableSource[],
  sequences: readonly SequenceState[],
): Promise<void> {
  const client = await connect(url);
  try {
    await client.query('begin');
    await client.query(`truncate ${tables.map(({ name }) => quoted(name)).join(', ')}`);
    for (const { name, columns, rows, open } of tables) {
      const into = client.query(
        copyFrom(`copy ${quoted(name)} (${columns.map(quoted).join(', ')}) from stdin`),
      );
      await pipeline([...open(), into]);
      if (into.rowCount !== rows) throw new Error(`${name}: ${into.rowCount} rows instead of ${rows}`);
    }
    for (const { name, last, called } of sequences)
      await client.query('select setval($1::regclass, $2::bigint, $3)', [quoted(name), last, called]);
    await client.query('commit');
    await client.query('analyze');
  } finally {
    await client.end();
  }
}
