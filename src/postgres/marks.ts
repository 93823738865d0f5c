/** Raises marks, which are counters in Postgres. Every transaction that changes something raises a mark. */
import type { Random } from '../random.js';
import { postgresLimits as limits } from './limits.js';
import { type Call, type Pool, statement, type Transaction } from './pool.js';

/** The mark that a transaction raised. A transaction without changes raises no mark. */
export interface RaisedMark {
  readonly shard: number;
  readonly server: string;
  readonly raised: number;
  /** The last id that was assigned, and the last version of a control record. */
  readonly last_id: number;
  readonly last_version: number;
  /** The changes, one per line. A line is `+` and a revoked item, or `-` and an item that is valid again. */
  readonly revocations: string;
}

export interface ControlMarks {
  readonly random: Random;
  /**
   * Reports a committed transaction to Redis, and waits until Redis has stored the report. If Redis is unavailable, the
   * report is sent together with the next report. Error: `unavailable` if the server that committed the transaction has
   * been replaced by a server that lacks the transaction.
   */
  note(raised: readonly RaisedMark[]): Promise<void>;
  /**
   * Announces committed flushes (src/store/core/flush_hints.ts). `servers` are the servers that committed the flushes.
   * Error: `unavailable`, without an announcement, if another server has replaced one of these servers.
   */
  announce(servers: readonly string[], hint: string): Promise<void>;
}

const raise = statement(
  'raise_control_mark',
  'select $1::int as shard, $2::text as server, raised, last_id, last_version, revocations from raise_control_mark($1, $2)',
);

/**
 * Picks a random row for a mark. There are several rows, so that two transactions that end at the same time rarely wait
 * for each other.
 */
export const drawMarkRow = (random: Random): number =>
  Math.floor(random.number() * limits.control_mark_shards);

/** Builds the last statement of a transaction on the server with this name. */
export const raiseMark = (server: string, row: number): Call => ({ statement: raise, values: [row, server] });

/**
 * Runs a transaction. With `marks`, the transaction raises a mark at its end, and the call returns only after Redis has
 * stored the mark.
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
