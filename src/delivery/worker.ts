/**
 * Delivers webhooks in one process. Handles wake-ups, delivers each queue's updates under a lease (a drain), and sweeps
 * for bots whose wake-ups were lost. A bot has one queue of its own and one for each of its webhook routes. In this
 * file, `bot` is the id of a queue (`store/core/queue_ids.ts`).
 */
import { systemRandom } from '../random.js';
import { isBlocked } from '../store/core/control.js';
import { botOf } from '../store/core/queue_ids.js';
import { systemTime, type Time } from '../time.js';
import type { DrainContext } from './context.js';
import { Drain } from './drain.js';
import { createHeldBytes } from './held_bytes.js';
import { deliveryLimits as limits } from './limits.js';
import { isDelivered } from './outcome.js';
import { createSlots, type Slots } from './slots.js';
import type { WakeQueue, WakeQueueListener } from './wake_queue.js';

export interface DeliveryStats {
  readonly drains: number;
  readonly open: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dead: number;
}

export interface DeliveryWorkerOptions
  extends Omit<DrainContext, 'slots' | 'heldBytes' | 'mayStay' | 'time' | 'random'>,
    Partial<Pick<DrainContext, 'time' | 'random'>> {
  readonly wakeQueue: WakeQueue;
  readonly drainsMax?: number;
}

const sweepMs = 500;
/** The sweep interval in ms while no bot has pending webhook updates. */
const idleSweepMs = 1_000;
const sweepBotsMax = 100;
/** The number of wake-ups that are handled at a time, per wake-up queue. */
const checksMax = 64;
/** How many checks the sweeps of this process may run at a time. Sweeps check bots whose wake-ups were not handled. */
const unservedMax = 64;

/**
 * Runs at most one drain per queue in this process. Wake-ups and sweeps start drains. A drain needs a permit before it
 * takes the lease, and keeps the permit until it ends. The owners share three things in this process: the permits, the
 * slots for updates in flight, and the memory for fetched updates (decision 0085).
 */
export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  readonly #context: DrainContext;
  readonly #time: Time;
  readonly #slots = createSlots(limits.webhook_open_max);
  readonly #heldBytes = createHeldBytes(limits.webhook_held_bytes_total_max);
  readonly #counts = { delivered: 0, failed: 0, dead: 0 };
  readonly #drains = new Map<number, Drain>();
  /** The bots whose lease this process is requesting. */
  readonly #starting = new Set<{ readonly bot: number }>();
  /** The bots that were woken after their drain had released the lease but before the drain had ended. */
  readonly #wokenAgain = new Set<number>();
  /**
   * The bots whose drain ended recently in this process, oldest first. The value is the monotonic time at which the
   * drain ended.
   */
  readonly #served = new Map<number, number>();
  readonly #stopping = new AbortController();
  readonly #permits: Slots;
  readonly #checks = new Set<Promise<void>>();
  #listener: WakeQueueListener | undefined;
  #sweeping: Promise<void> | undefined;

  constructor(options: DeliveryWorkerOptions) {
    const { drainsMax = limits.webhook_drains_max, time = systemTime, random = systemRandom } = options;
    this.#options = options;
    this.#time = time;
    this.#permits = createSlots(drainsMax);
    this.#context = {
      ...options,
      time,
      random,
      slots: this.#slots,
      heldBytes: this.#heldBytes,
      // A drain without work may keep its permit only if less than half of all permits are in use, and if the free
      // permits are more than three times the owner's permits. Otherwise woken bots could not get a permit.
      mayStay: (owner) => {
        const { taken, room } = this.#permits.of(owner);
        return this.#drains.size < drainsMax / 2 && taken < room / 2;
      },
      onOutcome: (bot, delivery, outcome, dead, facts) => {
        if (outcome !== null) this.#counts[isDelivered(outcome) ? 'delivered' : 'failed']++;
        if (dead !== null) this.#counts.dead++;
        options.onOutcome?.(bot, delivery, outcome, dead, facts);
      },
    };
  }

  start(): void {
    const { wakeQueue, onError } = this.#options;
    this.#listener = wakeQueue.listen((bot) => this.#check(bot).catch(onError), checksMax);
    this.#sweeping = this.#sweep();
  }

  /** Waits for updates in flight, up to a time limit, and releases every lease. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const ended = this.#listener?.close();
    const drains = [...this.#drains.values()];
    await Promise.all(drains.map((drain) => drain.stop(limits.webhook_stop_ms_max)));
    await Promise.all([ended, this.#sweeping]);
    await Promise.all(this.#checks);
  }

  stats(): DeliveryStats {
    return { drains: this.#drains.size, open: this.#slots.taken, ...this.#counts };
  }

  /**
   * Returns `none` if this process has no drain for the bot. Otherwise returns `busy` while deliveries are in progress,
   * `paused` while the drain defers them, and `waiting` while there is nothing to deliver.
   */
  stateOf(bot: number): 'busy' | 'paused' | 'waiting' | 'none' {
    const drain = this.#drains.get(bot);
    const isStarting = [...this.#starting].some((start) => start.bot === bot);
    if (isStarting || drain?.busy) return 'busy';
    if (drain === undefined) return 'none';
    return drain.paused ? 'paused' : 'waiting';
  }

  /**
   * Starts a drain if the bot's lease is free. The caller has acquired a permit. The drain releases the permit when it
   * ends.
   */
  async #begin(bot: number, owner: number): Promise<Drain | null> {
    const { store, wakeQueue } = this.#options;
    const sentAt = this.#time.monotonic();
    const most = this.#heldBytes.room(owner) > 0 ? limits.webhook_take_max : 1;
    const lease = await store.deliveries.lease(bot, most);
    if (typeof lease === 'string') return null;
    const webhook = await store.webhooks.find(bot);
    // The webhook was deleted just before this call. Nobody releases the lease, but it expires by itself.
    if (webhook === null) return null;
    // If the bot's token leaked, the drain sends nothing until the bot has a new token, because the thief may have set
    // the webhook.
    const blocked = isBlocked(await store.auth.botById(botOf(bot)));
    // An earlier drain of this bot is still running in this process, although its lease has expired.
    if (this.#drains.has(bot)) return null;
    const again = this.#served.delete(bot);
    const drain = new Drain(this.#context, { queue: bot, owner }, webhook, lease, sentAt, again, blocked);
    this.#drains.set(bot, drain);
    drain.done.then((hasMore) => {
      this.#drains.delete(bot);
      this.#permits.give(owner);
      this.#served.set(bot, this.#time.monotonic());
      if (this.#wokenAgain.delete(bot) || hasMore) wakeQueue.wake(bot);
    });
    return drain;
  }

  /**
   * Acquires a permit and returns true. Waits while no permit is free. Returns false if the owner already uses their
   * share of the permits, or if another of the owner's queues waits for a permit. Otherwise the waiting queues of one
   * owner could occupy all checks of this process. A later sweep finds the refused queue again.
   */
  async #permit(owner: number): Promise<boolean> {
    for (;;) {
      const { taken, waiting, room } = this.#permits.of(owner);
      if (room <= 0 && taken + waiting > 0) return false;
      let free = () => {};
      const freed = new Promise<void>((resolve) => {
        free = resolve;
      });
      if (this.#permits.take(owner, 0, free)) return true;
      await freed;
    }
  }

  /**
   * Checks a bot that may have updates to deliver. Waits while no permit is free; meanwhile, another process may
   * deliver the updates. Resolves when the drain has nothing left to do, or has run for a limited time.
   */
  async #check(bot: number): Promise<void> {
    if (this.#drains.has(bot)) {
      // Only bots without a lease are woken, so the drain of this bot has given up its lease and is about to end.
      // Repeats the wake-up when the drain has ended. Otherwise the bot would have to wait for the next sweep.
      this.#wokenAgain.add(bot);
      return;
    }
    const owner = (await this.#options.store.auth.botById(botOf(bot)))?.owner ?? 0;
    if (!(await this.#permit(owner))) return;
    const { signal } = this.#stopping;
    let drain: Drain | null = null;
    const start = { bot };
    this.#starting.add(start);
    try {
      if (!signal.aborted && !this.#drains.has(bot)) drain = await this.#begin(bot, owner);
    } finally {
      this.#starting.delete(start);
      if (drain === null) this.#permits.give(owner);
    }
    if (drain === null) return;
    if (signal.aborted) await drain.stop(limits.webhook_stop_ms_max);
    else {
      const slice = this.#time.sleep(limits.webhook_slice_ms, { ref: false });
      await Promise.race([drain.done, drain.quiet, slice]);
    }
  }

  /** Checks a bot that a sweep found. If no permit is free, skips the bot, because a later sweep finds it again. */
  #checkHere(bot: number): void {
    if (this.#permits.full) return;
    const checked = this.#check(bot)
      .catch(this.#options.onError)
      .finally(() => this.#checks.delete(checked));
    this.#checks.add(checked);
  }

  async #sweepPartition(partition: number): Promise<void> {
    const { store, wakeQueue } = this.#options;
    for (let more = true; more; ) {
      const due = await store.deliveries.due(partition, sweepBotsMax);
      more = due.more;
      const { works } = wakeQueue;
      // While Redis refuses wake-ups, sends only one wake-up per sweep, to learn whether Redis accepts wake-ups again.
      for (const bot of works ? due.bots : due.bots.slice(0, 1)) wakeQueue.wake(bot);
      for (const bot of works ? due.unserved : [...due.bots, ...due.unserved])
        if (this.#checks.size < unservedMax) this.#checkHere(bot);
        else wakeQueue.wake(bot);
    }
  }

  #forgetServed(): void {
    const before = this.#time.monotonic() - limits.webhook_recent_ms;
    for (const [bot, at] of this.#served) {
      if (at > before) return;
      this.#served.delete(bot);
    }
  }

  async #sweepAll(): Promise<boolean> {
    const { store, onError } = this.#options;
    const due = await store.deliveries.partitionsDue();
    await Promise.all(due.map((partition) => this.#sweepPartition(partition).catch(onError)));
    return due.length > 0;
  }

  async #sweep(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Waits for the sweep only until the next one is due, because one failed master of a cluster must not delay the
      // sweeps of the other masters.
      const waits = await this.#time.within(sweepMs, this.#sweepAll().catch(this.#options.onError));
      this.#forgetServed();
      const ms = this.#time.untilNext(waits === false ? idleSweepMs : sweepMs);
      await this.#time.sleep(ms, { signal });
    }
  }
}
