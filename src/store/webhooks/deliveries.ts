/**
 * Gives a delivery worker access to a queue, under a fenced lease. `bot` is the id of the queue. A bot's queue has the
 * bot's id, but a route's queue has another id (`../core/queue_ids.ts`).
 */
import type { Hints } from '../../redis/hints.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import { pack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { botOf } from '../core/queue_ids.js';
import { queueKeys } from '../core/script_keys.js';
import { readUpdate, type UpdateEntry } from '../updates/queues.js';
import { type Hint, type Row, readHint } from './hints.js';

export interface Delivery {
  readonly id: string;
  /** The update's chat. Updates of one chat are delivered in order. */
  readonly chat: string;
  /** The creation time in ms, by the clock of Redis. */
  readonly made: number;
  /** The update's size in bytes, as counted towards the queue's limit. */
  readonly bytes: number;
  readonly entry: UpdateEntry;
  readonly fields: readonly Buffer[];
}

/** A parked chat with its updates. `tries` counts the failures of the first update. */
export interface Again {
  readonly chat: string;
  readonly tries: number;
  readonly deliveries: readonly Delivery[];
}

/**
 * The values that a script returned, as described in the script's header. `wait` is null if no chat waits for a retry.
 */
type Taken = Pick<Ok<'webhooks/lease'>, 'after' | 'more' | 'now' | 'gone' | 'dropped'> & {
  readonly again: readonly Again[];
  readonly fresh: readonly Delivery[];
  readonly wait: number | null;
};

export type Lease = Taken & Pick<Ok<'webhooks/lease'>, 'fence' | 'since' | 'hook' | 'safe' | 'probes'>;

export interface Step {
  readonly fence: string;
  readonly since: string;
  /** The version of the webhook settings that the worker uses. */
  readonly hook: number;
  readonly after: string;
  /** All updates up to this queue id are parked or removed. */
  readonly safe: string;
  readonly leave: 'stay' | 'idle' | 'now';
  /** The delivered updates. `parked` is true if the update's chat was parked. */
  readonly acked: ReadonlyArray<{ readonly delivery: Delivery; readonly parked: boolean }>;
  /** True if an earlier step with an unknown outcome may have acknowledged some of these updates. */
  readonly repeated: boolean;
  /**
   * The chats to park, each with the ids of its updates in order. If `tries` is 0, the stored number of failures stays
   * the same.
   */
  readonly failed: ReadonlyArray<{
    readonly chat: string;
    readonly delayMs: number;
    readonly tries: number;
    readonly ids: readonly string[];
  }>;
  readonly chats: number;
  readonly updates: number;
  readonly error: string;
  readonly gone: 'set' | 'clear' | '';
  /** For how many ms no worker may check the bot, or 0 for no pause. Used only if `leave` is `now`. */
  readonly holdMs: number;
  readonly probes: number;
}

export type Advanced = Taken & Pick<Ok<'webhooks/advance'>, 'hook' | 'left' | 'wake'>;

export type LeaseRefusal = 'no_webhook' | 'leased' | 'held';

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Why an update was not delivered. `queue_full` comes from the script that adds updates to the queue. */
export type DeadReason = 'expired' | 'too_large' | 'queue_full';

type Rows = readonly Row[];
type Ok<N extends keyof Scripts> = Extract<Scripts[N]['result'], { status: 'ok' }>;

const chatField = 5;
const timeField = 3;

export function readDelivery(row: Row): Delivery {
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
    after: result.after,
    more: result.more,
    now: result.now,
    gone: result.gone,
    dropped: result.dropped,
    again: again.map(([chat, tries, rows]) => ({
      chat: String(chat),
      tries: Number(tries),
      deliveries: rows.map(readDelivery),
    })),
    fresh: (result.fresh as Rows).map(readDelivery),
    wait: result.wait < 0 ? null : result.wait,
  };
}

export function createDeliveries({ scripts, keys }: StoreContext, hints: Hints) {
  const keysOf = (queue: number) => ({
    partition: keys.partitions.of(botOf(queue)),
    at: queueKeys(keys, queue),
  });

  return {
    async lease(bot: number, limit: number): Promise<Lease | LeaseRefusal> {
      const { partition, at } = keysOf(bot);
      const result = await scripts.call('webhooks/lease', partition, at, { bot: String(bot), limit });
      if (result.status !== 'ok') return result.status;
      const { fence, since, hook, safe, probes } = result;
      return { fence, since, hook, safe, probes, ...taken(result) };
    },
    /** Runs one step of a delivery. Returns null if another worker has the lease. */
    async advance(bot: number, step: Step): Promise<Advanced | null> {
      const { partition, at } = keysOf(bot);
      const report = pack({
        acked: step.acked.flatMap(({ delivery, parked }) => [
          delivery.id,
          delivery.bytes,
          parked ? delivery.chat : '',
        ]),
        repeated: step.repeated,
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
      return { hook, left, wake, ...taken(result) };
    },
    /** Moves updates to the dead letters. Returns false if another worker has the lease. */
    async deadLetter(bot: number, fence: string, reason: DeadReason, ids: readonly string[]) {
      const { partition, at } = keysOf(bot);
      const args = { bot: String(bot), fence, reason, ids };
      return (await scripts.call('webhooks/bury', partition, at, args)).status === 'ok';
    },
    /** Calls `listener` when the bot's queue, or its webhook, may have changed. Hints may be lost. */
    listen: (bot: number, listener: (hint: Hint) => void) =>
      hints.listen(keys.botChannel(bot), (hint) => listener(readHint(hint))),
    partitionsDue: () =>
      scripts.partitionsWith(keys.partitions.count, (partition) => [keys.webhooksDue(partition)]),
    /**
     * Finds the bots of a partition that are due and not leased. The caller must wake a worker for each bot in `bots`.
     * For the bots in `unserved`, a worker was woken before, but no worker served them.
     */
    async due(partition: number, limit: number) {
      const at = { due: keys.webhooksDue(partition), state: keys.queueStateRoot(partition) };
      const { wake, unserved, more } = await scripts.call('webhooks/sweep', partition, at, { limit });
      return { bots: wake.map(Number), unserved: unserved.map(Number), more };
    },
  };
}
