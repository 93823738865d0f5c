/**
 * Asks some worker to look at a bot. A ring names a bot and nothing else: it may come twice or get lost, and then costs a look or a
 * second. Rings of one bot that wait are one; one that comes while the bot is looked at is kept for afterwards.
 *
 * Queues lie under hash tags of their own, so that on a cluster no single server carries all of them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import { limits } from '../limits.js';

export interface Doorbell {
  /** Rings soon. What cannot be rung is left to the sweep. */
  ring(bot: number): void;
  /** Calls `look` for each ring, at most `concurrency` at a time a queue. */
  listen(look: (bot: number) => Promise<void>, concurrency: number): DoorbellListener;
  /** False while Redis refuses rings, for instance because its memory is full. */
  readonly works: boolean;
  readonly stats: { readonly rung: number; readonly dropped: number };
  close(): Promise<void>;
}

export interface DoorbellListener {
  /** Takes up no more rings and waits for those that are looked at. */
  close(): Promise<void>;
}

export interface DoorbellOptions {
  /** Opened when it is first needed. */
  readonly connect: () => ConnectionOptions & { disconnect?(): void };
  /** Hash tags with their braces, one a queue. */
  readonly tags: readonly string[];
  readonly shardOf: (bot: number) => number;
  readonly onError: (error: Error) => void;
}

const queueName = 'webhooks';
/** Rings are gathered for so long: many of one bot become one, many bots one round trip. */
const gatherMs = 2;
/** A worker that died is noticed after these. */
const lockMs = 3_000;
const stalledLookMs = 2_000;
const stallsMax = 1_000_000;
/** How soon a worker asks again after Redis was away. */
const retryMs = 1_000;
const eventsKept = 10;
const closeMsMax = 1_000;

const jobOptions = (bot: number) => ({
  deduplication: { id: String(bot), keepLastIfActive: true },
  removeOnComplete: true,
  removeOnFail: true,
});

export function createDoorbell({ connect, tags, shardOf, onError }: DoorbellOptions): Doorbell {
  type Client = ReturnType<DoorbellOptions['connect']>;
  let client: Client | undefined;
  const queues = new Map<number, Queue>();
  const waiting = new Map<number, Set<number>>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let works = true;
  /** Rings on their way. */
  const sending = new Set<Promise<unknown>>();
  const stats = { rung: 0, dropped: 0 };

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
      stats.rung += bots.size;
      const rings = [...bots].map((bot) => ({ name: 'ring', data: bot, opts: jobOptions(bot) }));
      const sent: Promise<unknown> = queueOf(shard)
        .addBulk(rings)
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
    ring(bot) {
      if (closed) return;
      if (count >= limits.doorbell_rings_max) {
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
    listen(look, concurrency) {
      const workers = tags.map((_, shard) => {
        const worker = new Worker(queueName, async ({ data }) => look(Number(data)), {
          ...optionsOf(shard),
          concurrency,
          lockDuration: lockMs,
          stalledInterval: stalledLookMs,
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
      // A task rings as the last thing it does. While Redis is away nobody waits: a sweep makes good for it.
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
