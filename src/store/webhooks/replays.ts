/**
 * Dead letters and replays. Replayed updates are removed from Postgres in a transaction that also records the replay
 * (law 2). Then `webhooks/replay` adds them to the bot's queue exactly once; the sweep repeats this after a crash.
 *
 * Replayed updates go to the end of the queue. For a webhook they keep their `update_id`, so that a receiver can drop
 * duplicates. For polling they get a new one, because offsets only grow.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { type AuditActor, noteReplay } from '../../postgres/bots/audit.js';
import { loadOwnedSince } from '../../postgres/bots/bots.js';
import { holding } from '../../postgres/shards.js';
import * as dead from '../../postgres/webhooks/dead_updates.js';
import { fillAttemptsMax, requestIdsOf, type StoreContext } from '../core/context.js';
import { type Queues, readUpdateFields, type UpdateEntry } from '../updates/queues.js';
import { unpackUpdate } from '../updates/update_record.js';

export interface DeadLetter {
  readonly update: UpdateEntry;
  /** why it was not delivered: a `DeadReason`; other values are possible in the future */
  readonly reason: string;
  /** Unix time in ms when delivery was given up */
  readonly date: number;
}

export interface ReplayAsk {
  /** first and last update id of the range, both included */
  readonly from: number;
  readonly to: number;
  /** Whether to include delivered updates, if still stored. */
  readonly delivered: boolean;
  /** Whether to limit delivered updates to those since the current owner got the bot. */
  readonly ofOwner: boolean;
}

/** Number of updates queued, and the original ids of the first and the last. */
export interface Replayed {
  readonly queued: number;
  readonly first: number | null;
  readonly last: number | null;
}

export const allDead: ReplayAsk = { from: 0, to: limits.id_max, delivered: false, ofOwner: true };

export interface Replays {
  /** A bot's dead letters after an update id, oldest first: up to `limit` and `bytes`, but at least one. */
  list(
    bot: number,
    after: number,
    limit: number,
    bytes: number,
  ): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }>;
  countDead(bot: number): Promise<number>;
  /**
   * Queues updates again, oldest first, at most limits.replay_max. `actor` is recorded in the audit log. Error:
   * `too_many_requests` if the queue is too long, because pending updates would be pushed out.
   */
  replay(bot: number, ask: ReplayAsk, actor?: AuditActor): Promise<Replayed>;
  /** Completes a committed replay by adding its updates to the queue. */
  finish(bot: number, id: number): Promise<void>;
  /** Completes replays that started more than `ageMs` ago, at most a hundred per shard. */
  finishOld(ageMs: number): Promise<void>;
  /** Deletes all dead letters of a bot; returns how many. */
  discard(bot: number): Promise<number>;
}

const discardBatchMax = 1_000;
/** Maximum replays per shard that one sweep completes. */
const replaysMax = 100;

function readLetter({ update_id, record }: dead.DeadRow): DeadLetter {
  const fields = unpackUpdate(record);
  return {
    update: readUpdateFields(update_id, fields),
    reason: String(fields.w ?? ''),
    date: Number(String(fields.d ?? 0)),
  };
}

/** The arguments of one update for `webhooks/replay`. */
function asked(updateId: number, record: Buffer): Array<string | Buffer> {
  const fields = unpackUpdate(record);
  const values = ['k', 'c', 'm', 'r', 'f', 'p', 'y', 'x'].map((name) => fields[name] as Buffer);
  return [String(updateId), ...values];
}

export function createReplays(
  { db, shards, scripts, keys }: StoreContext,
  queues: Queues,
  wake: (bot: number) => void,
): Replays {
  const shardOf = (bot: number) => shards.of(keys.partitions.of(bot)).db;

  /** Records a replay in the audit log. It may be recorded twice if a process dies in between. */
  async function note(
    bot: number,
    { id, updateIds }: dead.TakenReplay,
    actor: AuditActor,
    event: number | null,
  ): Promise<number> {
    const noted = await db.transaction((sql) => noteReplay(sql, bot, { actor, event }, updateIds));
    await dead.replayNoted(shardOf(bot), bot, id);
    return noted;
  }

  /** Adds the updates of a replay to the queue. Does nothing if that is already done. */
  async function push(bot: number, id: number): Promise<void> {
    const left = await dead.loadReplay(shardOf(bot), bot, id);
    if (left === null) return;
    const { updateIds, records } = left;
    if (left.note !== null) await note(bot, left, left.note, null);
    const partition = keys.partitions.of(bot);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      channel: keys.botChannel(bot),
      due: keys.webhooksDue(partition),
      request: keys.request(partition, requestIdsOf(`replay.${id}`).draw()),
    };
    const updates = records.flatMap((record, i) => asked(updateIds[i] as number, record));
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('webhooks/replay', partition, at, { bot: String(bot), updates });
      if (result.status === 'ok') {
        if (result.wake) wake(bot);
        return dead.finishReplay(shardOf(bot), bot, id);
      }
      await queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  return {
    async list(bot, after, limit, bytes) {
      const { rows, more } = await dead.loadDead(shardOf(bot), bot, after, limit, bytes);
      return { items: rows.map(readLetter), more };
    },
    countDead: (bot) => dead.countDead(shardOf(bot), bot),
    async replay(bot, { from, to, delivered, ofOwner }, actor) {
      const { pending } = await queues.info(bot);
      if (pending + limits.replay_max > limits.queue_length_max)
        fail('too_many_requests', { retry_after: 60 });
      let queued = 0;
      let first: number | null = null;
      let last: number | null = null;
      let event: number | null = null;
      const since = ofOwner ? await loadOwnedSince(db, bot) : null;
      for (let next = from; queued < limits.replay_max; ) {
        const taken = await dead.takeReplay(
          shardOf(bot),
          bot,
          { from: next, to, delivered, since },
          limits.replay_batch_max,
          actor ?? null,
        );
        if (taken === null) break;
        if (actor) event = await note(bot, taken, actor, event);
        await push(bot, taken.id);
        queued += taken.updateIds.length;
        first ??= taken.updateIds[0] as number;
        last = taken.updateIds.at(-1) as number;
        next = last + 1;
      }
      return { queued, first, last };
    },
    finish: push,
    async finishOld(ageMs) {
      for (const { db } of holding(shards))
        for (const { bot, id } of await dead.loadOldReplays(db, ageMs, replaysMax)) await push(bot, id);
    },
    async discard(bot) {
      let discarded = 0;
      for (;;) {
        const count = await dead.discardDead(shardOf(bot), bot, discardBatchMax);
        discarded += count;
        if (count < discardBatchMax) return discarded;
      }
    },
  };
}
