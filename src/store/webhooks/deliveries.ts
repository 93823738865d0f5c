/** A bot's queue as the worker sees it that delivers to the bot's webhook: under a lease with a fence. */
import type { Hints } from '../../redis/hints.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import { pack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { readUpdate, type UpdateEntry } from '../updates/queues.js';

/** An update that waits to be delivered. */
export interface Delivery {
  readonly id: string;
  /** The chat whose order it keeps. */
  readonly chat: string;
  /** ms, Redis' time */
  readonly made: number;
  /** What it counts towards the bound of its queue. */
  readonly bytes: number;
  readonly entry: UpdateEntry;
  /** Names and values, as they stand in the queue. */
  readonly fields: readonly Buffer[];
}

/** Updates of a chat that failed before; `tries` belongs to the first. */
export interface Again {
  readonly chat: string;
  readonly tries: number;
  readonly deliveries: readonly Delivery[];
}

interface Taken {
  readonly again: readonly Again[];
  readonly fresh: readonly Delivery[];
  /** The queue was read up to here. */
  readonly after: string;
  readonly more: boolean;
  /** ms until the next chat is due that failed; null for none */
  readonly wait: number | null;
  /** ms, Redis' time */
  readonly now: number;
  /** ms, since when the receiver has answered nothing but 410; null when it has not */
  readonly gone: number | null;
  /** Version of the settings that last dropped what waited: what was taken before is gone. */
  readonly dropped: string;
}

export interface Lease extends Taken {
  readonly fence: string;
  readonly since: string;
  /** Version of the settings. */
  readonly hook: number;
  readonly safe: string;
  readonly probes: number;
}

/** What a worker tells and asks in one step. */
export interface Step {
  readonly fence: string;
  readonly since: string;
  /** Version of the settings that were gone by. */
  readonly hook: number;
  readonly after: string;
  /** Everything up to this id is parked or gone. */
  readonly safe: string;
  readonly leave: 'stay' | 'idle' | 'now';
  /** `parked` when the chat was parked. */
  readonly acked: ReadonlyArray<{ readonly delivery: Delivery; readonly parked: boolean }>;
  /** Chats to park, with the ids held of them in order; 0 tries keep what is known. */
  readonly failed: ReadonlyArray<{
    readonly chat: string;
    readonly delayMs: number;
    readonly tries: number;
    readonly ids: readonly string[];
  }>;
  readonly chats: number;
  readonly updates: number;
  /** Of the last failure, '' for none. */
  readonly error: string;
  readonly gone: 'set' | 'clear' | '';
  /** With `leave` now: nobody is to look before so many ms, unless 0. */
  readonly holdMs: number;
  readonly probes: number;
}

export interface Advanced extends Taken {
  /** 0 when the webhook was deleted: then nothing but acknowledging was done. */
  readonly hook: number;
  readonly left: boolean;
  /** The lease was given back and there is something to do. */
  readonly wake: boolean;
}

export type LeaseRefusal = 'no_webhook' | 'leased' | 'held';

export interface Deliveries {
  lease(bot: number, limit: number): Promise<Lease | LeaseRefusal>;
  /** Null when another worker has the lease. */
  advance(bot: number, step: Step): Promise<Advanced | null>;
  /** Takes updates out as dead letters. False when another worker has the lease. */
  deadLetter(bot: number, fence: string, reason: DeadReason, ids: readonly string[]): Promise<boolean>;
  /** Calls `listener` when the bot's queue may have changed, or its webhook; a hint. */
  listen(bot: number, listener: (webhook: boolean) => void): Promise<() => void>;
  /** Partitions where bots may be due. */
  partitionsDue(): Promise<readonly number[]>;
  /** Bots of a partition that are due and in nobody's hands: to be rung for, and rung for in vain. */
  due(
    partition: number,
    limit: number,
  ): Promise<{ readonly bots: number[]; readonly unserved: number[]; readonly more: boolean }>;
}

/** Why an update was not delivered; `queue_full` is what the queue itself says. */
export type DeadReason = 'expired' | 'too_large' | 'queue_full';

type Rows = ReadonlyArray<[id: Buffer, fields: Buffer[]]>;
type Ok<N extends keyof Scripts> = Extract<Scripts[N]['result'], { status: 'ok' }>;

const chatField = 5;
const timeField = 3;

function readDelivery(row: Rows[number]): Delivery {
  const [id, fields] = row;
  let bytes = 0;
  for (let i = 1; i < fields.length; i += 2) bytes += (fields[i] as Buffer).length;
  return {
    id: String(id).split('-', 1)[0] as string,
    chat: String(fields[chatField]),
    made: Number(fields[timeField]),
    bytes,
    entry: readUpdate(row),
    fields,
  };
}

function taken(result: Ok<'webhooks/lease'> | Ok<'webhooks/advance'>): Taken {
  const again = result.again as ReadonlyArray<[chat: Buffer, tries: Buffer, rows: Rows]>;
  return {
    again: again.map(([chat, tries, rows]) => ({
      chat: String(chat),
      tries: Number(tries),
      deliveries: rows.map(readDelivery),
    })),
    fresh: (result.fresh as Rows).map(readDelivery),
    after: result.after,
    more: result.more,
    wait: result.wait < 0 ? null : result.wait,
    now: result.now,
    gone: result.gone,
    dropped: result.dropped,
  };
}

export function createDeliveries({ scripts, keys }: StoreContext, hints: Hints): Deliveries {
  function keysOf(bot: number) {
    const partition = keys.partitions.of(bot);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      parked: keys.parked(bot),
      retries: keys.retries(bot),
      attempts: keys.attempts(bot),
      due: keys.webhooksDue(partition),
    };
    return { partition, at };
  }

  return {
    async lease(bot, limit) {
      const { partition, at } = keysOf(bot);
      const result = await scripts.call('webhooks/lease', partition, at, { bot: String(bot), limit });
      if (result.status !== 'ok') return result.status;
      const { fence, since, hook, safe, probes } = result;
      return { ...taken(result), fence, since, hook, safe, probes };
    },
    async advance(bot, step) {
      const { partition, at } = keysOf(bot);
      const report = pack({
        acked: step.acked.flatMap(({ delivery, parked }) => [
          delivery.id,
          delivery.bytes,
          parked ? delivery.chat : '',
        ]),
        failed: step.failed.map(({ chat, delayMs, tries, ids }) => [
          chat,
          Math.round(delayMs),
          String(tries),
          ...ids,
        ]),
        chats: step.chats,
        updates: step.updates,
        error: step.error,
        gone: step.gone,
        hold: Math.round(step.holdMs),
        probes: step.probes,
        hook: step.hook,
      });
      const { fence, since, after, safe, leave } = step;
      const args = { bot: String(bot), fence, since, after, safe, leave, report };
      const result = await scripts.call('webhooks/advance', partition, at, args);
      if (result.status !== 'ok') return null;
      const { hook, left, wake } = result;
      return { ...taken(result), hook, left, wake };
    },
    async deadLetter(bot, fence, reason, ids) {
      const { partition, at } = keysOf(bot);
      const args = { bot: String(bot), fence, reason, ids };
      return (await scripts.call('webhooks/bury', partition, at, args)).status === 'ok';
    },
    listen: (bot, listener) => hints.listen(keys.botChannel(bot), (text) => listener(text === 'w')),
    partitionsDue: () =>
      scripts.partitionsWith(keys.partitions.count, (partition) => [keys.webhooksDue(partition)]),
    async due(partition, limit) {
      const at = { due: keys.webhooksDue(partition), state: keys.queueStateRoot(partition) };
      const { wake, unserved, more } = await scripts.call('webhooks/sweep', partition, at, { limit });
      return { bots: wake.map(Number), unserved: unserved.map(Number), more };
    },
  };
}
