/**
 * Detects that Postgres was restored to an earlier state, and repairs the consequences. Each transaction that changes
 * something raises a counter in Postgres, the mark. After the commit, Redis stores the mark too. If the mark in
 * Postgres is below the mark in Redis, Postgres has lost committed transactions. Such a Postgres serves no requests
 * until three repairs are done:
 * - The lost revocations are repeated.
 * - The sequences are advanced past every value that they returned.
 * - All cached copies of Postgres records are invalidated.
 */

import { ApiError } from '../errors.js';
import type { ControlMarks, RaisedMark } from '../postgres/marks.js';
import {
  acceptServer,
  beginRewrite,
  beginWebhooks,
  loadServerState,
  lockHistory,
  noteLostTransactions,
  revokeAgain,
  type ServerState,
  skipOwnSequences,
  skipSequences,
  waitLong,
} from '../postgres/messages/history.js';
import {
  createPool,
  type Guard,
  isUnavailable,
  type Pool,
  type Queryable,
  RefusedServer,
  statement,
} from '../postgres/pool.js';
import { type Random, systemRandom } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { unavailable } from '../redis/waiting.js';
import { shared } from '../shared.js';
import { piecesOf } from '../store/core/groups.js';
import type { Keys } from '../store/core/keys.js';
import { storeLimits } from '../store/limits.js';
import { systemTime, type Time } from '../time.js';
import { IdentityError } from './identity.js';
import { journalLimits as limits } from './limits.js';

export interface WentBack {
  readonly transactions: number;
  readonly revoked: number;
  readonly incarnation: number;
}

export interface HistoryOptions {
  /** The URL of the database. A repair opens its own connections to it. */
  readonly url: string;
  /** The id of the shard. The default is 0, the control database. */
  readonly shard?: number;
  /**
   * Returns a function that finds the database of a partition. The value `'own'` stands for this database, and the
   * parameter `own` is a connection to it. If `place` is absent, all partitions are in this database.
   */
  readonly place?: (own: Queryable) => Promise<(partition: number) => 'own' | Queryable | null>;
  readonly keys: Keys;
  readonly connection: RedisServers;
  /** A getter, because the script runner does not exist yet when this object is created. */
  readonly runner: () => Pick<ScriptRunner, 'call'>;
  readonly checkInstallation?: (id: string | null) => void;
  readonly onWentBack?: (found: WentBack) => void;
  /** Called when Postgres runs on another server or timeline than before, but has all committed transactions. */
  readonly onOtherServer?: (before: string, now: string) => void;
  /** Called when a server was refused because another server has replaced it. */
  readonly onReplaced?: (why: string) => void;
  readonly onError?: (error: Error) => void;
  readonly time?: Time;
  readonly random?: Random;
}

interface Known {
  readonly gone: ReadonlySet<string>;
  readonly marks: ReadonlyMap<number, number>;
  readonly id: number;
  readonly version: number;
  /** The system identifier and the timeline of the Postgres that is in use. */
  readonly server: string | null;
  /** The server that is in use, in the form that `server_identity` returns. */
  readonly running: string | null;
  readonly incarnation: number;
}

const raiseTriesMax = 5;

const raisePartitions = statement(
  'history_raise_partitions',
  `insert into partitions as p (partition, incarnation)
   select * from unnest($1::int[], $2::int[]) as wanted (partition, incarnation) order by partition
   on conflict (partition) do update set
     incarnation = greatest(p.incarnation, excluded.incarnation - 1, (p.flushed_version >> 40)::int) + 1
   where p.left_at is null
   returning partition, incarnation`,
);

function lostOf(known: Known, state: ServerState): number {
  let lost = 0;
  for (const [shard, mark] of known.marks) lost += Math.max(0, mark - (state.marks.get(shard) ?? 0));
  return lost;
}

const wentBack = (known: Known, state: ServerState) =>
  lostOf(known, state) > 0 || state.incarnation < known.incarnation;

/**
 * Returns whether another server has replaced this one, for example after a promotion. Changes that a replaced server
 * still accepts are missing on the new server.
 */
function isReplaced({ gone, server }: Known, { server: running, history }: ServerState): boolean {
  if (gone.has(running) || gone.has(history)) return true;
  const [system, timeline = ''] = history.split(' ');
  const [present, reached = ''] = (server ?? '').split(' ');
  // Compares timeline numbers as text, because all of them have eight hexadecimal digits.
  return system === present && timeline < reached;
}

const refused = (why: string) =>
  new ApiError('unavailable', { retry_after: 1 }, { cause: new RefusedServer(why) });
const replacedText =
  'this Postgres was replaced by another one, as by a promotion, and is refused: DATABASE_URL must lead to the other one, or ' +
  '"petrel accept-postgres" makes this one the present one again';

/**
 * Checks that the connections to one database lead to the right server. While Redis is unavailable, accepts only the
 * server that passed the last check. If the mark of a transaction could not be stored in Redis, sends the mark again at
 * the next connection or check.
 */
export class History implements Guard, ControlMarks {
  readonly random: Random;
  readonly #options: HistoryOptions;
  readonly #at: { readonly history: string; readonly revoked: string; readonly flushed: string };
  readonly #waiting = new Map<number, RaisedMark>();
  #rewriting = 0;
  /** The last server that passed the check. Undefined after another server has replaced it. */
  #compared: string | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.random = options.random ?? systemRandom;
    const { keys, shard = 0 } = options;
    this.#at = { history: keys.postgres(shard), revoked: keys.revoked(), flushed: keys.flushed() };
  }

  async admit(session: Queryable): Promise<string> {
    try {
      return await this.#admit(session);
    } catch (error) {
      // Reports a refused server as `unavailable`, like a server that cannot be reached.
      if (error instanceof ApiError && error.cause instanceof RefusedServer) throw error;
      if (error instanceof ApiError || error instanceof IdentityError || isUnavailable(error))
        throw new ApiError('unavailable', { retry_after: 1 }, { cause: error });
      throw error;
    }
  }

  async note(raised: readonly RaisedMark[]): Promise<void> {
    const known = await Promise.all(raised.map((mark) => this.#send(mark)));
    if (!known.every(Boolean)) throw this.#replaced();
  }

  async announce(servers: readonly string[], hint: string): Promise<void> {
    const { history, flushed } = this.#at;
    // Ignores an error of Redis. The announcement only saves time, because fronts also check by themselves how far the
    // journals are flushed.
    const announced = await this.#runner
      .call('history/announce', 0, { history, flushed }, { hint, servers: [...servers] })
      .catch((error: Error) => this.#options.onError?.(error));
    if (announced?.status === 'replaced') throw this.#replaced();
  }

  watch(pool: Pool): () => void {
    // Ignores the errors of this check, because the next request gets the same error and reports it.
    return (this.#options.time ?? systemTime).repeat(
      limits.postgres_check_ms,
      shared(() => Promise.allSettled([pool.recheck(), this.#sendWaiting()])),
    );
  }

  rewriting(): number {
    return this.#rewriting;
  }

  get #runner(): Pick<ScriptRunner, 'call'> {
    return this.#options.runner();
  }

  async #read(): Promise<Known> {
    const { fields } = await this.#runner.call('history/read', 0, { history: this.#at.history }, {});
    const list = (fields as Buffer[]).map(String);
    const of = new Map<string, string>();
    for (let i = 0; i < list.length; i += 2) of.set(list[i] as string, list[i + 1] as string);
    const suffixes = (prefix: string) =>
      [...of.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
    const number = (name: string) => Number(of.get(name) ?? 0);
    return {
      marks: new Map(suffixes('mark:').map((shard) => [Number(shard), number(`mark:${shard}`)])),
      id: number('id'),
      version: number('version'),
      server: of.get('server') ?? null,
      running: of.get('running') ?? null,
      incarnation: number('incarnation'),
      gone: new Set(suffixes('gone:')),
    };
  }

  async #readRevoked(): Promise<string[]> {
    const all = new Set<string>();
    for (let from = 0, ties = 0; ; ) {
      // A page begins at the last millisecond of the previous page, and so repeats the `ties` revocations of that
      // millisecond. The size of the page is increased by `ties`.
      const count = limits.revocations_page_max + ties;
      const page = await this.#runner.call(
        'history/read_revoked',
        0,
        { revoked: this.#at.revoked },
        { from, count },
      );
      for (const each of page.revoked) all.add(each);
      if (page.revoked.length < count) return [...all];
      ({ last: from, ties } = page);
    }
  }

  /**
   * Raises the partition's incarnation, which invalidates all earlier copies of the partition's records. Makes the
   * partition's sequences in Redis skip values that may have been lost.
   */
  async #raisePartition(database: Queryable, partition: number): Promise<void> {
    const meta = { meta: this.#options.keys.meta(partition) };
    let highest = Number((await this.#options.connection.at(partition)?.client.hget(meta.meta, 'ver')) ?? 0);
    for (let tries = 0; tries < raiseTriesMax; tries++) {
      const wanted = Math.floor(highest / storeLimits.versions_per_incarnation) + 1;
      const [row] = (await database.query<{ incarnation: number }>(raisePartitions, [[partition], [wanted]]))
        .rows;
      // The partition is no longer in this database, because it has been moved to another shard.
      if (row === undefined) break;
      const raised = { incarnation: row.incarnation };
      const result = await this.#runner.call('partition/raise', partition, meta, raised);
      if (result.status === 'ok') return;
      highest = result.highest;
    }
    throw unavailable();
  }

  /** Repairs a Postgres server before it is used. Each step can be repeated without harm. */
  async #putRight(own: Pool, known: Known, lost: number): Promise<number> {
    const { shard = 0, place = async () => () => 'own', keys } = this.#options;
    const revoked = shard === 0 ? await this.#readRevoked() : [];
    const whereIs = await place(own);
    const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
    const ownPartitions = all.filter((partition) => whereIs(partition) === 'own');
    const otherPartitions = all.filter((partition) => whereIs(partition) !== 'own');
    const forgotten = await own.transaction(async (tx) => {
      await waitLong(tx);
      if (shard === 0) await skipSequences(tx, known.id, known.version);
      else await skipOwnSequences(tx);
      let again = 0;
      for (const page of piecesOf(revoked, limits.revocations_page_max)) again += await revokeAgain(tx, page);
      await beginRewrite(tx, ownPartitions);
      if (shard === 0) await beginWebhooks(tx, otherPartitions);
      await noteLostTransactions(tx, lost, again);
      return again;
    });
    for (const partition of all) {
      const found = whereIs(partition);
      // Raises the incarnation of each partition that has copies of this database's records. A partition in another
      // database has copies of control records only. `found` is null for a partition without such copies.
      if (found !== null) await this.#raisePartition(found === 'own' ? own : found, partition);
    }
    return forgotten;
  }

  /**
   * Repairs a loss. Calls that detect the loss at the same time share one repair. Only one process makes the repair,
   * and the others wait for it.
   */
  readonly #recover = shared(async (found: string) => {
    const { url, onError } = this.#options;
    const own = createPool({ url, max: 2, name: 'recovery', onError: (error) => onError?.(error) });
    try {
      const done = await own.transaction(async (lock): Promise<WentBack | null> => {
        await waitLong(lock);
        await lockHistory(lock);
        const known = await this.#read();
        const state = await loadServerState(lock);
        // Stops if another server has replaced the server to repair. The next connection checks the new server.
        if (state.server !== found) throw unavailable();
        if (!wentBack(known, state)) return null;
        // Refuses a former primary that is still running, because the former primary would store its own marks in
        // Redis.
        await this.#meet(known, state);
        const transactions = lostOf(known, state);
        const incarnation = Math.max(known.incarnation, state.incarnation) + 1;
        const revoked = await this.#putRight(own, known, transactions);
        await acceptServer(lock, known.marks, incarnation);
        return { transactions, revoked, incarnation };
      });
      if (done) this.#options.onWentBack?.(done);
    } finally {
      await own.close();
    }
  });

  /**
   * Compares a server with the server that Redis stores. Returns the name of the previous server, or null if the server
   * is the same. Errors: `unavailable` if the server was replaced.
   */
  async #meet(known: Known, state: ServerState): Promise<string | null> {
    if (isReplaced(known, state)) throw this.#replaced();
    const same = known.server === state.history && known.running === state.server;
    if (same && known.incarnation === state.incarnation) return null;
    const met = await this.#runner.call(
      'history/meet',
      0,
      { history: this.#at.history },
      { server: state.history, running: state.server, incarnation: state.incarnation },
    );
    if (met.status === 'replaced') throw this.#replaced();
    return met.before === state.history ? null : met.before;
  }

  #replaced(): ApiError {
    this.#compared = undefined;
    this.#options.onReplaced?.(replacedText);
    return refused(replacedText);
  }

  /**
   * Checks a server while the Redis that stores the marks is unavailable. Connections must still open then, because
   * chats on a cluster's other Redis servers need Postgres. Accepts only the server that passed the last check. A
   * restored Postgres is refused, because the restart has changed the name of the server.
   */
  async #admitAlone(session: Queryable): Promise<string> {
    const { server, standby } = await loadServerState(session);
    if (standby || server !== this.#compared) throw unavailable();
    return server;
  }

  async #admit(session: Queryable, tries = 0): Promise<string> {
    if (this.#compared !== undefined && (this.#options.connection.at(0)?.runId() ?? null) === null)
      return this.#admitAlone(session);
    if (this.#waiting.size > 0) await this.#sendWaiting();
    // Reads Redis before Postgres, so that a transaction that commits between the two reads does not look lost.
    const known = await this.#read();
    const state = await loadServerState(session);
    this.#options.checkInstallation?.(state.installation);
    if (state.standby) throw refused('this Postgres is a standby');
    if (tries > raiseTriesMax) throw unavailable();
    if (isReplaced(known, state)) throw this.#replaced();
    if (wentBack(known, state)) {
      await this.#recover(state.server);
      return this.#admit(session, tries + 1);
    }
    this.#rewriting = state.rewriting;
    const before = await this.#meet(known, state);
    if (before !== null) this.#options.onOtherServer?.(before, state.history);
    this.#compared = state.server;
    return state.server;
  }

  /**
   * Stores the mark of a transaction in Redis. Returns false if another server has replaced the server that raised the
   * mark. If Redis is unavailable, keeps the newest mark of the shard for a later attempt, and the revocations of all
   * transactions whose marks were not sent.
   */
  async #send(mark: RaisedMark): Promise<boolean> {
    const { history, revoked } = this.#at;
    try {
      const { replaced } = await this.#runner.call(
        'history/note',
        0,
        { history, revoked },
        {
          running: mark.server,
          shard: mark.shard,
          mark: mark.raised,
          id: mark.last_id,
          version: mark.last_version,
          changes: mark.revocations.split('\n').filter(Boolean),
        },
      );
      return !replaced;
    } catch (error) {
      const before = this.#waiting.get(mark.shard);
      const newest = before && before.raised > mark.raised ? before : mark;
      const revocations = `${before?.revocations ?? ''}${mark.revocations}`;
      this.#waiting.set(mark.shard, { ...newest, revocations });
      this.#options.onError?.(error as Error);
      // Returns true because the transaction is committed. The mark is sent to Redis later.
      return true;
    }
  }

  async #sendWaiting(): Promise<void> {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    await Promise.all(all.map((mark) => this.#send(mark)));
  }
}
