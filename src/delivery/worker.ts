/** Delivers webhooks in one process: answers the doorbell, keeps the drains that run here, and sweeps for lost rings. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
import { isBlocked } from '../store/control.js';
import type { DrainContext } from './context.js';
import type { Doorbell, DoorbellListener } from './doorbell.js';
import { type Drain, startDrain } from './drain.js';
import { isDelivered } from './outcome.js';
import { createSlots } from './slots.js';

export interface DeliveryWorker {
  start(): void;
  /** Finishes what is open, within a bound, and gives every lease back. */
  stop(): Promise<void>;
  /** What runs here now and what has been done, for the metrics. */
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
  readonly doorbell: Doorbell;
  readonly partitions: number;
}

const sweepMs = 500;
const sweepBotsMax = 100;
/** Rings that are answered at a time, a queue. */
const looksMax = 64;
/** Bots at a time that were rung for in vain and are looked at here: the doorbell is broken, or has too much to do. */
const unheardMax = 64;

export function createDeliveryWorker({
  doorbell,
  partitions,
  ...context
}: DeliveryWorkerOptions): DeliveryWorker {
  const { store, onError } = context;
  const slots = createSlots(limits.webhook_open_max);
  const counts = { delivered: 0, failed: 0, dead: 0 };
  const drains = new Map<number, Drain>();
  /** Bots that were rung while their drain was ending: it had given the lease back already. */
  const rungAgain = new Set<number>();
  /** Bots whose drain has ended here lately, and when by the monotonic clock; the oldest first. */
  const served = new Map<number, number>();
  const stopping = new AbortController();
  let listener: DoorbellListener | undefined;
  let sweeping: Promise<void> | undefined;
  let unheardLooks = 0;

  const counting: DrainContext = {
    ...context,
    slots,
    // The other half is for bots that are rung for.
    mayStay: () => drains.size < limits.webhook_drains_max / 2,
    onOutcome(bot, delivery, outcome, dead, facts) {
      if (outcome !== null) counts[isDelivered(outcome) ? 'delivered' : 'failed']++;
      if (dead !== null) counts.dead++;
      context.onOutcome?.(bot, delivery, outcome, dead, facts);
    },
  };

  /** Takes the lease on a bot if it is due and free. Returns once its drain has nothing left to do or has run for a slice. */
  async function look(bot: number): Promise<void> {
    if (stopping.signal.aborted) return;
    if (drains.has(bot)) {
      // A bot is rung only when nobody has its lease. Forgotten, it would wait for the sweep, and so would all that comes meanwhile.
      rungAgain.add(bot);
      return;
    }
    // So many drains at a time: the doorbell waits, others may answer it.
    while (drains.size >= limits.webhook_drains_max)
      await Promise.race([...drains.values()].map(({ done }) => done));
    const sentAt = performance.now();
    const lease = await store.deliveries.lease(bot, limits.webhook_take_max);
    if (typeof lease === 'string') return;
    const webhook = await store.webhooks.find(bot);
    // It was deleted this very moment: the lease ends by itself.
    if (webhook === null) return;
    // The bot's token leaked: who has it may have set the webhook, so updates wait until there is a new one.
    const blocked = isBlocked(await store.auth.botById(bot));
    const drain = startDrain(counting, bot, webhook, lease, sentAt, served.delete(bot), blocked);
    drains.set(bot, drain);
    const ended = drain.done.then((again) => {
      drains.delete(bot);
      served.set(bot, performance.now());
      if (rungAgain.delete(bot) || again) doorbell.ring(bot);
    });
    await Promise.race([ended, drain.quiet, sleep(limits.webhook_slice_ms, undefined, { ref: false })]);
  }

  async function lookUnheard(bot: number): Promise<void> {
    unheardLooks++;
    await look(bot)
      .catch(onError)
      .finally(() => unheardLooks--);
  }

  async function sweepPartition(partition: number): Promise<void> {
    for (let more = true; more; ) {
      const due = await store.deliveries.due(partition, sweepBotsMax);
      more = due.more;
      for (const bot of due.bots) doorbell.ring(bot);
      for (const bot of due.unheard)
        if (unheardLooks < unheardMax) void lookUnheard(bot);
        else doorbell.ring(bot);
    }
  }

  function forgetServed(): void {
    const before = performance.now() - limits.webhook_recent_ms;
    for (const [bot, at] of served) {
      if (at > before) return;
      served.delete(bot);
    }
  }

  async function sweep(): Promise<void> {
    while (!stopping.signal.aborted) {
      const all = Array.from({ length: partitions }, (_, partition) =>
        sweepPartition(partition).catch(onError),
      );
      // On a cluster one master may be away: it must not hold up the others' next round.
      await Promise.race([Promise.all(all), sleep(sweepMs)]);
      forgetServed();
      await sleep(sweepMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    start() {
      listener = doorbell.listen((bot) => look(bot).catch(onError), looksMax);
      sweeping = sweep();
    },
    async stop() {
      stopping.abort();
      const ended = listener?.close();
      await Promise.all([...drains.values()].map((drain) => drain.stop(limits.webhook_stop_ms_max)));
      await Promise.all([ended, sweeping]);
    },
    stats: () => ({ drains: drains.size, open: slots.taken, ...counts }),
  };
}
