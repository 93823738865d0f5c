/** Moves the test server's clock: in this process, in the scripts and keys of Redis, and in Postgres. */
import type { DeliveryWorker } from '../delivery/worker.js';
import { fail } from '../errors.js';
import type { Pool } from '../postgres/pool.js';
import type { RedisConnection } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';
import { botOf } from '../store/core/queue_ids.js';
import type { Time } from '../time.js';
import { testModeLimits as limits } from './limits.js';
import type { MovableTime } from './movable_time.js';
import { movePostgres, moveRedis, type RedisClient } from './moved_stores.js';

export type ReadingClient = RedisClient &
  Pick<RedisConnection['client'], 'zrange' | 'xlen' | 'zcard' | 'zcount' | 'hmget'>;

export interface ClockOptions {
  readonly time: MovableTime;
  /** The machine's clock. */
  readonly machine: Time;
  readonly client: ReadingClient;
  readonly pool: Pick<Pool, 'query'>;
  readonly keys: Keys;
  readonly worker: Pick<DeliveryWorker, 'stateOf'>;
  /** Returns whether a fault currently delays a delivery to this bot. */
  readonly isDelayed: (bot: number) => boolean;
}

const pollMs = 2;

export class TestClock {
  readonly #options: ClockOptions;
  #last: Promise<unknown> = Promise.resolve();
  #addedMs = 0;

  constructor(options: ClockOptions) {
    this.#options = options;
  }

  /**
   * Moves the clock forward by `ms`, after earlier moves have ended. Waits for due webhook deliveries before and after
   * the move, each time for at most `limits.clock_settle_ms_max`. Returns the new Unix time in ms, and whether these
   * deliveries have finished. Throws `bad_request` if all moves together exceed `limits.clock_added_ms_max`.
   */
  advance(ms: number): Promise<{ readonly now_ms: number; readonly settled: boolean }> {
    const moved = this.#last.then(() => this.#advance(ms));
    this.#last = moved.catch(() => undefined);
    return moved;
  }

  async #advance(ms: number) {
    const { time, client, pool } = this.#options;
    if (this.#addedMs + ms > limits.clock_added_ms_max) fail('bad_request');
    this.#addedMs += ms;
    await this.#settle();
    await movePostgres(pool, ms);
    // While Redis has the new time but this process does not, a worker may take a lease that is valid in Redis but has
    // already ended for the worker.
    await moveRedis(client, ms);
    await time.advance(ms);
    return { settled: await this.#settle(), now_ms: time.now() };
  }

  async #settle(): Promise<boolean> {
    const { machine } = this.#options;
    const endMs = machine.monotonic() + limits.clock_settle_ms_max;
    while (!(await this.#isSettled())) {
      if (machine.monotonic() >= endMs) return false;
      await machine.sleep(pollMs);
    }
    return true;
  }

  /** Returns whether no delivery is in progress or due. Updates on their way between partitions count as due. */
  async #isSettled(): Promise<boolean> {
    const { client, keys } = this.#options;
    const partitions = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
    const outboxes = partitions.map((partition) => client.xlen(keys.outbox(partition)));
    const due = partitions.map((partition) => client.zrange(keys.webhooksDue(partition), 0, '-1'));
    if ((await Promise.all(outboxes)).some((length) => length > 0)) return false;
    const bots = (await Promise.all(due)).flat().map(Number);
    return (await Promise.all(bots.map((bot) => this.#isSettledFor(bot)))).every(Boolean);
  }

  async #isSettledFor(bot: number): Promise<boolean> {
    const { client, keys, worker, time, isDelayed } = this.#options;
    const [state, updates, parked, due] = await Promise.all([
      client.hmget(keys.queueState(bot), 'hook', 'hold', 'leased'),
      client.xlen(keys.queue(bot)),
      client.zcard(keys.parked(bot)),
      client.zcount(keys.retries(bot), '-inf', String(time.now())),
    ]);
    const [hook, hold, leased] = state;
    // Asks the worker only after Redis has answered. A worker that took updates before the answer is then still found
    // busy.
    const delivering = worker.stateOf(bot);
    if (isDelayed(botOf(bot))) return true;
    if (delivering === 'busy') return false;
    if (hook === null || delivering === 'paused' || Number(hold ?? 0) > time.now()) return true;
    // If no delivery runs although the queue is leased, the lease was lost when the clock was moved. Until the lease
    // expires, the queue's retries are not due.
    if (delivering === 'none' && Number(leased ?? 0) > time.now()) return false;
    return updates === parked && due === 0;
  }
}
