/** Connections to Postgres: prepared statements, transactions with retries, and the classification of errors. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import { addressOf } from '../rules/database_url.js';

/** A statement that is prepared once per connection, under its name. Each name must have one text only. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export const statement = (name: string, text: string): Statement => ({ name, text });

export interface Result<R> {
  readonly rows: R[];
  /** Number of rows returned or changed. */
  readonly count: number;
}

export interface Queryable {
  /** Runs a prepared statement. A Buffer is sent in binary form; bigint is returned as a number. */
  query<R extends object = Record<string, unknown>>(
    statement: Statement,
    values?: readonly unknown[],
  ): Promise<Result<R>>;
}

/** One transaction on one connection. */
export interface Transaction extends Queryable {
  /** The server of the connection, as the guard named it; '' without a guard. */
  readonly server: string;
}

/** Cause of an error when the guard refuses a server, as opposed to one that could not be checked now. */
export class RefusedServer extends Error {}

/** Checks each new connection before it is used. */
export interface Guard {
  /** Names the server of a connection. Throws the error for the caller if that server must not be used now. */
  admit(connection: Queryable): Promise<string>;
}

/** A statement with its values. */
export interface Call {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

export interface Pool extends Queryable {
  /**
   * Runs `fn` in one transaction. Runs it again from the start (at most 8 times) when Postgres ends the transaction
   * because of a deadlock or serialisation failure, so `fn` must have no effect outside. When the connection is lost
   * during the commit, the error does not tell the outcome: a change that must not happen twice needs a row that
   * records it.
   */
  transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs statements whose values do not depend on each other's results in one transaction and one round trip, with
   * the retries of `transaction`. `last` makes the last statement from the guard's name of the server. Returns the
   * rows of the last statement. Errors: the first error of a statement; then nothing is changed.
   */
  batch<R extends object = Record<string, unknown>>(
    calls: readonly Call[],
    last?: (server: string) => Call,
  ): Promise<R[]>;
  /** Makes the guard check old open connections again, because a pooler may have switched their server. */
  recheck(): Promise<void>;
  /** Number of transaction retries since the start. */
  retries(): number;
  /** Numbers of connections in use, of idle ones, and of calls that wait for one. */
  stats(): { readonly busy: number; readonly idle: number; readonly waiting: number };
  /** Waits for running calls, then closes every connection. */
  close(): Promise<void>;
}

export interface PoolOptions {
  /** URL as read by `parseAddress`. With several hosts, the one admitted last is used until it fails. */
  readonly url: string;
  /** The greatest number of connections. */
  readonly max: number;
  /** Application name that Postgres shows. */
  readonly name: string;
  readonly guard?: Guard;
  /** Whether a standby among several hosts may be used. */
  readonly standby?: boolean;
  /** Called for connections that fail while no call waits for them. */
  readonly onError?: (error: Error) => void;
}

const transactionTriesMax = 8;
const connectMsMax = 2_000;

const isStandby = statement('is_standby', 'select pg_is_in_recovery() as standby');

const bigintOid = 20;
const bigintArrayOid = 1016;

/** Ids and versions stay below 2^53 (limits.ts), so a number holds them exactly. */
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
 * SQLSTATEs by which Postgres says that it cannot serve now: connection lost, resources, shutdown or cancelled, lock
 * not available, read-only (a standby), idle too long in a transaction, or that a partition was moved to another
 * shard.
 */
const awayStates = /^(08|53|57|55P03|25006|25P0[34]|PTL02)/;
const awayCodes = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'EADDRNOTAVAIL'],
]);
/** Connection errors of `pg` itself have no code, only a text. */
const awayMessages =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|not queryable|client was closed|connection ended/i;

/** Whether all connections of the pool are in use, which says nothing about the server. */
const isBusy = (error: unknown): boolean => /timeout exceeded when trying/.test((error as Error).message);

/**
 * Whether an error means that the database is lost, unreachable or unable to serve, rather than that the statement is
 * wrong.
 */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof ApiError) return error.kind === 'unavailable';
  const state = sqlState(error);
  if (state !== undefined) return awayStates.test(state);
  if (!(error instanceof Error)) return false;
  return awayCodes.has((error as NodeJS.ErrnoException).code ?? '') || awayMessages.test(error.message);
}

/** Whether Postgres answered from another server than the one that the guard admitted (`raise_control_mark`). */
const isOtherServer = (error: unknown): boolean => sqlState(error) === 'PTL01';

/** Whether an error is caused by the values sent: out of range, malformed, or against a constraint. */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54|P0001)/.test(sqlState(error) ?? '');
}

const isRetryable = (error: unknown): boolean => /^(40001|40P01|PTL01)$/.test(sqlState(error) ?? '');

/** Whether a connection must not be used again after this error. */
const breaks = (error: unknown): boolean => isUnavailable(error) || isOtherServer(error);

/** Bounds of a session, set by startup parameters, or in each transaction behind a pooler. */
const timeouts = {
  statement_timeout: limits.postgres_statement_timeout_ms,
  // Ends the row locks of a process that was stopped in a transaction after the time bound of a statement.
  idle_in_transaction_session_timeout: limits.postgres_statement_timeout_ms,
};

/**
 * The first statements of each transaction through a pooler: they set bounds and check that the server is still the
 * same.
 */
function beginPooled(server: string): string {
  const bounds = Object.entries(timeouts).map(([name, ms]) => `set local ${name} = ${ms}`);
  const check = server === '' ? [] : [`select require_server(${pg.escapeLiteral(server)})`];
  return ['begin', ...bounds, ...check].join('; ');
}

/** Creates a pool. It connects with the first query; while Postgres is unavailable, calls reject within about 2 s. */
export function createPool({ url, max, name, guard, standby = false, onError }: PoolOptions): Pool {
  const { urls, pooled, named } = addressOf(url);
  /** Index of the host that new connections use. */
  let host = 0;
  /** Generation of connections: those made before the last change of server are closed instead of reused. */
  let age = 0;
  const lent = new WeakMap<pg.PoolClient, { readonly server: string; readonly age: number }>();

  async function run<R extends object>(
    client: pg.PoolClient,
    { name, text }: Statement,
    values: readonly unknown[] = [],
  ): Promise<Result<R>> {
    const { rows, rowCount } = await client.query<R>({
      ...(named ? { name } : {}),
      text,
      values: values as unknown[],
    });
    return { rows, count: rowCount ?? 0 };
  }
  const over = (client: pg.PoolClient): Queryable => ({
    query: (statement, values) => run(client, statement, values),
  });
  const serverOf = (client: pg.PoolClient) => lent.get(client)?.server ?? '';
  const isOld = (client: pg.PoolClient) => (lent.get(client)?.age ?? age) < age;
  /** Replaces all connections of this connection's generation or older. */
  const distrust = (client: pg.PoolClient) => {
    if (!isOld(client)) age++;
  };

  async function admit(client: pg.PoolClient): Promise<void> {
    const now = age;
    if (guard) lent.set(client, { server: await guard.admit(over(client)), age: now });
    else if (
      urls.length > 1 &&
      !standby &&
      (await run<{ standby: boolean }>(client, isStandby)).rows[0]?.standby
    )
      throw new ApiError('unavailable', { retry_after: 1 });
  }

  class Client extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, connectionString: urls[host % urls.length] as string });
    }
  }

  const pool = new pg.Pool({
    max,
    application_name: `petrel-${name}`,
    connectionTimeoutMillis: connectMsMax,
    ...(pooled ? {} : timeouts),
    // Bounds the wait on this side too, because a host that vanished cannot send a timeout error.
    query_timeout: limits.postgres_statement_timeout_ms + 1_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Queries that are sent without waiting for each other share a round trip; other queries behave as usual.
    pipeline: true,
    types,
    // `pg` has this callback for each new connection, but its types do not.
    ...{
      verify: (client: pg.PoolClient, done: (error?: Error) => void) =>
        void admit(client).then(() => done(), done),
    },
    Client: Client as unknown as new () => pg.ClientBase,
  });
  let retries = 0;
  pool.on('error', (error) => onError?.(error));
  // A connection that breaks while it is in use emits an error without another listener.
  pool.on('connect', (client) => client.on('error', (error) => onError?.(error)));

  /** Returns a connection of the current generation, to the first host that serves. */
  async function connect(): Promise<pg.PoolClient> {
    for (let tries = 1; ; ) {
      const tried = host;
      try {
        const client = await pool.connect();
        if (!isOld(client)) return client;
        client.release(true);
      } catch (error) {
        if (tries++ >= urls.length || !isUnavailable(error) || isBusy(error)) throw error;
        if (host === tried) host++;
      }
    }
  }
  const begin = (client: pg.PoolClient) => client.query(pooled ? beginPooled(serverOf(client)) : 'begin');

  async function once<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const client = await connect();
    let broken: Error | undefined;
    try {
      await begin(client);
      const result = await fn({ ...over(client), server: serverOf(client) });
      await client.query('commit');
      return result;
    } catch (error) {
      if (isOtherServer(error)) distrust(client);
      if (breaks(error)) broken = error as Error;
      else await client.query('rollback').catch((failure: Error) => (broken = failure));
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async function batchOnce<R extends object>(
    calls: readonly Call[],
    last?: (server: string) => Call,
  ): Promise<Result<R>> {
    const client = await connect();
    let broken: Error | undefined;
    const all = last === undefined ? calls : [...calls, last(serverOf(client))];
    // After a statement fails, Postgres refuses the following ones and turns the commit into a rollback.
    const began = begin(client);
    const ran = all.map(({ statement, values }) => run<R>(client, statement, values));
    const ended = client.query('commit');
    for (const end of await Promise.allSettled([began, ...ran, ended])) {
      if (end.status === 'fulfilled') continue;
      if (isOtherServer(end.reason)) distrust(client);
      if (breaks(end.reason)) broken = end.reason;
      client.release(broken);
      throw end.reason;
    }
    client.release();
    return (await ran.at(-1)) ?? { rows: [], count: 0 };
  }

  async function again<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (!isRetryable(error) || tries >= transactionTriesMax) throw error;
        retries++;
        await sleep(Math.random() * 5 * 2 ** tries);
      }
    }
  }

  return {
    async query<R extends object>(statement: Statement, values: readonly unknown[] = []) {
      if (pooled) return again(() => batchOnce<R>([{ statement, values }]));
      const client = await connect();
      let broken: Error | undefined;
      try {
        return await run<R>(client, statement, values);
      } catch (error) {
        if (isUnavailable(error)) broken = error as Error;
        throw error;
      } finally {
        client.release(broken);
      }
    },
    transaction: (fn) => again(() => once(fn)),
    batch: <R extends object>(calls: readonly Call[], last?: (server: string) => Call) =>
      again(async () => (await batchOnce<R>(calls, last)).rows),
    async recheck() {
      const client = await connect();
      let broken: Error | undefined;
      try {
        await admit(client);
      } catch (error) {
        if ((error as Error).cause instanceof RefusedServer) distrust(client);
        broken = error as Error;
        throw error;
      } finally {
        client.release(broken);
      }
    },
    retries: () => retries,
    stats: () => ({
      busy: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    close: () => pool.end(),
  };
}
