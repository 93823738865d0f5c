/**
 * Wake-up queue: asks some delivery worker to check a bot. A wake-up names only the bot. It may be repeated or lost;
 * a repeat costs one check, a loss delays delivery until the next sweep, about a second. Waiting wake-ups of one bot
 * are merged. One that arrives during a check is kept for afterwards.
 *
 * Each queue has its own hash tag, so a cluster spreads the queues over its servers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import { limits } from '../limits.js';

export interface WakeQueue {
  /**
   * Queues a wake-up, sent within milliseconds. One that cannot be sent is dropped: the sweep finds the bot later.
   */
  wake(bot: number): void;
  /** Calls `check` for each wake-up, at most `concurrency` at a time per queue. */
  listen(check: (bot: number) => Promise<void>, concurrency: number): WakeQueueListener;
  /** False while Redis refuses wake-ups, for instance because its memory is full. */
  readonly works: boolean;
  readonly stats: { readonly sent: number; readonly dropped: number };
  close(): Promise<void>;
}

export interface WakeQueueListener {
  /** Accepts no more wake-ups and waits for the running checks. */
  close(): Promise<void>;
}

export interface WakeQueueOptions {
  /** Called when a connection is first needed. */
  readonly connect: () => ConnectionOptions & { disconnect?(): void };
  /** Hash tags with their braces, one per queue. */
  readonly tags: readonly string[];
  readonly shardOf: (bot: number) => number;
  readonly onError: (error: Error) => void;
}

const queueName = 'webhooks';
/** Wake-ups are batched for this long: repeats of a bot are merged, and many bots share one round trip. */
const gatherMs = 2;
/** How soon the death of a worker is noticed. */
const lockMs = 3_000;
const stalledCheckMs = 2_000;
const stallsMax = 1_000_000;
/** How long a worker waits before it retries after a Redis failure. */
const retryMs = 1_000;
const eventsKept = 10;
const closeMsMax = 1_000;

const jobOptions = (bot: number) => ({
  deduplication: { id: String(bot), keepLastIfActive: true },
  removeOnComplete: true,
  removeOnFail: true,
});

export function createWakeQueue({ connect, tags, shardOf, onError }: WakeQueueOptions): WakeQueue {
  type Client = ReturnType<WakeQueueOptions['connect']>;
  let client: Client | undefined;
  const queues = new Map<number, Queue>();
  const waiting = new Map<number, Set<number>>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let works = true;
  /** Batches being sent. */
  const sending = new Set<Promise<unknown>>();
  const stats = { sent: 0, dropped: 0 };

  const connection = () => {
    client ??= connect();
    return client;
  };
  const optionsOf = (shard: number) => ({ connection: connection(), prefix: `${tags[shard]}:doorbell` });

  function queueOf(shard: number): Queue {
    let queue = queues.get(shard);
    if (!queue) {
      queue = new Queue(queueName, { ...optionsOf(shard), streams: { events: { maxLen: eventsKept } } });
      queue.on('error', onError);
      queues.set(shard, queue);
    }
    return queue;
  }

  function flush(): void {
    timer = undefined;
    for (const [shard, bots] of waiting) {
      count -= bots.size;
      stats.sent += bots.size;
      const wakeUps = [...bots].map((bot) => ({ name: 'ring', data: bot, opts: jobOptions(bot) }));
      const sent: Promise<unknown> = queueOf(shard)
        .addBulk(wakeUps)
        .then(
          () => {
            works = true;
          },
          (error) => {
            works = false;
            onError(error);
          },
        )
        .finally(() => sending.delete(sent));
      sending.add(sent);
    }
    waiting.clear();
  }

  return {
    wake(bot) {
      if (closed) return;
      if (count >= limits.wake_ups_waiting_max) {
        stats.dropped++;
        return;
      }
      const shard = shardOf(bot);
      const bots = waiting.get(shard) ?? new Set();
      waiting.set(shard, bots);
      if (!bots.has(bot)) count++;
      bots.add(bot);
      timer ??= setTimeout(flush, gatherMs);
    },
    listen(check, concurrency) {
      const workers = tags.map((_, shard) => {
        const worker = new Worker(queueName, async ({ data }) => check(Number(data)), {
          ...optionsOf(shard),
          concurrency,
          lockDuration: lockMs,
          stalledInterval: stalledCheckMs,
          maxStalledCount: stallsMax,
          runRetryDelay: retryMs,
          removeOnComplete: { count: 0 },
          removeOnFail: { count: 0 },
        });
        worker.on('error', onError);
        worker.on('failed', (_, error) => onError(error));
        return worker;
      });
      return {
        async close() {
          await Promise.all(workers.map((worker) => worker.close()));
        },
      };
    },
    stats,
    get works() {
      return works;
    },
    async close() {
      if (timer !== undefined) {
        clearTimeout(timer);
        flush();
      }
      closed = true;
      // A task sends its wake-up last, so wait briefly for it. Not longer: when Redis is down, the sweep recovers
      // lost wake-ups.
      const late = new AbortController();
      await Promise.race([
        Promise.all(sending),
        sleep(closeMsMax, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      client?.disconnect?.();
    },
  };
}
