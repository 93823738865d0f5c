/**
 * Sends and receives wake-ups. A wake-up asks any delivery worker to check one bot, and contains only the id of the
 * bot. A repeated wake-up only costs one more check. If a wake-up is lost, the next sweep finds the bot within about a
 * second. Waiting wake-ups of one bot are merged. A wake-up that arrives during a check is handled after the check.
 */
import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import { systemTime, type Time, type Timer } from '../time.js';
import { deliveryLimits as limits } from './limits.js';

export interface WakeQueueListener {
  /** Refuses further wake-ups and waits for the running checks. */
  close(): Promise<void>;
}

export interface WakeQueueOptions {
  readonly connect: () => ConnectionOptions & { disconnect?(): void };
  /** The Redis hash tags with their braces, one per wake-up queue. */
  readonly tags: readonly string[];
  readonly shardOf: (bot: number) => number;
  readonly onError: (error: Error) => void;
  readonly time?: Time;
}

const queueName = 'webhooks';
/**
 * How long to collect wake-ups before sending them, in ms. Meanwhile, repeated wake-ups of one bot are merged, and the
 * wake-ups of many bots share one round trip.
 */
const gatherMs = 2;
/** How long it takes to detect that a worker has died, in ms. */
const lockMs = 3_000;
const stalledCheckMs = 2_000;
const stallsMax = 1_000_000;
const retryMs = 1_000;
const eventsKept = 10;
const closeMsMax = 1_000;

const jobOptions = (bot: number) => ({
  deduplication: { id: String(bot), keepLastIfActive: true },
  removeOnComplete: true,
  removeOnFail: true,
});

export class WakeQueue {
  readonly stats = { sent: 0, dropped: 0 };
  readonly #options: WakeQueueOptions;
  readonly #time: Time;
  readonly #queues = new Map<number, Queue>();
  readonly #waiting = new Map<number, Set<number>>();
  #count = 0;
  #timer: Timer | undefined;
  readonly #sending = new Set<Promise<unknown>>();
  #client: ReturnType<WakeQueueOptions['connect']> | undefined;
  #works = true;
  #closed = false;

  constructor(options: WakeQueueOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
  }

  /** Whether Redis accepts wake-ups. Redis does not accept any while its memory is full, for instance. */
  get works(): boolean {
    return this.#works;
  }

  /**
   * Sends a wake-up within milliseconds. A wake-up that cannot be sent is dropped, because the next sweep finds the
   * bot.
   */
  wake(bot: number): void {
    if (this.#closed) return;
    if (this.#count >= limits.wake_ups_waiting_max) {
      this.stats.dropped++;
      return;
    }
    const shard = this.#options.shardOf(bot);
    const bots = this.#waiting.get(shard) ?? new Set();
    this.#waiting.set(shard, bots);
    if (!bots.has(bot)) this.#count++;
    bots.add(bot);
    this.#timer ??= this.#time.after(gatherMs, () => this.#flush());
  }

  /** Calls `check` for each wake-up. Each queue runs up to `concurrency` checks at a time. */
  listen(check: (bot: number) => Promise<void>, concurrency: number): WakeQueueListener {
    const { tags, onError } = this.#options;
    const workers = tags.map((_, shard) => {
      const worker = new Worker(queueName, async ({ data }) => check(Number(data)), {
        ...this.#optionsOf(shard),
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
    return { close: async () => void (await Promise.all(workers.map((worker) => worker.close()))) };
  }

  async close(): Promise<void> {
    if (this.#timer !== undefined) {
      this.#time.cancel(this.#timer);
      this.#flush();
    }
    this.#closed = true;
    // Waits for wake-ups that are still on their way to Redis. The wait is short: if Redis is down, a later sweep finds
    // the bots anyway.
    await this.#time.within(closeMsMax, Promise.all(this.#sending));
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#client?.disconnect?.();
  }

  #optionsOf(shard: number) {
    this.#client ??= this.#options.connect();
    return { connection: this.#client, prefix: `${this.#options.tags[shard]}:doorbell` };
  }

  #queueOf(shard: number): Queue {
    let queue = this.#queues.get(shard);
    if (!queue) {
      const streams = { events: { maxLen: eventsKept } };
      queue = new Queue(queueName, { ...this.#optionsOf(shard), streams });
      queue.on('error', this.#options.onError);
      this.#queues.set(shard, queue);
    }
    return queue;
  }

  #flush(): void {
    this.#timer = undefined;
    this.#count = 0;
    for (const [shard, bots] of this.#waiting) {
      this.stats.sent += bots.size;
      const sent = this.#send(shard, [...bots]).finally(() => this.#sending.delete(sent));
      this.#sending.add(sent);
    }
    this.#waiting.clear();
  }

  async #send(shard: number, bots: readonly number[]): Promise<void> {
    try {
      const wakeUps = bots.map((bot) => ({ name: 'ring', data: bot, opts: jobOptions(bot) }));
      await this.#queueOf(shard).addBulk(wakeUps);
      this.#works = true;
    } catch (error) {
      this.#works = false;
      this.#options.onError(error as Error);
    }
  }
}
