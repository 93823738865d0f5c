/**
 * Delivers one bot's updates under one lease, until the queue stays empty for a while or the lease ends.
 *
 * Every event (an answer, a hint, a timer) calls `pump`. It sends the updates that may be sent, and runs a step with
 * Redis when there are results to report or updates to fetch. Steps do not overlap: events during a step are handled
 * by the next one.
 *
 * The lease is measured from when its renewal was sent, by the monotonic clock. After half of it nothing more is
 * sent. At its end, requests in flight are aborted, and the next lease holder redelivers every unacknowledged update.
 */
import { limits } from '../limits.js';
import { isBlocked } from '../store/core/control.js';
import type { Advanced, DeadReason, Lease, Step } from '../store/webhooks/deliveries.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import { createAlarm } from './alarm.js';
import { attempt, type Destination, destinationOf } from './attempt.js';
import { createBreaker } from './breaker.js';
import type { DrainContext } from './context.js';
import { createGraves } from './graves.js';
import { hearOf } from './hearing.js';
import { createHeld, type Opened } from './held.js';
import { type Answered, errorMessageOf, isDelivered, type Outcome } from './outcome.js';
import { createReport } from './report.js';
import { afterAnswer, nextTry } from './schedule.js';

export interface Drain {
  /** Resolves when the lease was released or lost. True when there is more to deliver immediately. */
  readonly done: Promise<boolean>;
  /** Resolves the first time there is nothing left to do. The drain may continue, to wait for new updates. */
  readonly quiet: Promise<void>;
  /** Sends nothing more, waits up to `msMax` for requests in flight, and releases the lease. */
  stop(msMax: number): Promise<void>;
}

/** How long acknowledgements are batched while other requests are in flight. */
const gatherMs = 25;
/**
 * Minimum time between a step and the next one caused by a hint, so that a burst of updates shares one step. A quiet
 * bot's update is fetched immediately.
 */
const lookMs = 20;
/**
 * How long a drain runs before it subscribes to hints. Short drains save the subscription, unless the bot was served
 * recently.
 */
const listenAfterMs = 20;
/** Pause after a failed step. */
const restMs = 100;
type Wanted = Pick<Step, 'chats' | 'updates'>;
const nothing: Wanted = { chats: 0, updates: 0 };
const unanswered = { status: undefined, retryAfterMs: undefined };

/** Starts a drain. `again`: the bot was served a moment ago, so more updates are likely soon. */
export function startDrain(
  context: DrainContext,
  bot: number,
  webhook: Webhook,
  lease: Lease,
  sentAt: number,
  again: boolean,
  blocked = false,
): Drain {
  const { store, slots } = context;
  const held = createHeld();
  let breaker = createBreaker(lease.probes);
  const abort = new AbortController();
  let destination: Destination = destinationOf(webhook, context.service);
  let { maxConnections } = webhook;
  let { hook, after, more, gone, dropped } = lease;
  let renewedAt = sentAt;
  /** Redis time, and the monotonic time at which it was read. */
  let clock = { redis: lease.now, own: sentAt };
  /** When the next parked chat is due, by the monotonic clock. */
  let retryAt = Number.POSITIVE_INFINITY;
  const report = createReport();
  const graves = createGraves(store.deliveries, bot, lease.fence);
  /** The queue, or the webhook, may have changed. */
  let [hinted, changed] = [false, false];
  /**
   * The settings did change. Nothing is sent until the new ones are read: the buffer already holds updates written
   * after the change.
   */
  let outdated = false;
  /** The receiver is down: nothing is sent before this time. */
  let pauseEnd = 0;
  let stepping = false;
  let state: 'running' | 'stopping' | 'over' = 'running';
  /** The webhook was deleted: requests in flight may still be acknowledged until this time. */
  let graceEnd = Number.POSITIVE_INFINITY;
  const alarm = createAlarm(pump);
  /** When an update was last fetched or settled, by the monotonic clock. */
  let busyAt = sentAt;
  let finish: (again: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    finish = resolve;
  });
  let hush: () => void = () => {};
  const quiet = new Promise<void>((resolve) => {
    hush = resolve;
  });

  const sending = () => state === 'running' && !blocked && graceEnd === Number.POSITIVE_INFINITY;
  const rest = () => (breaker.down ? Math.max(0, pauseEnd - performance.now()) : 0);
  const pauseLeft = () => (blocked ? limits.blocked_look_ms : rest());
  const nowRedis = () => clock.redis + (performance.now() - clock.own);
  function end(again: boolean): void {
    if (state === 'over') return;
    state = 'over';
    alarm.clear();
    abort.abort();
    hush();
    finish(again);
  }

  /**
   * Buffers fetched updates. Skips a chat whose outcome is not yet reported: the next step reports it. `asked` is
   * what the step requested.
   */
  function takeUp({ again: failed, fresh, ...taken }: Lease | Advanced, asked: Wanted): void {
    for (const chat of failed) if (!report.knows(chat.chat)) held.addAgain(chat);
    for (const delivery of fresh) if (!report.parkWith(delivery)) held.add(delivery);
    if (held.count > 0) busyAt = performance.now();
    if (asked.updates > 0) ({ more } = taken);
    ({ after, gone } = taken);
    retryAt = taken.wait === null ? Number.POSITIVE_INFINITY : performance.now() + taken.wait;
  }

  /** Sends as many updates as slots, breaker and pauses allow. */
  function open(): void {
    const fresh = performance.now() - renewedAt < limits.webhook_lease_ms / 2;
    if (!sending() || outdated || !fresh || pauseLeft() > 0) return;
    while (held.ready && held.open < breaker.allowed(maxConnections) && slots.take(held.open, pump)) {
      const opened = held.next();
      if (opened === null) slots.give();
      else void deliver(opened, breaker.down);
    }
  }

  async function deliver(opened: Opened, probe: boolean): Promise<void> {
    const { delivery } = opened;
    const to = destination;
    const outcome = await attempt(context, bot, to, delivery, nowRedis(), abort.signal);
    slots.give();
    busyAt = performance.now();
    if (state === 'over') return;
    if (abort.signal.aborted) giveBack(delivery.chat, 0);
    else if (typeof outcome === 'string') bury(opened, outcome, null, to);
    else if (isDelivered(outcome)) await delivered(opened, outcome, to);
    else notDelivered(opened, outcome, probe, to);
    pump();
  }

  const facts = ({ secrets }: Destination, tries: number, nextAtMs: number | null = null) => ({
    ...{ tries: tries + 1, nextAtMs, secrets },
  });

  function bury(opened: Opened, reason: DeadReason, outcome: Outcome | null, to: Destination): void {
    graves.add(opened.delivery, reason);
    context.onOutcome?.(bot, opened.delivery, outcome, reason, facts(to, opened.tries));
  }

  function notBuried(chat: string, error: unknown): void {
    context.onError(error);
    giveBack(chat, limits.webhook_pause_ms_max);
  }

  /** Returns the chat's updates to Redis without counting a failure, because the receiver caused none. */
  function giveBack(chat: string, delayMs: number): void {
    report.park(chat, delayMs, 0, held.giveUp(chat));
  }

  async function delivered({ delivery, tries }: Opened, outcome: Answered, to: Destination): Promise<void> {
    breaker.success();
    report.notGone(gone !== null);
    context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries));
    const asked = context.onAnswer?.(bot, delivery, outcome);
    if (asked) await asked.catch(context.onError);
    if (state === 'over') return;
    report.ack(delivery, held.settle(delivery.chat));
  }

  function notDelivered(opened: Opened, outcome: Outcome, probe: boolean, to: Destination): void {
    const { delivery, tries } = opened;
    // This process is short of connections.
    const busy = outcome.kind === 'failed' && outcome.reason === 'busy';
    // The webhook changed while the request was in flight, so its outcome says nothing about the present receiver.
    const former = !busy && to !== destination;
    if (former) context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries, nowRedis()));
    if (busy || former) {
      giveBack(delivery.chat, busy ? restMs : 0);
      return;
    }
    const { status, retryAfterMs } = outcome.kind === 'answered' ? outcome : unanswered;
    breaker.failure(probe, retryAfterMs, Math.random());
    pauseEnd = performance.now() + breaker.pauseMs;
    report.error(errorMessageOf(outcome), status);
    const failures = tries + 1;
    const nowMs = nowRedis();
    const next = nextTry({ failures, madeAtMs: delivery.made, nowMs, retryAfterMs }, Math.random());
    if (next.kind === 'dead') bury(opened, 'expired', outcome, to);
    else {
      context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries, next.atMs));
      report.park(delivery.chat, next.atMs - nowMs, failures, held.giveUp(delivery.chat));
    }
  }

  /** How much the next step should fetch. */
  function wanted(): Wanted {
    if (!sending()) return nothing;
    if (breaker.down) {
      if (held.count > 0 || pauseLeft() > 0) return nothing;
      return { chats: 1, updates: retryAt - performance.now() > limits.webhook_linger_ms ? 1 : 0 };
    }
    const enough = held.ready && held.count >= 2 * maxConnections;
    const room = Math.min(limits.webhook_held_entries_max - held.count, limits.webhook_take_max);
    if (enough || room <= 0 || held.bytes >= limits.webhook_held_bytes_max) return nothing;
    return { chats: room, updates: room };
  }

  /** Milliseconds until the next step is due; 0 or less means now. */
  function nextStepIn(): number {
    const now = performance.now();
    const pause = pauseLeft();
    if (changed) return 0;
    if (held.open === 0 && (!sending() || pause > limits.webhook_linger_ms)) return 0;
    if (report.urgent || graves.count > 0 || report.acked >= limits.webhook_take_max || crowded()) return 0;
    if (report.acked > 0 && held.count === 0 && !staying(now)) return 0;
    const { chats, updates } = wanted();
    if (updates > 0 && more) return 0;
    const renewal = renewedAt + limits.webhook_renew_ms - now;
    const looking = updates > 0 && hinted ? renewedAt + lookMs - now : renewal;
    const telling = Math.min(looking, report.acked > 0 ? report.ackedSince + gatherMs - now : renewal);
    if (pause > 0) return Math.min(renewal, telling, pause);
    const soonest = Math.min(renewal, telling, chats > 0 ? retryAt - now : renewal);
    if (held.count > 0 || lingering(now)) return soonest;
    if (!staying(now)) return 0;
    hush();
    return Math.min(soonest, busyAt + limits.webhook_stay_ms - now);
  }

  /** True while the next retry is so close that releasing the lease would only delay it. */
  const lingering = (now: number) => retryAt - now <= limits.webhook_linger_ms && retryAt > now;
  /**
   * Keeps the lease after the last update, because a subscription is cheaper than a wake-up when the next update
   * comes soon.
   */
  const staying = (now: number) =>
    hearing.on && sending() && now - busyAt < limits.webhook_stay_ms && context.mayStay();
  /** Most buffered updates wait behind one in flight in the same chat. */
  const crowded = () => !held.ready && held.count > limits.webhook_held_entries_max / 2;

  function leaving(): Step['leave'] {
    if (held.open > 0) return 'stay';
    if (!sending() || pauseLeft() > limits.webhook_linger_ms) return 'now';
    return held.count === 0 && pauseLeft() === 0 && !staying(performance.now()) ? 'idle' : 'stay';
  }

  function pump(): void {
    if (state === 'over') return;
    const now = performance.now();
    const leaseEnd = renewedAt + limits.webhook_lease_ms;
    if (now >= leaseEnd || now >= graceEnd) {
      end(now < graceEnd);
      return;
    }
    open();
    if (stepping) return;
    const soon = nextStepIn();
    if (soon <= 0) void step();
    else alarm.set(Math.min(soon, graceEnd - now, leaseEnd - now));
  }

  async function step(): Promise<void> {
    stepping = true;
    alarm.clear();
    // Check the end of the lease even when Redis never answers.
    alarm.set(limits.webhook_lease_ms - (performance.now() - renewedAt));
    try {
      await tell();
      stepping = false;
      pump();
    } catch (thrown) {
      context.onError(thrown);
      stepping = false;
      if (state !== 'over')
        alarm.set(Math.min(restMs, limits.webhook_lease_ms - (performance.now() - renewedAt)));
    }
  }

  async function tell(): Promise<void> {
    if (graves.count > 0 && !(await graves.bury((chat) => held.settle(chat), notBuried))) return end(false);
    if (crowded())
      for (const { chat, ids } of held.spill()) report.park(chat, limits.webhook_lease_ms, 0, ids);
    blocked = isBlocked(await store.auth.botById(bot));
    const leave = leaving();
    const asked = wanted();
    const told = report.take();
    const before = performance.now();
    const known = { hinted, changed };
    if (asked.updates > 0) hinted = false;
    changed = false;
    const place = { fence: lease.fence, since: lease.since, hook, after, safe: held.safe(after) };
    const pausing = { holdMs: leave === 'now' ? pauseLeft() : 0, probes: breaker.probes };
    const step = { ...place, leave, ...told, ...asked, ...pausing };
    const advanced = await store.deliveries.advance(bot, step).catch((thrown) => {
      report.putBack(told);
      hinted ||= known.hinted;
      changed ||= known.changed;
      throw thrown;
    });
    if (told.gone === 'set' && advanced?.gone && afterAnswer(advanced.gone, 410, advanced.now).remove) {
      await store.webhooks.removeVersion(bot, hook);
      context.onRemoved?.(bot);
    }
    if (advanced === null || advanced.left) return end(advanced?.ring ?? false);
    renewedAt = before;
    clock = { redis: advanced.now, own: performance.now() };
    if (advanced.hook === 0) {
      graceEnd = Math.min(graceEnd, before + (advanced.wait ?? 0));
      return;
    }
    if (advanced.dropped !== dropped) {
      ({ dropped } = advanced);
      held.drop();
      report.drop();
    }
    takeUp(advanced, asked);
    outdated = advanced.hook !== hook;
    if (outdated) await reload(advanced.hook);
  }

  /** Reads the changed settings. Later requests use them. */
  async function reload(version: number): Promise<void> {
    const present = await store.webhooks.find(bot);
    if (present === null) return;
    hook = version;
    outdated = false;
    destination = destinationOf(present, context.service);
    maxConnections = present.maxConnections;
    breaker = createBreaker(0);
  }

  takeUp(lease, { chats: 1, updates: 1 });
  const hear = (webhook: boolean) => {
    hinted = true;
    changed ||= webhook;
    pump();
  };
  const hearing = hearOf(store.deliveries, bot, again ? 0 : listenAfterMs, hear, context.onError);
  done.then(hearing.end);
  pump();
  return {
    done,
    quiet,
    async stop(msMax) {
      if (state !== 'running') return;
      state = 'stopping';
      const late = setTimeout(() => abort.abort(), msMax);
      pump();
      await done;
      clearTimeout(late);
    },
  };
}
