/**
 * Raises marks. A mark is a counter in Postgres that every transaction which changes something raises
 * (`src/journal/history.ts` explains why).
 */
import type { Random } from '../random.js';
import { postgresLimits as limits } from './limits.js';
import { type Call, type Pool, statement, type Transaction } from './pool.js';

/** The mark that a transaction raised. A transaction that changed nothing raised no mark. */
export interface RaisedMark {
  readonly shard: number;
  readonly server: string;
  readonly raised: number;
  /** `last_id` is the last id that was assigned, `last_version` the last version of a control record. */
  readonly last_id: number;
  readonly last_version: number;
  /**
   * What the transaction revoked, one item per line. A line is `+` and a revoked item, or `-` and an item that is valid
   * again.
   */
  readonly revocations: string;
}

export interface ControlMarks {
  readonly random: Random;
  /**
   * Reports a committed transaction to Redis, and waits until Redis has stored the report. If Redis is unavailable, the
   * report is sent together with a later one. Error: `unavailable` if the server that committed the transaction was
   * replaced by a server that lacks the transaction.
   */
  note(raised: readonly RaisedMark[]): Promise<void>;
  /**
   * Announces committed flushes (src/store/core/flush_hints.ts). `servers` are the servers that committed the flushes.
   * If one of these servers was replaced by another one, announces nothing. Error: `unavailable` in this case.
   */
  announce(servers: readonly string[], hint: string): Promise<void>;
}

const raise = statement(
  'raise_control_mark',
  'select $1::int as shard, $2::text as server, raised, last_id, last_version, revocations from raise_control_mark($1, $2)',
);

/**
 * Picks a random row of the marks. There are several rows, so that two transactions that end at the same time rarely
 * wait for each other.
 */
export const drawMarkRow = (random: Random): number =>
  Math.floor(random.number() * limits.control_mark_shards);

/**
 * Builds the statement that raises a mark, which must be the last one of its transaction. It fails unless the server
 * has this name.
 */
export const raiseMark = (server: string, row: number): Call => ({ statement: raise, values: [row, server] });

/**
 * Runs a transaction. If `marks` is given, raises a mark at the end of the transaction, and returns only after Redis
 * has stored the mark.
 */
export async function markedTransaction<T>(
  pool: Pick<Pool, 'transaction'>,
  marks: ControlMarks | undefined,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { result, raised } = await pool.transaction(async (tx) => {
    const result = await work(tx);
    if (marks === undefined) return { result, raised: [] };
    const { statement, values } = raiseMark(tx.server, drawMarkRow(marks.random));
    return { result, raised: (await tx.query<RaisedMark>(statement, values)).rows };
  });
  await marks?.note(raised);
  return result;
}
