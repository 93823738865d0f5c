/** A bot's queue as its delivery worker accesses it: under a lease with a fence. */
import type { Hints } from '../../redis/hints.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import { pack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { readUpdate, type UpdateEntry } from '../updates/queues.js';

/** An update to be delivered. */
export interface Delivery {
  readonly id: string;
  /** Chat whose updates are delivered in order, this one included. */
  readonly chat: string;
  /** creation time in ms by the clock of Redis */
  readonly made: number;
  /** Size of the update, as counted towards the queue's limit. */
  readonly bytes: number;
  readonly entry: UpdateEntry;
  /** Names and values of the update's fields, as stored in the queue. */
  readonly fields: readonly Buffer[];
}

/** Updates of a parked chat. `tries` counts the failures of the first one. */
export interface Again {
  readonly chat: string;
  readonly tries: number;
  readonly deliveries: readonly Delivery[];
}

interface Taken {
  readonly again: readonly Again[];
  readonly fresh: readonly Delivery[];
  /** Id of the last queue entry read. */
  readonly after: string;
  readonly more: boolean;
  /** time in ms until the next parked chat is due; null for none */
  readonly wait: number | null;
  /** time of the reply, in ms by the clock of Redis */
  readonly now: number;
  /** time in ms since when the receiver has answered only 410; null otherwise */
  readonly gone: number | null;
  /** Settings version that last dropped the queue: updates read before are gone. */
  readonly dropped: string;
}

export interface Lease extends Taken {
  readonly fence: string;
  readonly since: string;
  /** Version of the webhook settings. */
  readonly hook: number;
  readonly safe: string;
  readonly probes: number;
}

/** A worker's report and requests for one step. */
export interface Step {
  readonly fence: string;
  readonly since: string;
  /** Version of the webhook settings that the worker uses. */
  readonly hook: number;
  readonly after: string;
  /** Queue id up to which every update is parked or removed. */
  readonly safe: string;
  readonly leave: 'stay' | 'idle' | 'now';
  /** Delivered updates. `parked`: the chat was parked. */
  readonly acked: ReadonlyArray<{ readonly delivery: Delivery; readonly parked: boolean }>;
  /** Chats to park, with their ids in order; 0 tries keep the stored count. */
  readonly failed: ReadonlyArray<{
    readonly chat: string;
    readonly delayMs: number;
    readonly tries: number;
    readonly ids: readonly string[];
  }>;
  readonly chats: number;
  readonly updates: number;
  /** Text of the last failure, '' for none. */
  readonly error: string;
  readonly gone: 'set' | 'clear' | '';
  /** Time in ms for which no worker may check the bot, if `leave` is now; 0 for none. */
  readonly holdMs: number;
  readonly probes: number;
}

export interface Advanced extends Taken {
  /** Version of the webhook settings; 0 when the webhook was deleted and only acknowledgements were processed. */
  readonly hook: number;
  readonly left: boolean;
  /** True if the lease was released although there is more to deliver. */
  readonly wake: boolean;
}

export type LeaseRefusal = 'no_webhook' | 'leased' | 'held';

export interface Deliveries {
  lease(bot: number, limit: number): Promise<Lease | LeaseRefusal>;
  /** Runs one step of a delivery. Returns null when another worker has the lease. */
  advance(bot: number, step: Step): Promise<Advanced | null>;
  /** Moves updates to the dead letters. Returns false when another worker has the lease. */
  deadLetter(bot: number, fence: string, reason: DeadReason, ids: readonly string[]): Promise<boolean>;
  /** Calls `listener` when the bot's queue, or its webhook, may have changed; hints may be lost. */
  listen(bot: number, listener: (webhook: boolean) => void): Promise<() => void>;
  /** Partitions that may have bots to serve. */
  partitionsDue(): Promise<readonly number[]>;
  /** Bots of a partition that are due and not leased: `bots` must be woken, `unserved` were woken without success. */
  due(
    partition: number,
    limit: number,
  ): Promise<{ readonly bots: number[]; readonly unserved: number[]; readonly more: boolean }>;
}

/** Why an update was not delivered; the queue itself reports `queue_full`. */
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
