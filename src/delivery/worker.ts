/** Delivers webhooks in one process: handles wake-ups, runs the drains, and sweeps for lost wake-ups. */
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../clock.js';
import { limits } from '../limits.js';
import { isBlocked } from '../store/core/control.js';
import type { DrainContext } from './context.js';
import { type Drain, startDrain } from './drain.js';
import { isDelivered } from './outcome.js';
import { createSemaphore } from './semaphore.js';
import { createSlots } from './slots.js';
import type { WakeQueue, WakeQueueListener } from './wake_queue.js';

export interface DeliveryWorker {
  start(): void;
  /** Waits for updates in flight, up to a limit, and releases every lease. */
  stop(): Promise<void>;
  /** Running drains, updates in flight and totals, for the metrics. */
  stats(): DeliveryStats;
}

export interface DeliveryStats {
  readonly drains: number;
  readonly open: number;
  readonly delivered: number;
  readonly failed: number;
  readonly dead: number;
}

export interface DeliveryWorkerOptions extends Omit<DrainContext, 'slots' | 'mayStay'> {
  readonly wakeQueue: WakeQueue;
  /** Maximum number of bots served at a time; tests lower it. */
  readonly drainsMax?: number;
}

const sweepMs = 500;
/** Sweep interval while no bot has pending webhook updates. */
const idleSweepMs = 1_000;
const sweepBotsMax = 100;
/** Wake-ups handled at a time, per queue. */
const checksMax = 64;
/** How many checks sweeps may run in this process at a time. Sweeps check bots whose wake-ups were not handled. */
const unservedMax = 64;

export function createDeliveryWorker({
  wakeQueue,
  drainsMax = limits.webhook_drains_max,
  ...context
}: DeliveryWorkerOptions): DeliveryWorker {
  const { store, onError } = context;
  const slots = createSlots(limits.webhook_open_max);
  const counts = { delivered: 0, failed: 0, dead: 0 };
  const drains = new Map<number, Drain>();
  /** Bots woken while their drain was ending: it had already released the lease. */
  const wokenAgain = new Set<number>();
  /** Bots whose drain ended here recently, and when by the monotonic clock; oldest first. */
  const served = new Map<number, number>();
  const stopping = new AbortController();
  const permits = createSemaphore(drainsMax);
  /** Checks started by sweeps. */
  const checks = new Set<Promise<void>>();
  let listener: WakeQueueListener | undefined;
  let sweeping: Promise<void> | undefined;

  const counting: DrainContext = {
    ...context,
    slots,
    // Drains may stay while less than half of the permits are in use. The rest is for bots that are woken.
    mayStay: () => drains.size < drainsMax / 2,
    onOutcome(bot, delivery, outcome, dead, facts) {
      if (outcome !== null) counts[isDelivered(outcome) ? 'delivered' : 'failed']++;
      if (dead !== null) counts.dead++;
      context.onOutcome?.(bot, delivery, outcome, dead, facts);
    },
  };

  /** Takes the lease on a bot if it is free. The caller holds a permit; the drain releases it at its end. */
  async function begin(bot: number): Promise<Drain | null> {
    const sentAt = performance.now();
    const lease = await store.deliveries.lease(bot, limits.webhook_take_max);
    if (typeof lease === 'string') return null;
    const webhook = await store.webhooks.find(bot);
    // The webhook was deleted just now: the lease expires by itself.
    if (webhook === null) return null;
    // The bot's token leaked, and its finder may have set the webhook. Updates wait until there is a new token.
    const blocked = isBlocked(await store.auth.botById(bot));
    // A drain of the same bot still runs here under an expired lease.
    if (drains.has(bot)) return null;
    const drain = startDrain(counting, bot, webhook, lease, sentAt, served.delete(bot), blocked);
    drains.set(bot, drain);
    drain.done.then((again) => {
      drains.delete(bot);
      permits.release();
      served.set(bot, performance.now());
      if (wokenAgain.delete(bot) || again) wakeQueue.wake(bot);
    });
    return drain;
  }

  /**
   * Checks a bot that may have updates to deliver. Resolves when its drain has nothing left to do or has run for a
   * time slice. When no permit is free, a wake-up waits, and another process may handle it; a sweep skips the bot and
   * finds it again later.
   */
  async function check(bot: number, by: 'wake-up' | 'sweep'): Promise<void> {
    if (by === 'sweep' && permits.full) return;
    if (!drains.has(bot)) await permits.acquire();
    else {
      // The running drain has already released its lease, because only bots without a lease are woken. Remember the
      // wake-up; otherwise the bot would wait for the sweep.
      wokenAgain.add(bot);
      return;
    }
    let drain: Drain | null = null;
    try {
      if (!stopping.signal.aborted && !drains.has(bot)) drain = await begin(bot);
    } finally {
      if (drain === null) permits.release();
    }
    if (stopping.signal.aborted) await drain?.stop(limits.webhook_stop_ms_max);
    else if (drain !== null)
      await Promise.race([
        ...[drain.done, drain.quiet],
        sleep(limits.webhook_slice_ms, undefined, { ref: false }),
      ]);
  }

  function checkHere(bot: number): void {
    const checked: Promise<void> = check(bot, 'sweep')
      .catch(onError)
      .finally(() => checks.delete(checked));
    checks.add(checked);
  }

  async function sweepPartition(partition: number): Promise<void> {
    for (let more = true; more; ) {
      const due = await store.deliveries.due(partition, sweepBotsMax);
      more = due.more;
      const { works } = wakeQueue;
      // While Redis refuses wake-ups, send one per sweep to notice the recovery.
      for (const bot of works ? due.bots : due.bots.slice(0, 1)) wakeQueue.wake(bot);
      for (const bot of works ? due.unserved : [...due.bots, ...due.unserved])
        if (checks.size < unservedMax) checkHere(bot);
        else wakeQueue.wake(bot);
    }
  }

  function forgetServed(): void {
    const before = performance.now() - limits.webhook_recent_ms;
    for (const [bot, at] of served) {
      if (at > before) return;
      served.delete(bot);
    }
  }

  /** Sweeps all partitions. Returns whether any update is pending, now or later. */
  async function sweepAll(): Promise<boolean> {
    const due = await store.deliveries.partitionsDue();
    await Promise.all(due.map((partition) => sweepPartition(partition).catch(onError)));
    return due.length > 0;
  }

  async function sweep(): Promise<void> {
    while (!stopping.signal.aborted) {
      // One failed master of a cluster must not delay the next sweep of the others.
      const waits = await within(sweepMs, sweepAll().catch(onError));
      forgetServed();
      const ms = waits === false ? idleSweepMs : sweepMs;
      await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    start() {
      listener = wakeQueue.listen((bot) => check(bot, 'wake-up').catch(onError), checksMax);
      sweeping = sweep();
    },
    async stop() {
      stopping.abort();
      const ended = listener?.close();
      await Promise.all([...drains.values()].map((drain) => drain.stop(limits.webhook_stop_ms_max)));
      await Promise.all([ended, sweeping]);
      await Promise.all(checks);
    },
    stats: () => ({ drains: drains.size, open: slots.taken, ...counts }),
  };
}
