/**
 * Manages dead letters and replays. Replayed updates are removed from Postgres in a transaction that also records the
 * replay (law 2). Then `webhooks/replay` adds them to the bot's queue exactly once. After a crash, the sweep calls that
 * script again.
 *
 * Replayed updates go to the end of the queue. With a webhook, they keep their `update_id`, so that a receiver can drop
 * duplicates. With polling, they get a new `update_id`, because offsets only grow.
 */
import { fail } from '../../errors.js';
import { type AuditActor, noteReplay } from '../../postgres/bots/audit.js';
import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { holding } from '../../postgres/shards.js';
import * as dead from '../../postgres/webhooks/dead_updates.js';
import { ruleLimits } from '../../rules/limits.js';
import { fillAttemptsMax, requestIdsOf, type StoreContext } from '../core/context.js';
import { queueId, queuesIn } from '../core/queue_ids.js';
import { type Route, routeAt, routeSkewMs } from '../core/route_record.js';
import { queueKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readUpdateFields, type UpdateEntry } from '../updates/queues.js';
import { recordEnds, unpackUpdate } from '../updates/update_record.js';
import type { Webhooks } from './webhooks.js';

export interface DeadLetter {
  readonly update: UpdateEntry;
  /** A `DeadReason`, or a value from a later release. */
  readonly reason: string;
  /** When Petrel stopped retrying the delivery, as Unix time in ms. */
  readonly date: number;
  /**
   * The name of the update's route. Undefined if the update belongs to the webhook itself, or if the route was deleted.
   */
  readonly route: string | undefined;
}

export interface ReplayAsk {
  readonly from: number;
  readonly to: number;
  /** Whether to replay delivered updates too. Only delivered updates that are still stored can be replayed. */
  readonly delivered: boolean;
  /** Whether to exclude updates that were delivered before the current owner got the bot. */
  readonly ofOwner: boolean;
  /**
   * The only route whose updates are replayed. If absent, replays the updates of all routes and of the bot's own queue.
   */
  readonly route?: Route | undefined;
}

export interface Replayed {
  readonly queued: number;
  readonly first: number | null;
  readonly last: number | null;
}

export const allDead: ReplayAsk = { from: 0, to: ruleLimits.id_max, delivered: false, ofOwner: true };

const discardBatchMax = 1_000;
const replaysMax = 100;

type Fields = ReturnType<typeof unpackUpdate>;

const routeOf = (routes: readonly Route[], { l: slot, d: died, t: made }: Fields): Route | undefined =>
  slot === undefined ? undefined : routeAt(routes, Number(String(slot)), Number(String(died ?? made)));

function readLetter({ update_id, record }: dead.DeadRow, routes: readonly Route[]): DeadLetter {
  const fields = unpackUpdate(record);
  return {
    update: readUpdateFields(update_id, fields),
    reason: String(fields.w ?? ''),
    date: Number(String(fields.d ?? 0)),
    route: routeOf(routes, fields)?.name,
  };
}

const rowsOf = (route: Route | undefined): dead.RouteRows | null =>
  route === undefined ? null : { ...recordEnds(route.slot), since: new Date(route.made - routeSkewMs) };

/**
 * Returns the values that `webhooks/replay` needs for an update. The last value is the slot of the update's route, or
 * ''.
 */
function asked(updateId: number, record: Buffer, routes: readonly Route[]): Array<string | Buffer> {
  const fields = unpackUpdate(record);
  const values = ['k', 'c', 'm', 'r', 'f', 'p', 'y', 'x'].map((name) => fields[name] as Buffer);
  return [String(updateId), ...values, String(routeOf(routes, fields)?.slot ?? '')];
}

export class Replays {
  readonly #context: StoreContext;
  readonly #queues: Queues;
  readonly #webhooks: Pick<Webhooks, 'routes'>;
  readonly #wake: (bot: number) => void;

  constructor(
    context: StoreContext,
    queues: Queues,
    webhooks: Pick<Webhooks, 'routes'>,
    wake: (bot: number) => void,
  ) {
    this.#context = context;
    this.#queues = queues;
    this.#webhooks = webhooks;
    this.#wake = wake;
  }

  #shardOf(bot: number) {
    return this.#context.shards.at(this.#context.keys.partitions.of(bot));
  }

  /** Records a replay in the audit log. If the process dies before `replayNoted`, the replay may be logged twice. */
  async #note(
    bot: number,
    { id, updateIds }: dead.TakenReplay,
    actor: AuditActor,
    event: number | null,
  ): Promise<number> {
    const noted = await this.#context.db.transaction((sql) =>
      noteReplay(sql, bot, { actor, event }, updateIds),
    );
    await dead.replayNoted(this.#shardOf(bot), bot, id);
    return noted;
  }

  /** Completes a replay. Does nothing if its updates were already added. */
  async finish(bot: number, id: number): Promise<void> {
    const left = await dead.loadReplay(this.#shardOf(bot), bot, id);
    if (left === null) return;
    const { updateIds, records } = left;
    if (left.note !== null) await this.#note(bot, left, left.note, null);
    const { scripts, keys } = this.#context;
    const partition = keys.partitions.of(bot);
    const request = keys.request(partition, requestIdsOf(`replay.${id}`).draw());
    const at = { ...queueKeys(keys, bot), request };
    const routes = await this.#webhooks.routes(bot);
    const updates = records.flatMap((record, i) => asked(updateIds[i] as number, record, routes));
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('webhooks/replay', partition, at, { bot: String(bot), updates });
      if (result.status === 'ok') {
        for (const queue of queuesIn(bot, result.wake)) this.#wake(queue);
        return dead.finishReplay(this.#shardOf(bot), bot, id);
      }
      await this.#queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /**
   * Returns dead letters, oldest first: at most `limit` of them and at most `bytes` bytes, but at least one. If `route`
   * is given, returns only this route's dead letters.
   */
  async list(bot: number, after: number, limit: number, bytes: number, route?: Route) {
    const [routes, { rows, more }] = await Promise.all([
      this.#webhooks.routes(bot),
      dead.loadDead(this.#shardOf(bot), bot, after, limit, bytes, rowsOf(route)),
    ]);
    return { items: rows.map((row) => readLetter(row, routes)), more };
  }

  countDead(bot: number) {
    return dead.countDead(this.#shardOf(bot), bot);
  }

  /** Checks that the queues of the bot and of its routes have room. Error: `too_many_requests`. */
  async #requireRoom(bot: number): Promise<void> {
    const slots = (await this.#webhooks.routes(bot)).map(({ slot }) => slot);
    const infos = await Promise.all([0, ...slots].map((slot) => this.#queues.info(queueId(bot, slot))));
    const most = Math.max(...infos.map(({ pending }) => pending));
    if (most + limits.replay_max > limits.queue_length_max) fail('too_many_requests', { retry_after: 60 });
  }

  /**
   * Queues updates again, oldest first, up to limits.replay_max. The audit log names `actor`. Fails with
   * `too_many_requests` if a queue is so long that the replay would push out pending updates.
   */
  async replay(
    bot: number,
    { from, to, delivered, ofOwner, route }: ReplayAsk,
    actor?: AuditActor,
  ): Promise<Replayed> {
    await this.#requireRoom(bot);
    let queued = 0;
    let first: number | null = null;
    let last: number | null = null;
    let event: number | null = null;
    const since = ofOwner ? await loadOwnedSince(this.#context.db, bot) : null;
    for (let next = from; queued < limits.replay_max; ) {
      const taken = await dead.takeReplay(
        this.#shardOf(bot),
        bot,
        { from: next, to, delivered, since, route: rowsOf(route) },
        limits.replay_batch_max,
        actor ?? null,
      );
      if (taken === null) break;
      if (actor) event = await this.#note(bot, taken, actor, event);
      await this.finish(bot, taken.id);
      queued += taken.updateIds.length;
      first ??= taken.updateIds[0] as number;
      last = taken.updateIds.at(-1) as number;
      next = last + 1;
    }
    return { queued, first, last };
  }

  /** Completes interrupted replays that are older than `ageMs`, at most a hundred per shard. */
  async finishOld(ageMs: number) {
    for (const { db } of holding(this.#context.shards))
      for (const { bot, id } of await dead.loadOldReplays(db, ageMs, replaysMax)) await this.finish(bot, id);
  }

  /** Discards the dead letters of a bot, or of one of its routes. Returns how many were discarded. */
  async discard(bot: number, route?: Route): Promise<number> {
    let discarded = 0;
    for (;;) {
      const count = await dead.discardDead(this.#shardOf(bot), bot, discardBatchMax, rowsOf(route));
      discarded += count;
      if (count < discardBatchMax) return discarded;
    }
  }
}
