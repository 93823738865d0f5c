/**
 * Detects a Postgres that was restored to an earlier state, and repairs the consequences. Each transaction that
 * changes something raises a mark, which Redis learns after the commit. A Postgres whose mark is below the one in
 * Redis has lost committed transactions. It serves no requests until revocations are repeated, sequences are past
 * every value given out, and all copies of its records are invalid.
 */
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import {
  acceptServer,
  beginRewrite,
  beginWebhooks,
  type ControlMarks,
  loadServerState,
  lockHistory,
  noteLostTransactions,
  type RaisedMark,
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
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import { IdentityError } from './identity.js';

/** What a recovery found and repaired. */
export interface WentBack {
  readonly transactions: number;
  readonly revoked: number;
  readonly incarnation: number;
}

export interface HistoryOptions {
  /** URL of Postgres: the repair uses connections of its own. */
  readonly url: string;
  /** Id of the shard; 0, the default, is the control database. */
  readonly shard?: number;
  /**
   * Finds the database of each partition; `own` is a connection to this database. If absent, all partitions are in
   * this database.
   */
  readonly place?: (own: Queryable) => Promise<(partition: number) => 'own' | Queryable | null>;
  readonly keys: Keys;
  readonly connection: RedisServers;
  /** Called whenever a script must run: the runner is created later than this object. */
  readonly runner: () => ScriptRunner;
  /** Throws if a Postgres belongs to another installation. */
  readonly checkInstallation?: (id: string | null) => void;
  readonly onWentBack?: (found: WentBack) => void;
  /** Called when Postgres is another server or timeline than before but has everything that was committed. */
  readonly onOtherServer?: (before: string, now: string) => void;
  /** Called when a server was refused because another one has replaced it. */
  readonly onReplaced?: (why: string) => void;
  readonly onError?: (error: Error) => void;
}

export interface History extends Guard, ControlMarks {
  /** Checks open connections every limits.postgres_check_ms. Returns a function that ends this. */
  watch(pool: Pool): () => void;
  /** How many partitions Postgres wanted to be written again at the last check. */
  rewriting(): number;
}

/** What Redis has recorded about Postgres. */
interface Known {
  /** Servers and histories that other servers have replaced. */
  readonly gone: ReadonlySet<string>;
  readonly marks: ReadonlyMap<number, number>;
  readonly id: number;
  readonly version: number;
  /** System identifier and timeline of the Postgres in use. */
  readonly server: string | null;
  /** The server in use, as `server_identity` names it. */
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

/** Number of transactions that Redis knows to have been committed and that this server does not have. */
function lostOf(known: Known, state: ServerState): number {
  let lost = 0;
  for (const [shard, mark] of known.marks) lost += Math.max(0, mark - (state.marks.get(shard) ?? 0));
  return lost;
}

const wentBack = (known: Known, state: ServerState) =>
  lostOf(known, state) > 0 || state.incarnation < known.incarnation;

/**
 * Whether another server has replaced this one, as a promotion does. The other server lacks every change that this
 * one still accepts.
 */
function isReplaced({ gone, server }: Known, { server: running, history }: ServerState): boolean {
  if (gone.has(running) || gone.has(history)) return true;
  const [system, timeline = ''] = history.split(' ');
  const [present, reached = ''] = (server ?? '').split(' ');
  // Timeline numbers are compared as text of eight hexadecimal digits each.
  return system === present && timeline < reached;
}

const refused = (why: string) =>
  new ApiError('unavailable', { retry_after: 1 }, { cause: new RefusedServer(why) });
const replacedText =
  'this Postgres was replaced by another one, as by a promotion, and is refused: DATABASE_URL must lead to the other one, or ' +
  '"petrel accept-postgres" makes this one the present one again';

export function createHistory(options: HistoryOptions): History {
  const { url, keys, connection, runner, checkInstallation } = options;
  const { onWentBack, onOtherServer, onReplaced, onError } = options;
  const { shard = 0, place = async () => () => 'own' } = options;
  const at = { history: keys.postgres(shard), revoked: keys.revoked() };
  /** Marks that Redis has not accepted yet, by shard. */
  const waiting = new Map<number, RaisedMark>();
  let putting: Promise<void> | undefined;
  let rewriting = 0;
  /** The server of the last comparison. */
  let compared: string | undefined;

  async function read(): Promise<Known> {
    const { fields } = await runner().call('history/read', 0, { history: at.history }, {});
    const list = (fields as Buffer[]).map(String);
    const of = new Map(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? ''] as const] : [])));
    const marks = [...of].flatMap(([name, value]) =>
      name.startsWith('mark:') ? [[Number(name.slice(5)), Number(value)] as const] : [],
    );
    const number = (name: string) => Number(of.get(name) ?? 0);
    return {
      marks: new Map(marks),
      id: number('id'),
      version: number('version'),
      server: of.get('server') ?? null,
      running: of.get('running') ?? null,
      incarnation: number('incarnation'),
      gone: new Set([...of.keys()].flatMap((name) => (name.startsWith('gone:') ? [name.slice(5)] : []))),
    };
  }

  async function readRevoked(): Promise<string[]> {
    const all = new Set<string>();
    for (let from = 0, ties = 0; ; ) {
      // The next page starts with the known revocations of the same millisecond.
      const count = limits.revocations_page_max + ties;
      const page = await runner().call('history/read_revoked', 0, { revoked: at.revoked }, { from, count });
      for (const each of page.revoked) all.add(each);
      if (page.revoked.length < count) return [...all];
      ({ last: from, ties } = page);
    }
  }

  /**
   * Invalidates all earlier copies of the partition, and makes its sequences in Redis skip values that may have been
   * lost.
   */
  async function raisePartition(database: Queryable, partition: number): Promise<void> {
    const meta = { meta: keys.meta(partition) };
    let highest = Number((await connection.at(partition)?.client.hget(meta.meta, 'ver')) ?? 0);
    for (let tries = 0; tries < raiseTriesMax; tries++) {
      const wanted = Math.floor(highest / limits.versions_per_incarnation) + 1;
      const [row] = (await database.query<{ incarnation: number }>(raisePartitions, [[partition], [wanted]]))
        .rows;
      // The partition was moved to another shard meanwhile.
      if (row === undefined) break;
      const raised = { incarnation: row.incarnation };
      const result = await runner().call('partition/raise', partition, meta, raised);
      if (result.status === 'ok') return;
      highest = result.highest;
    }
    throw new ApiError('unavailable', { retry_after: 1 });
  }

  /** Repairs a Postgres before anything is read from it. Each step may be repeated. */
  async function putRight(own: Pool, known: Known, lost: number): Promise<number> {
    const revoked = shard === 0 ? await readRevoked() : [];
    const whereIs = await place(own);
    const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
    const ownPartitions = all.filter((partition) => whereIs(partition) === 'own');
    const forgotten = await own.transaction(async (tx) => {
      await tx.query(waitLong);
      if (shard === 0) await skipSequences(tx, known.id, known.version);
      else await skipOwnSequences(tx);
      let again = 0;
      for (let from = 0; from < revoked.length; from += limits.revocations_page_max)
        again += await revokeAgain(tx, revoked.slice(from, from + limits.revocations_page_max));
      await tx.query(beginRewrite, [ownPartitions]);
      if (shard === 0) await tx.query(beginWebhooks, [all.filter((each) => !ownPartitions.includes(each))]);
      await noteLostTransactions(tx, lost, again);
      return again;
    });
    for (const partition of all) {
      const found = whereIs(partition);
      // Copies of control records are in all partitions, copies of a shard's records only in its own.
      if (found !== null) await raisePartition(found === 'own' ? own : found, partition);
    }
    return forgotten;
  }

  /** Recovers from a loss. One process does it at a time; a process that waited finds it done. */
  async function recover(found: string): Promise<void> {
    const own = createPool({ url, max: 2, name: 'recovery', onError: (error) => onError?.(error) });
    try {
      const done = await own.transaction(async (lock): Promise<WentBack | null> => {
        await lock.query(waitLong);
        await lock.query(lockHistory);
        const known = await read();
        const state = await loadServerState(lock);
        // The server changed again meanwhile: the next connection checks the new one.
        if (state.server !== found) throw new ApiError('unavailable', { retry_after: 1 });
        if (!wentBack(known, state)) return null;
        // A former primary that still runs is refused from now on; otherwise it would raise marks for ever.
        await meet(known, state);
        const transactions = lostOf(known, state);
        const incarnation = Math.max(known.incarnation, state.incarnation) + 1;
        const revoked = await putRight(own, known, transactions);
        await acceptServer(lock, known.marks, incarnation);
        return { transactions, revoked, incarnation };
      });
      if (done) onWentBack?.(done);
    } finally {
      await own.close();
    }
  }

  /** Shares one recovery among calls that find the same loss. */
  function recoverOnce(found: string): Promise<void> {
    putting ??= recover(found).finally(() => {
      putting = undefined;
    });
    return putting;
  }

  /** Compares a server with what Redis knows. Returns the previous server if it was a different one. */
  async function meet(known: Known, state: ServerState): Promise<string | null> {
    if (isReplaced(known, state)) throw replaced();
    const same = known.server === state.history && known.running === state.server;
    if (same && known.incarnation === state.incarnation) return null;
    const met = await runner().call(
      'history/meet',
      0,
      { history: at.history },
      { server: state.history, running: state.server, incarnation: state.incarnation },
    );
    if (met.status === 'replaced') throw replaced();
    return met.before === state.history ? null : met.before;
  }

  function replaced(): ApiError {
    compared = undefined;
    onReplaced?.(replacedText);
    return refused(replacedText);
  }

  /**
   * Admits the server of the last comparison while the Redis that holds the marks is unavailable. A Postgres that was
   * restored to an earlier state has been restarted, so its name differs and it is refused. On a cluster, chats on
   * the other Redis servers need Postgres meanwhile.
   */
  async function admitAlone(session: Queryable): Promise<string> {
    const { server, standby } = await loadServerState(session);
    if (standby || server !== compared) throw new ApiError('unavailable', { retry_after: 1 });
    return server;
  }

  async function admit(session: Queryable, tries = 0): Promise<string> {
    if (compared !== undefined && (connection.at(0)?.runId() ?? null) === null) return admitAlone(session);
    // Marks that only this process knows count as well.
    if (waiting.size > 0) await sendWaiting();
    // Reads Redis first: a transaction that Postgres commits after this read is not a loss.
    const known = await read();
    const state = await loadServerState(session);
    checkInstallation?.(state.installation);
    if (state.standby) throw refused('this Postgres is a standby');
    if (tries > raiseTriesMax) throw new ApiError('unavailable', { retry_after: 1 });
    if (isReplaced(known, state)) throw replaced();
    if (wentBack(known, state)) {
      await recoverOnce(state.server);
      return admit(session, tries + 1);
    }
    rewriting = state.rewriting;
    const before = await meet(known, state);
    if (before !== null) onOtherServer?.(before, state.history);
    compared = state.server;
    return state.server;
  }

  /** Sends a mark to Redis. Returns false when another server has replaced the server of the mark. */
  async function send(mark: RaisedMark): Promise<boolean> {
    const { replaced } = await runner().call('history/note', 0, at, {
      running: mark.server,
      shard: mark.shard,
      mark: mark.raised,
      id: mark.last_id,
      version: mark.last_version,
      changes: mark.revocations.split('\n').filter(Boolean),
    });
    return !replaced;
  }

  /** Keeps a mark until Redis accepts it: one per shard, the newest, with the revocations of all earlier ones. */
  function keep(mark: RaisedMark): void {
    const before = waiting.get(mark.shard);
    const newest = before && before.raised > mark.raised ? before : mark;
    waiting.set(mark.shard, { ...newest, revocations: `${before?.revocations ?? ''}${mark.revocations}` });
  }

  async function sendOrKeep(mark: RaisedMark): Promise<boolean> {
    try {
      return await send(mark);
    } catch (error) {
      // The change is committed, even though Redis is unavailable for now.
      keep(mark);
      onError?.(error as Error);
      return true;
    }
  }

  async function sendWaiting(): Promise<void> {
    const all = [...waiting.values()];
    waiting.clear();
    await Promise.all(all.map(sendOrKeep));
  }

  return {
    async admit(session) {
      try {
        return await admit(session);
      } catch (error) {
        // A connection that is not admitted is reported like one that could not be opened.
        if (error instanceof ApiError && error.cause instanceof RefusedServer) throw error;
        if (error instanceof ApiError || error instanceof IdentityError || isUnavailable(error))
          throw new ApiError('unavailable', { retry_after: 1 }, { cause: error });
        throw error;
      }
    },
    async note(raised) {
      const known = await Promise.all(raised.map(sendOrKeep));
      if (!known.every(Boolean)) throw replaced();
    },
    watch(pool) {
      let looking = false;
      const timer = setInterval(async () => {
        if (looking) return;
        looking = true;
        // Errors are ignored here, because the next request meets and reports them too.
        await Promise.allSettled([pool.recheck(), sendWaiting()]);
        looking = false;
      }, limits.postgres_check_ms);
      timer.unref();
      return () => clearInterval(timer);
    },
    rewriting: () => rewriting,
  };
}
