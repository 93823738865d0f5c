/**
 * Runs prepared statements in one transaction with a single message to Postgres. Postgres runs all statements before a
 * Sync message in one transaction, and commits it at the Sync. Separate queries would need a `begin` and a `commit`,
 * and for each statement an object, a timer and an answer.
 */
import pg from 'pg';
import utils from 'pg/lib/utils.js';

interface Call {
  readonly statement: { readonly name: string; readonly text: string };
  readonly values: readonly unknown[];
}

interface Bound {
  readonly statement: string;
  readonly values: readonly unknown[];
}

/** The members of a `pg` connection that the types of `pg` lack. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void };
  /** The texts of the statements that this connection has prepared, keyed by name. */
  readonly parsedStatements: Readonly<Record<string, string>>;
  bind(message: Bound): void;
  describe(message: { readonly type: 'P' }): void;
  execute(): void;
  sync(): void;
}

class PreparedBatch extends pg.Query {
  readonly #bound: readonly Bound[];

  constructor(calls: readonly Call[]) {
    super({ text: '' });
    // Converts all values before the first statement is sent. If a conversion failed later, the batch would end without
    // its Sync message.
    this.#bound = calls.map(({ statement: { name }, values }) => ({
      statement: name,
      values: values.map(utils.prepareValue),
    }));
    // Replaces the method with which `pg` sends a single statement.
    this.submit = (connection) => this.#send(connection as unknown as Connection);
  }

  #send(connection: Connection): null {
    connection.stream.cork();
    try {
      for (const each of this.#bound) {
        connection.bind(each);
        connection.describe({ type: 'P' });
        connection.execute();
      }
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
    return null;
  }
}

/** Returns whether a connection has prepared all statements of these calls. */
export function arePrepared(client: pg.PoolClient, calls: readonly Call[]): boolean {
  const { parsedStatements } = (client as unknown as { readonly connection: Connection }).connection;
  return calls.every(({ statement: { name, text } }) => parsedStatements[name] === text);
}

/**
 * Runs calls in one transaction. The connection must have prepared their statements. Returns the result of the last
 * call. Rejects with the first error. The database is then unchanged, unless the connection was lost during the commit.
 */
export function runPrepared<R extends object>(
  client: pg.PoolClient,
  calls: readonly Call[],
): Promise<{ readonly rows: R[]; readonly count: number }> {
  return new Promise((resolve, reject) => {
    const query = new PreparedBatch(calls);
    // For several statements, `pg` returns an array with one result each. For a single statement, `pg` returns the
    // result itself.
    const done = (error: Error | undefined, results: pg.QueryResult<R> | Array<pg.QueryResult<R>>) => {
      if (error) return reject(error);
      const last = Array.isArray(results) ? results.at(-1) : results;
      resolve({ rows: last?.rows ?? [], count: last?.rowCount ?? 0 });
    };
    client.query(Object.assign(query, { callback: done }));
  });
}
