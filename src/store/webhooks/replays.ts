/**
 * Updates that were not delivered, and delivering updates again. What is replayed is taken out of Postgres together with a note of
 * it (law 2); `webhooks/replay` then puts it into the bot's queue once, and the sweep repeats that for a node that died.
 *
 * A replay goes behind what waits. Over a webhook it carries the `update_id` that it had, so that a receiver which has seen it can
 * drop it; over polling, where an offset only grows, a new one.
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
  /** `DeadReason`; more may come */
  readonly reason: string;
  /** ms, when it was given up */
  readonly date: number;
}

export interface ReplayAsk {
  /** update ids, both inclusive */
  readonly from: number;
  readonly to: number;
  /** Also what was delivered, as far as it is kept. */
  readonly delivered: boolean;
  /** Of what was delivered, only what was since the present owner got the bot. */
  readonly ofOwner: boolean;
}

/** What was queued again: how many, and the first and the last of them by the ids that they had. */
export interface Replayed {
  readonly queued: number;
  readonly first: number | null;
  readonly last: number | null;
}

export const allDead: ReplayAsk = { from: 0, to: limits.id_max, delivered: false, ofOwner: true };

export interface Replays {
  /** A bot's dead letters behind an update id, oldest first: up to `limit` with up to `bytes`, but at least one. */
  list(
    bot: number,
    after: number,
    limit: number,
    bytes: number,
  ): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }>;
  countDead(bot: number): Promise<number>;
  /**
   * Queues updates again, oldest first, at most limits.replay_max. With `actor` the audit log tells who did. Error:
   * `too_many_requests` when so much waits already that it would be pushed out.
   */
  replay(bot: number, ask: ReplayAsk, actor?: AuditActor): Promise<Replayed>;
  /** Repeats what follows a committed replay. */
  finish(bot: number, id: number): Promise<void>;
  /** The same of replays that were begun more than `ageMs` ago, a hundred of each shard at most. */
  finishOld(ageMs: number): Promise<void>;
  /** Removes all dead letters; returns how many. */
  discard(bot: number): Promise<number>;
}

const discardBatchMax = 1_000;
/** That one sweep finishes of a shard. */
const replaysMax = 100;

function readLetter({ update_id, record }: dead.DeadRow): DeadLetter {
  const fields = unpackUpdate(record);
  return {
    update: readUpdateFields(update_id, fields),
    reason: String(fields.w ?? ''),
    date: Number(String(fields.d ?? 0)),
  };
}

/** What `webhooks/replay` takes of an update. */
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

  /** Has the audit log tell of a replay; one that was noted by a process which then died may be told twice. */
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

  /** Nothing to do when another has done it. */
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
