/**
 * Manages dead letters and replays. Replayed updates are removed from Postgres in a transaction that also records the
 * replay (law 2). Then `webhooks/replay` adds them to the bot's queue exactly once. After a crash, the sweep calls that
 * script again.
 *
 * Replayed updates go to the end of the queue. For a webhook they keep their `update_id`, so that a receiver can drop
 * duplicates. For polling they get a new `update_id`, because offsets only grow.
 */
import { fail } from '../../errors.js';
import { type AuditActor, noteReplay } from '../../postgres/bots/audit.js';
import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { holding } from '../../postgres/shards.js';
import * as dead from '../../postgres/webhooks/dead_updates.js';
import { ruleLimits } from '../../rules/limits.js';
import { fillAttemptsMax, requestIdsOf, type StoreContext } from '../core/context.js';
import { queueKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readUpdateFields, type UpdateEntry } from '../updates/queues.js';
import { unpackUpdate } from '../updates/update_record.js';

export interface DeadLetter {
  readonly update: UpdateEntry;
  /** A `DeadReason`, or a value from a later release. */
  readonly reason: string;
  /** When Petrel stopped retrying the delivery, as Unix time in ms. */
  readonly date: number;
}

export interface ReplayAsk {
  readonly from: number;
  readonly to: number;
  /** Whether to include delivered updates that are still stored. */
  readonly delivered: boolean;
  /** Whether to exclude updates that were delivered before the current owner got the bot. */
  readonly ofOwner: boolean;
}

export interface Replayed {
  readonly queued: number;
  readonly first: number | null;
  readonly last: number | null;
}

export const allDead: ReplayAsk = { from: 0, to: ruleLimits.id_max, delivered: false, ofOwner: true };

const discardBatchMax = 1_000;
const replaysMax = 100;

function readLetter({ update_id, record }: dead.DeadRow): DeadLetter {
  const fields = unpackUpdate(record);
  return {
    update: readUpdateFields(update_id, fields),
    reason: String(fields.w ?? ''),
    date: Number(String(fields.d ?? 0)),
  };
}

function asked(updateId: number, record: Buffer): Array<string | Buffer> {
  const fields = unpackUpdate(record);
  const values = ['k', 'c', 'm', 'r', 'f', 'p', 'y', 'x'].map((name) => fields[name] as Buffer);
  return [String(updateId), ...values];
}

export class Replays {
  readonly #context: StoreContext;
  readonly #queues: Queues;
  readonly #wake: (bot: number) => void;

  constructor(context: StoreContext, queues: Queues, wake: (bot: number) => void) {
    this.#context = context;
    this.#queues = queues;
    this.#wake = wake;
  }

  #shardOf(bot: number) {
    return this.#context.shards.at(this.#context.keys.partitions.of(bot));
  }

  /** Records a replay in the audit log. After a crash in between, the log may contain the replay twice. */
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
    const updates = records.flatMap((record, i) => asked(updateIds[i] as number, record));
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('webhooks/replay', partition, at, { bot: String(bot), updates });
      if (result.status === 'ok') {
        if (result.wake) this.#wake(bot);
        return dead.finishReplay(this.#shardOf(bot), bot, id);
      }
      await this.#queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /** Returns dead letters, oldest first: at most `limit` and `bytes` bytes, but at least one. */
  async list(bot: number, after: number, limit: number, bytes: number) {
    const { rows, more } = await dead.loadDead(this.#shardOf(bot), bot, after, limit, bytes);
    return { items: rows.map(readLetter), more };
  }

  countDead(bot: number) {
    return dead.countDead(this.#shardOf(bot), bot);
  }

  /**
   * Queues updates again, oldest first, up to limits.replay_max. The audit log records `actor`. Fails with
   * `too_many_requests` if the queue is too long, because the replay would drop pending updates.
   */
  async replay(
    bot: number,
    { from, to, delivered, ofOwner }: ReplayAsk,
    actor?: AuditActor,
  ): Promise<Replayed> {
    const { pending } = await this.#queues.info(bot);
    if (pending + limits.replay_max > limits.queue_length_max) fail('too_many_requests', { retry_after: 60 });
    let queued = 0;
    let first: number | null = null;
    let last: number | null = null;
    let event: number | null = null;
    const since = ofOwner ? await loadOwnedSince(this.#context.db, bot) : null;
    for (let next = from; queued < limits.replay_max; ) {
      const taken = await dead.takeReplay(
        this.#shardOf(bot),
        bot,
        { from: next, to, delivered, since },
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

  /** Completes old replays, at most a hundred per shard. */
  async finishOld(ageMs: number) {
    for (const { db } of holding(this.#context.shards))
      for (const { bot, id } of await dead.loadOldReplays(db, ageMs, replaysMax)) await this.finish(bot, id);
  }

  async discard(bot: number): Promise<number> {
    let discarded = 0;
    for (;;) {
      const count = await dead.discardDead(this.#shardOf(bot), bot, discardBatchMax);
      discarded += count;
      if (count < discardBatchMax) return discarded;
    }
  }
}
