/**
 * Recognises a Postgres that went back in time, and puts right what it makes wrong. Each transaction that changes something raises
 * a mark, which Redis learns after the commit: a Postgres that has less than Redis knows of has lost what it had committed. It
 * serves nothing before its revocations are made again, its sequences are past what was handed out, and no copy of its
 * records is trusted any more.
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

/** What was found and put right. */
export interface WentBack {
  readonly transactions: number;
  readonly revoked: number;
  readonly incarnation: number;
}

export interface HistoryOptions {
  /** Of Postgres: what puts it right has connections of its own. */
  readonly url: string;
  /** 0 for the control database, which is the default. */
  readonly shard?: number;
  /** Where each partition lies; `own` is a connection to the database itself. All in this one if absent. */
  readonly place?: (own: Queryable) => Promise<(partition: number) => 'own' | Queryable | null>;
  readonly keys: Keys;
  readonly connection: RedisServers;
  /** Asked for with each call: the runner is made later. */
  readonly runner: () => ScriptRunner;
  /** Throws where a Postgres belongs to another installation. */
  readonly checkInstallation?: (id: string | null) => void;
  readonly onWentBack?: (found: WentBack) => void;
  /** Another server or timeline than before has all that was committed. */
  readonly onOtherServer?: (before: string, now: string) => void;
  /** A server was refused that another one has replaced. */
  readonly onReplaced?: (why: string) => void;
  readonly onError?: (error: Error) => void;
}

export interface History extends Guard, ControlMarks {
  /** Looks at connections that stand, each limits.postgres_check_ms. Returns what ends it. */
  watch(pool: Pool): () => void;
  /** How many partitions Postgres said to be written again when it was asked last. */
  rewriting(): number;
}

/** What Redis knows of Postgres. */
interface Known {
  /** Servers and histories that others have replaced. */
  readonly gone: ReadonlySet<string>;
  readonly marks: ReadonlyMap<number, number>;
  readonly id: number;
  readonly version: number;
  /** System identifier and timeline. */
  readonly server: string | null;
  /** The server itself, as `server_identity` names it. */
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

/** Transactions that Redis knows to have been committed and that this server does not have. */
function lostOf(known: Known, state: ServerState): number {
  let lost = 0;
  for (const [shard, mark] of known.marks) lost += Math.max(0, mark - (state.marks.get(shard) ?? 0));
  return lost;
}

const wentBack = (known: Known, state: ServerState) =>
  lostOf(known, state) > 0 || state.incarnation < known.incarnation;

/** Whether another server has replaced this one, as a promotion does: whatever it takes, the other one lacks. */
function isReplaced({ gone, server }: Known, { server: running, history }: ServerState): boolean {
  if (gone.has(running) || gone.has(history)) return true;
  const [system, timeline = ''] = history.split(' ');
  const [present, reached = ''] = (server ?? '').split(' ');
  // Eight hexadecimal digits each.
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
  /** Marks that Redis did not take yet, by shard. */
  const waiting = new Map<number, RaisedMark>();
  let putting: Promise<void> | undefined;
  let rewriting = 0;
  /** The server that was compared last. */
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
      // The next page begins with those of the same ms, which are known.
      const count = limits.revocations_page_max + ties;
      const page = await runner().call('history/read_revoked', 0, { revoked: at.revoked }, { from, count });
      for (const each of page.revoked) all.add(each);
      if (page.revoked.length < count) return [...all];
      ({ last: from, ties } = page);
    }
  }

  /** No copy that was made before is trusted, and sequences in Redis skip what may have been lost. */
  async function raisePartition(database: Queryable, partition: number): Promise<void> {
    const meta = { meta: keys.meta(partition) };
    let highest = Number((await connection.at(partition)?.client.hget(meta.meta, 'ver')) ?? 0);
    for (let tries = 0; tries < raiseTriesMax; tries++) {
      const wanted = Math.floor(highest / limits.versions_per_incarnation) + 1;
      const [row] = (await database.query<{ incarnation: number }>(raisePartitions, [[partition], [wanted]]))
        .rows;
      // It was moved away meanwhile.
      if (row === undefined) break;
      const raised = { incarnation: row.incarnation };
      const result = await runner().call('partition/raise', partition, meta, raised);
      if (result.status === 'ok') return;
      highest = result.highest;
    }
    throw new ApiError('unavailable', { retry_after: 1 });
  }

  /** What must be done before anything is read from this Postgres. Each step may be repeated. */
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
      // Copies of control records lie in all partitions, those of a shard in its own.
      if (found !== null) await raisePartition(found === 'own' ? own : found, partition);
    }
    return forgotten;
  }

  /** One process does it at a time; one that waited finds it done. */
  async function recover(found: string): Promise<void> {
    const own = createPool({ url, max: 2, name: 'recovery', onError: (error) => onError?.(error) });
    try {
      const done = await own.transaction(async (lock): Promise<WentBack | null> => {
        await lock.query(waitLong);
        await lock.query(lockHistory);
        const known = await read();
        const state = await loadServerState(lock);
        // The server changed again meanwhile: whoever connects next looks at it.
        if (state.server !== found) throw new ApiError('unavailable', { retry_after: 1 });
        if (!wentBack(known, state)) return null;
        // A former primary that goes on is refused from now on, or it would raise marks for ever.
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

  /** Calls that meet the same loss share the work. */
  function recoverOnce(found: string): Promise<void> {
    putting ??= recover(found).finally(() => {
      putting = undefined;
    });
    return putting;
  }

  /** Returns the previous server if it was a different one. */
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
   * While the Redis that knows is away, the server that was compared last goes on: one that went back was started again, and has
   * another name. On a cluster everybody else's chats need Postgres meanwhile.
   */
  async function admitAlone(session: Queryable): Promise<string> {
    const { server, standby } = await loadServerState(session);
    if (standby || server !== compared) throw new ApiError('unavailable', { retry_after: 1 });
    return server;
  }

  async function admit(session: Queryable, tries = 0): Promise<string> {
    if (compared !== undefined && (connection.at(0)?.runId() ?? null) === null) return admitAlone(session);
    // What this process alone knows of counts as well.
    if (waiting.size > 0) await sendWaiting();
    // Redis first: what Postgres commits meanwhile is no loss.
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

  /** False when another server has replaced the one that has it. */
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

  /** Bounded by the shards: of those that wait for Redis, the newest mark of each stays, with the revocations of all. */
  function keep(mark: RaisedMark): void {
    const before = waiting.get(mark.shard);
    const newest = before && before.raised > mark.raised ? before : mark;
    waiting.set(mark.shard, { ...newest, revocations: `${before?.revocations ?? ''}${mark.revocations}` });
  }

  async function sendOrKeep(mark: RaisedMark): Promise<boolean> {
    try {
      return await send(mark);
    } catch (error) {
      // The change is committed: that Redis is away for now does not undo it.
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
        // A connection that is not admitted counts as one that could not be opened.
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
        // What fails here fails for those who call as well.
        await Promise.allSettled([pool.recheck(), sendWaiting()]);
        looking = false;
      }, limits.postgres_check_ms);
      timer.unref();
      return () => clearInterval(timer);
    },
    rewriting: () => rewriting,
  };
}
