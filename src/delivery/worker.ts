/** Delivers webhooks in one process: answers the doorbell, keeps the drains that run here, and sweeps for lost rings. */
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../clock.js';
import { limits } from '../limits.js';
import { isBlocked } from '../store/core/control.js';
import type { DrainContext } from './context.js';
import type { Doorbell, DoorbellListener } from './doorbell.js';
import { type Drain, startDrain } from './drain.js';
import { isDelivered } from './outcome.js';
import { createPlaces } from './places.js';
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
  /** Bots at a time; tests lower it. */
  readonly drainsMax?: number;
}

const sweepMs = 500;
/** While no webhook of any bot has anything that waits. */
const idleSweepMs = 1_000;
const sweepBotsMax = 100;
/** Rings that are answered at a time, a queue. */
const looksMax = 64;
/** Bots at a time that were rung for in vain and are looked at here: the doorbell is broken, or has too much to do. */
const unheardMax = 64;

export function createDeliveryWorker({
  doorbell,
  drainsMax = limits.webhook_drains_max,
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
  const places = createPlaces(drainsMax);
  /** Those of sweeps. */
  const looks = new Set<Promise<void>>();
  let listener: DoorbellListener | undefined;
  let sweeping: Promise<void> | undefined;

  const counting: DrainContext = {
    ...context,
    slots,
    // The other half is for bots that are rung for.
    mayStay: () => drains.size < drainsMax / 2,
    onOutcome(bot, delivery, outcome, dead, facts) {
      if (outcome !== null) counts[isDelivered(outcome) ? 'delivered' : 'failed']++;
      if (dead !== null) counts.dead++;
      context.onOutcome?.(bot, delivery, outcome, dead, facts);
    },
  };

  /** Takes the lease on a bot if it is free, with the place that its drain gives when it ends. */
  async function begin(bot: number): Promise<Drain | null> {
    const sentAt = performance.now();
    const lease = await store.deliveries.lease(bot, limits.webhook_take_max);
    if (typeof lease === 'string') return null;
    const webhook = await store.webhooks.find(bot);
    // It was deleted this very moment: the lease ends by itself.
    if (webhook === null) return null;
    // The bot's token leaked: who has it may have set the webhook, so updates wait until there is a new one.
    const blocked = isBlocked(await store.auth.botById(bot));
    // Its lease has run out and is another's here.
    if (drains.has(bot)) return null;
    const drain = startDrain(counting, bot, webhook, lease, sentAt, served.delete(bot), blocked);
    drains.set(bot, drain);
    drain.done.then((again) => {
      drains.delete(bot);
      places.give();
      served.set(bot, performance.now());
      if (rungAgain.delete(bot) || again) doorbell.ring(bot);
    });
    return drain;
  }

  /**
   * Looks at a bot that is due. Returns once its drain has nothing left to do or has run for a slice. So many bots at a time: the
   * doorbell waits, others may answer it; what a sweep has found it finds again.
   */
  async function look(bot: number, by: 'doorbell' | 'sweep'): Promise<void> {
    if (by === 'sweep' && places.full) return;
    if (!drains.has(bot)) await places.take();
    else {
      // A bot is rung only when nobody has its lease. Forgotten, it would wait for the sweep, and so would all that comes meanwhile.
      rungAgain.add(bot);
      return;
    }
    let drain: Drain | null = null;
    try {
      if (!stopping.signal.aborted && !drains.has(bot)) drain = await begin(bot);
    } finally {
      if (drain === null) places.give();
    }
    if (stopping.signal.aborted) await drain?.stop(limits.webhook_stop_ms_max);
    else if (drain !== null)
      await Promise.race([
        ...[drain.done, drain.quiet],
        sleep(limits.webhook_slice_ms, undefined, { ref: false }),
      ]);
  }

  function lookHere(bot: number): void {
    const looked: Promise<void> = look(bot, 'sweep')
      .catch(onError)
      .finally(() => looks.delete(looked));
    looks.add(looked);
  }

  async function sweepPartition(partition: number): Promise<void> {
    for (let more = true; more; ) {
      const due = await store.deliveries.due(partition, sweepBotsMax);
      more = due.more;
      const { works } = doorbell;
      // While Redis refuses rings, one is tried at each sweep to learn when it takes them again.
      for (const bot of works ? due.bots : due.bots.slice(0, 1)) doorbell.ring(bot);
      for (const bot of works ? due.unheard : [...due.bots, ...due.unheard])
        if (looks.size < unheardMax) lookHere(bot);
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

  /** Whether anything waits, now or later. */
  async function sweepAll(): Promise<boolean> {
    const due = await store.deliveries.partitionsDue();
    await Promise.all(due.map((partition) => sweepPartition(partition).catch(onError)));
    return due.length > 0;
  }

  async function sweep(): Promise<void> {
    while (!stopping.signal.aborted) {
      // On a cluster one master may be away: it must not hold up the others' next round.
      const waits = await within(sweepMs, sweepAll().catch(onError));
      forgetServed();
      const ms = waits === false ? idleSweepMs : sweepMs;
      await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    start() {
      listener = doorbell.listen((bot) => look(bot, 'doorbell').catch(onError), looksMax);
      sweeping = sweep();
    },
    async stop() {
      stopping.abort();
      const ended = listener?.close();
      await Promise.all([...drains.values()].map((drain) => drain.stop(limits.webhook_stop_ms_max)));
      await Promise.all([ended, sweeping]);
      await Promise.all(looks);
    },
    stats: () => ({ drains: drains.size, open: slots.taken, ...counts }),
  };
}
