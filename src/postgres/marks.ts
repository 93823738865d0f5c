/**
 * Raises marks. A mark is a counter in Postgres. Every transaction that changes something raises it
 * (`src/journal/history.ts` explains why).
 */
import type { Random } from '../random.js';
import { postgresLimits as limits } from './limits.js';
import { type Call, type Pool, statement, type Transaction } from './pool.js';

/** The result of raising a mark. A mark counts the transactions that changed something. */
export interface RaisedMark {
  readonly shard: number;
  readonly server: string;
  readonly raised: number;
  /** `last_id` is the last id that was assigned, `last_version` the last version of a control record. */
  readonly last_id: number;
  readonly last_version: number;
  /**
   * What the transaction revoked, one item per line. `+` precedes a revoked item, and `-` precedes an item that is
   * valid again.
   */
  readonly revocations: string;
}

export interface ControlMarks {
  readonly random: Random;
  /**
   * Reports a committed transaction to Redis, and waits until Redis has stored the report. If Redis is unavailable, the
   * report is sent together with a later report. Error: `unavailable` if the server that committed the transaction was
   * replaced by a server that lacks the transaction.
   */
  note(raised: readonly RaisedMark[]): Promise<void>;
  /**
   * Announces committed flushes (src/store/core/flush_hints.ts). `servers` are the Postgres servers that committed the
   * flushes. If one of these servers was replaced, announces nothing and fails with `unavailable`.
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
 * Builds the statement that raises a mark. The statement must come last in its transaction. It fails if it runs on a
 * Postgres server with another name than `server`.
 */
export const raiseMark = (server: string, row: number): Call => ({ statement: raise, values: [row, server] });

/**
 * Runs a transaction. If `marks` is given, raises a mark (a counter of changes) at the end of the transaction, and
 * returns only after Redis has stored this mark.
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
