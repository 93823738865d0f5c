/** Manages connections to Postgres: prepares statements, repeats failed transactions, and classifies errors. */

import pg from 'pg';
import { ApiError } from '../errors.js';
import { type Random, systemRandom } from '../random.js';
import { addressOf, type PostgresAddress } from '../rules/database_url.js';
import { systemTime, type Time } from '../time.js';
import { postgresLimits as limits } from './limits.js';
import { arePrepared, runPrepared } from './prepared_batch.js';

/** A statement that each connection prepares once. Statements with the same name must have the same text. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export const statement = (name: string, text: string): Statement => ({ name, text });

export interface Result<R> {
  readonly rows: R[];
  readonly count: number;
}

export interface Queryable {
  /** Runs a prepared statement. A Buffer is sent in binary form. A bigint is returned as a number. */
  query<R extends object = Record<string, unknown>>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<Result<R>>;
}

export interface Transaction extends Queryable {
  readonly server: string;
}

/**
 * The cause of a guard's error if the guard refuses the server. An error with any other cause means that the server
 * could not be checked.
 */
export class RefusedServer extends Error {}

export interface Guard {
  /**
   * Returns the name of the server to which the connection leads. Throws an error if this server must not be used now.
   * The pool passes this error to its caller.
   */
  admit(connection: Queryable): Promise<string>;
}

export interface Call {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

export interface Pool extends Queryable {
  /**
   * Runs `fn` in one transaction. If Postgres aborts the transaction because of a deadlock or serialisation failure,
   * runs `fn` again from the start, up to 8 times. `fn` must therefore have no effect outside the database. If the
   * connection is lost during the commit, the error does not say whether the commit succeeded. A transaction that must
   * not be applied twice therefore needs to write a row from which the caller can tell.
   */
  transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs statements in one transaction and one round trip. Repeats the transaction as `transaction` does. No statement
   * may depend on the results of another statement. `last` creates the last statement from the server's name, which the
   * guard returned. Returns the rows of the last statement. If a statement fails, throws the first error and leaves the
   * database unchanged.
   */
  batch<R extends object = Record<string, unknown>>(
    calls: readonly Call[],
    last?: (server: string) => Call,
  ): Promise<R[]>;
  /** Makes the guard check the open connections again, because a pooler may have moved them to another server. */
  recheck(): Promise<void>;
  retries(): number;
  stats(): { readonly busy: number; readonly idle: number; readonly waiting: number };
  close(): Promise<void>;
}

export interface PoolOptions {
  /**
   * A URL in the format of `parseAddress`. If it has several hosts, the pool uses the host that was accepted last until
   * this host fails.
   */
  readonly url: string;
  readonly max: number;
  readonly name: string;
  readonly guard?: Guard;
  /** Whether the pool may use a standby. */
  readonly standby?: boolean;
  readonly onError?: (error: Error) => void;
  /** How long a query waits for a free or a new connection, in ms. The default is 2,000. */
  readonly connectMsMax?: number;
  readonly time?: Time;
  readonly random?: Random;
}

const transactionTriesMax = 8;

const isStandby = statement('is_standby', 'select pg_is_in_recovery() as standby');

const bigintOid = 20;
const bigintArrayOid = 1016;

/** Converts bigint to number. This is exact, because ids and versions stay below 2^53 (limits.ts). */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === bigintOid && format !== 'binary') return Number;
    if (oid === bigintArrayOid && format !== 'binary') {
      return (text: string) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(Number));
    }
    return pg.types.getTypeParser(oid, format as 'text');
  },
};

const sqlState = (error: unknown): string | undefined =>
  error instanceof pg.DatabaseError ? error.code : undefined;

/**
 * Matches SQLSTATE codes that mean that Postgres cannot serve now. For example, the connection was lost, the server is
 * shutting down or is a standby, or a partition was moved to another shard.
 */
const awayStates = /^(08|53|57|55P03|25006|25P0[34]|PTL02)/;
const awayCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'EADDRNOTAVAIL'],
]);
/** Matches the messages of connection errors that `pg` itself creates. Such an error has no code. */
const awayMessages =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|not queryable|client was closed|connection ended/i;

/**
 * Returns whether an error means that all connections of the pool are in use. The server itself may then be available.
 */
const isBusy = (error: unknown): boolean => /timeout exceeded when trying/.test((error as Error).message);

/**
 * Returns whether an error means that the database is unreachable or unable to serve now. Any other error means that
 * the statement itself is wrong.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof ApiError) return error.kind === 'unavailable';
  const state = sqlState(error);
  if (state !== undefined) return awayStates.test(state);
  if (!(error instanceof Error)) return false;
  return awayCodes.has((error as NodeJS.ErrnoException).code ?? '') || awayMessages.test(error.message);
}

/**
 * Returns whether `raise_control_mark` failed because it ran on a different Postgres server from the one that the guard
 * accepted.
 */
const isOtherServer = (error: unknown): boolean => sqlState(error) === 'PTL01';

/** Returns whether Postgres refused a flush because a partition's incarnation was raised after its journal was read. */
export const isOlderFlush = (error: unknown): boolean => sqlState(error) === 'PTL03';

/**
 * Returns whether a statement failed because of its values, which are out of range, malformed, or violate a constraint.
 */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54|P0001)/.test(sqlState(error) ?? '');
}

/**
 * Returns whether Postgres rolled back because of a concurrent statement or transaction, so that the caller may try
 * again.
 */
export const isRetryable = (error: unknown): boolean => /^(40001|40P01|PTL01)$/.test(sqlState(error) ?? '');

/** Returns whether the connection must not be used again after this error. */
const breaks = (error: unknown): boolean => isUnavailable(error) || isOtherServer(error);

/**
 * The timeouts of each session. Without a pooler, they are startup parameters of the connection. Behind a pooler, the
 * first statements of each transaction set them.
 */
const timeouts = {
  statement_timeout: limits.postgres_statement_timeout_ms,
  // Ends a transaction that stays idle for as long as one statement may run. Otherwise, a process that hangs would keep
  // its row locks.
  idle_in_transaction_session_timeout: limits.postgres_statement_timeout_ms,
};

/**
 * Returns the statements that begin a transaction behind a pooler. They set the timeouts and check that the server is
 * still the same.
 */
function beginPooled(server: string): string {
  const bounds = Object.entries(timeouts).map(([name, ms]) => `set local ${name} = ${ms}`);
  const check = server === '' ? [] : [`select require_server(${pg.escapeLiteral(server)})`];
  return ['begin', ...bounds, ...check].join('; ');
}

/**
 * Manages the connections of a pool. All connections lead to one host until this host fails. Each connection belongs to
 * a generation. A new generation begins when a connection leads to a different server from the one that the guard
 * accepted. Connections of older generations are then closed instead of reused.
 */
class Connections {
  readonly pool: pg.Pool;
  readonly address: PostgresAddress;
  readonly #options: PoolOptions;
  #host = 0;
  #generation = 0;
  /** For each connection, the name of the server that the guard accepted, and the generation of the connection. */
  readonly #admitted = new WeakMap<pg.PoolClient, { readonly server: string; readonly generation: number }>();

  constructor(options: PoolOptions) {
    const { max, name, onError, connectMsMax = 2_000 } = options;
    const address = addressOf(options.url);
    this.#options = options;
    this.address = address;
    const nextUrl = () => address.urls[this.#host % address.urls.length] as string;
    class Client extends pg.Client {
      constructor(config: pg.ClientConfig) {
        super({ ...config, connectionString: nextUrl() });
      }
    }
    this.pool = new pg.Pool({
      max,
      application_name: `petrel-${name}`,
      connectionTimeoutMillis: connectMsMax,
      ...(address.pooled ? {} : timeouts),
      // Limits the duration of a query on the client side too, because an unreachable host cannot send a timeout error.
      query_timeout: limits.postgres_statement_timeout_ms + 1_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // Sends queries without waiting for earlier answers, so that several queries share a round trip.
      pipeline: true,
      types,
      // `pg` calls this function for each new connection, but the types of `pg` do not contain it.
      ...{
        verify: (client: pg.PoolClient, done: (error?: Error) => void) =>
          void this.admit(client).then(() => done(), done),
      },
      Client: Client as unknown as new () => pg.ClientBase,
    });
    this.pool.on('error', (error) => onError?.(error));
    // Handles the error event of a connection that breaks while it is in use. An unhandled error event would end the
    // process.
    this.pool.on('connect', (client) => client.on('error', (error) => onError?.(error)));
  }

  async admit(client: pg.PoolClient): Promise<void> {
    const { guard, standby = false } = this.#options;
    const generation = this.#generation;
    if (guard) {
      const server = await guard.admit({ query: (statement, values) => this.run(client, statement, values) });
      this.#admitted.set(client, { server, generation });
    } else if (this.address.urls.length > 1 && !standby) {
      const { rows } = await this.run<{ standby: boolean }>(client, isStandby);
      if (rows[0]?.standby) throw new ApiError('unavailable', { retry_after: 1 });
    }
  }

  async run<R extends object>(
    client: pg.PoolClient,
    { name, text }: Statement,
    values: readonly unknown[] = [],
  ): Promise<Result<R>> {
    const { rows, rowCount } = await client.query<R>({
      ...(this.address.named ? { name } : {}),
      text,
      values: values as unknown[],
    });
    return { rows, count: rowCount ?? 0 };
  }

  serverOf(client: pg.PoolClient): string {
    return this.#admitted.get(client)?.server ?? '';
  }

  begin(client: pg.PoolClient): Promise<unknown> {
    return client.query(this.address.pooled ? beginPooled(this.serverOf(client)) : 'begin');
  }

  /**
   * Lends a connection to `work`, and then puts it back into the pool. Closes it instead after an error that makes it
   * unusable, or if `work` calls `discard`.
   */
  async lend<T>(work: (client: pg.PoolClient, discard: (error: Error) => void) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    let broken: Error | undefined;
    const discard = (error: Error) => {
      broken = error;
    };
    try {
      return await work(client, discard);
    } catch (error) {
      if (isOtherServer(error)) this.distrust(client);
      if (breaks(error)) discard(error as Error);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /**
   * Begins a new generation. Call this if a connection leads to a different server from the one that the guard
   * accepted. All connections up to the generation of this connection are then closed and replaced.
   */
  distrust(client: pg.PoolClient): void {
    if (!this.#isOld(client)) this.#generation++;
  }

  #isOld(client: pg.PoolClient): boolean {
    const admitted = this.#admitted.get(client);
    return admitted !== undefined && admitted.generation < this.#generation;
  }

  /**
   * Returns a connection of the current generation. If a host is unavailable or the guard refuses it, tries the next
   * host.
   */
  async #connect(): Promise<pg.PoolClient> {
    for (let tries = 1; ; ) {
      const tried = this.#host;
      try {
        const client = await this.pool.connect();
        if (!this.#isOld(client)) return client;
        client.release(true);
      } catch (error) {
        if (tries++ >= this.address.urls.length || !isUnavailable(error) || isBusy(error)) throw error;
        if (this.#host === tried) this.#host++;
      }
    }
  }
}

/** Creates a pool, which connects at the first query. While Postgres is unavailable, calls fail within about 2 s. */
export function createPool(options: PoolOptions): Pool {
  const { time = systemTime, random = systemRandom } = options;
  const connections = new Connections(options);
  const { pool } = connections;
  let retries = 0;

  const once = <T>(fn: (tx: Transaction) => Promise<T>): Promise<T> =>
    connections.lend(async (client, discard) => {
      try {
        await connections.begin(client);
        const result = await fn({
          query: (statement, values) => connections.run(client, statement, values),
          server: connections.serverOf(client),
        });
        await client.query('commit');
        return result;
      } catch (error) {
        if (!breaks(error)) await client.query('rollback').catch(discard);
        throw error;
      }
    });

  const batchOnce = <R extends object>(calls: readonly Call[], last?: (server: string) => Call) =>
    connections.lend(async (client): Promise<Result<R>> => {
      const all = last === undefined ? calls : [...calls, last(connections.serverOf(client))];
      if (!connections.address.pooled && arePrepared(client, all)) return runPrepared<R>(client, all);
      // Sends all statements and the commit at once. If a statement fails, Postgres refuses the following ones and
      // turns the commit into a rollback.
      const began = connections.begin(client);
      const ran = all.map(({ statement, values }) => connections.run<R>(client, statement, values));
      const ended = client.query('commit');
      for (const end of await Promise.allSettled([began, ...ran, ended]))
        if (end.status === 'rejected') throw end.reason;
      return (await ran.at(-1)) ?? { rows: [], count: 0 };
    });

  async function again<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (!isRetryable(error) || tries >= transactionTriesMax) throw error;
        retries++;
        await time.sleep(random.number() * 5 * 2 ** tries);
      }
    }
  }

  return {
    query: <R extends object>(statement: Statement, values: readonly unknown[] = []) =>
      again(() =>
        connections.address.pooled
          ? batchOnce<R>([{ statement, values }])
          : connections.lend((client) => connections.run<R>(client, statement, values)),
      ),
    transaction: (fn) => again(() => once(fn)),
    batch: <R extends object>(calls: readonly Call[], last?: (server: string) => Call) =>
      again(async () => (await batchOnce<R>(calls, last)).rows),
    recheck: () =>
      connections.lend((client, discard) =>
        connections.admit(client).catch((error) => {
          if (error.cause instanceof RefusedServer) connections.distrust(client);
          discard(error);
          throw error;
        }),
      ),
    retries: () => retries,
    stats: () => ({
      busy: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    close: () => pool.end(),
  };
}
