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
import { attempt, type Destination, destinationOf } from './attempt.js';
import { createBreaker } from './breaker.js';
import type { DrainContext } from './context.js';
import { createDeadLetterBuffer } from './dead_letters.js';
import { subscribeToHints } from './hints.js';
import { type Answered, errorMessageOf, isDelivered, type Outcome } from './outcome.js';
import { createReport } from './report.js';
import { afterAnswer, nextTry } from './schedule.js';
import { createUpdateBuffer, type InFlight } from './update_buffer.js';
import { createWakeTimer } from './wake_timer.js';

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
const hintIntervalMs = 20;
/**
 * How long a drain runs before it subscribes to hints. Short drains save the subscription, unless the bot was served
 * recently.
 */
const listenAfterMs = 20;
/** Pause after a failed step. */
const failurePauseMs = 100;
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
  const buffer = createUpdateBuffer();
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
  const deadLetters = createDeadLetterBuffer(store.deliveries, bot, lease.fence);
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
  const timer = createWakeTimer(pump);
  /** When an update was last fetched or settled, by the monotonic clock. */
  let busyAt = sentAt;
  let finish: (again: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    finish = resolve;
  });
  let resolveQuiet: () => void = () => {};
  const quiet = new Promise<void>((resolve) => {
    resolveQuiet = resolve;
  });

  const sending = () => state === 'running' && !blocked && graceEnd === Number.POSITIVE_INFINITY;
  const pauseRemaining = () => (breaker.down ? Math.max(0, pauseEnd - performance.now()) : 0);
  const pauseLeft = () => (blocked ? limits.blocked_look_ms : pauseRemaining());
  const nowRedis = () => clock.redis + (performance.now() - clock.own);
  function end(again: boolean): void {
    if (state === 'over') return;
    state = 'over';
    timer.clear();
    abort.abort();
    resolveQuiet();
    finish(again);
  }

  /**
   * Buffers fetched updates. Skips a chat whose outcome is not yet reported: the next step reports it. `asked` is
   * what the step requested.
   */
  function receive({ again: failed, fresh, ...taken }: Lease | Advanced, asked: Wanted): void {
    for (const chat of failed) if (!report.has(chat.chat)) buffer.addAgain(chat);
    for (const delivery of fresh) if (!report.parkWith(delivery)) buffer.add(delivery);
    if (buffer.count > 0) busyAt = performance.now();
    if (asked.updates > 0) ({ more } = taken);
    ({ after, gone } = taken);
    retryAt = taken.wait === null ? Number.POSITIVE_INFINITY : performance.now() + taken.wait;
  }

  /** Sends as many updates as free slots, the circuit breaker and pauses allow. */
  function open(): void {
    const fresh = performance.now() - renewedAt < limits.webhook_lease_ms / 2;
    if (!sending() || outdated || !fresh || pauseLeft() > 0) return;
    while (buffer.ready && buffer.open < breaker.allowed(maxConnections) && slots.take(buffer.open, pump)) {
      const opened = buffer.next();
      if (opened === null) slots.give();
      else void deliver(opened, breaker.down);
    }
  }

  async function deliver(opened: InFlight, probe: boolean): Promise<void> {
    const { delivery } = opened;
    const to = destination;
    const outcome = await attempt(context, bot, to, delivery, nowRedis(), abort.signal);
    slots.give();
    busyAt = performance.now();
    if (state === 'over') return;
    if (abort.signal.aborted) giveBack(delivery.chat, 0);
    else if (typeof outcome === 'string') giveUp(opened, outcome, null, to);
    else if (isDelivered(outcome)) await delivered(opened, outcome, to);
    else notDelivered(opened, outcome, probe, to);
    pump();
  }

  const facts = ({ secrets }: Destination, tries: number, nextAtMs: number | null = null) => ({
    ...{ tries: tries + 1, nextAtMs, secrets },
  });

  function giveUp(opened: InFlight, reason: DeadReason, outcome: Outcome | null, to: Destination): void {
    deadLetters.add(opened.delivery, reason);
    context.onOutcome?.(bot, opened.delivery, outcome, reason, facts(to, opened.tries));
  }

  function notMoved(chat: string, error: unknown): void {
    context.onError(error);
    giveBack(chat, limits.webhook_pause_ms_max);
  }

  /** Returns the chat's updates to Redis without counting a failure, because the receiver caused none. */
  function giveBack(chat: string, delayMs: number): void {
    report.park(chat, delayMs, 0, buffer.discard(chat));
  }

  async function delivered({ delivery, tries }: InFlight, outcome: Answered, to: Destination): Promise<void> {
    breaker.success();
    report.notGone(gone !== null);
    context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries));
    const asked = context.onAnswer?.(bot, delivery, outcome);
    if (asked) await asked.catch(context.onError);
    if (state === 'over') return;
    report.ack(delivery, buffer.settle(delivery.chat));
  }

  function notDelivered(opened: InFlight, outcome: Outcome, probe: boolean, to: Destination): void {
    const { delivery, tries } = opened;
    // The fault is a lack of connections in this process, not the receiver.
    const busy = outcome.kind === 'failed' && outcome.reason === 'busy';
    // The webhook changed while the request was in flight, so its outcome says nothing about the present receiver.
    const former = !busy && to !== destination;
    if (former) context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries, nowRedis()));
    if (busy || former) {
      giveBack(delivery.chat, busy ? failurePauseMs : 0);
      return;
    }
    const { status, retryAfterMs } = outcome.kind === 'answered' ? outcome : unanswered;
    breaker.failure(probe, retryAfterMs, Math.random());
    pauseEnd = performance.now() + breaker.pauseMs;
    report.error(errorMessageOf(outcome), status);
    const failures = tries + 1;
    const nowMs = nowRedis();
    const next = nextTry({ failures, madeAtMs: delivery.made, nowMs, retryAfterMs }, Math.random());
    if (next.kind === 'dead') giveUp(opened, 'expired', outcome, to);
    else {
      context.onOutcome?.(bot, delivery, outcome, null, facts(to, tries, next.atMs));
      report.park(delivery.chat, next.atMs - nowMs, failures, buffer.discard(delivery.chat));
    }
  }

  /** How much the next step should fetch. */
  function wanted(): Wanted {
    if (!sending()) return nothing;
    if (breaker.down) {
      if (buffer.count > 0 || pauseLeft() > 0) return nothing;
      return { chats: 1, updates: retryAt - performance.now() > limits.webhook_linger_ms ? 1 : 0 };
    }
    const enough = buffer.ready && buffer.count >= 2 * maxConnections;
    const room = Math.min(limits.webhook_held_entries_max - buffer.count, limits.webhook_take_max);
    if (enough || room <= 0 || buffer.bytes >= limits.webhook_held_bytes_max) return nothing;
    return { chats: room, updates: room };
  }

  /** Milliseconds until the next step is due; 0 or less means now. */
  function nextStepIn(): number {
    const now = performance.now();
    const pause = pauseLeft();
    if (changed) return 0;
    if (buffer.open === 0 && (!sending() || pause > limits.webhook_linger_ms)) return 0;
    if (report.urgent || deadLetters.count > 0 || report.acked >= limits.webhook_take_max || crowded())
      return 0;
    if (report.acked > 0 && buffer.count === 0 && !staying(now)) return 0;
    const { chats, updates } = wanted();
    if (updates > 0 && more) return 0;
    const renewal = renewedAt + limits.webhook_renew_ms - now;
    const fetchIn = updates > 0 && hinted ? renewedAt + hintIntervalMs - now : renewal;
    const reportIn = Math.min(fetchIn, report.acked > 0 ? report.ackedSince + gatherMs - now : renewal);
    if (pause > 0) return Math.min(renewal, reportIn, pause);
    const soonest = Math.min(renewal, reportIn, chats > 0 ? retryAt - now : renewal);
    if (buffer.count > 0 || lingering(now)) return soonest;
    if (!staying(now)) return 0;
    resolveQuiet();
    return Math.min(soonest, busyAt + limits.webhook_stay_ms - now);
  }

  /** True while the next retry is so close that releasing the lease would only delay it. */
  const lingering = (now: number) => retryAt - now <= limits.webhook_linger_ms && retryAt > now;
  /**
   * Keeps the lease after the last update, because a subscription is cheaper than a wake-up when the next update
   * comes soon.
   */
  const staying = (now: number) =>
    hints.active && sending() && now - busyAt < limits.webhook_stay_ms && context.mayStay();
  /** Most buffered updates wait behind one in flight in the same chat. */
  const crowded = () => !buffer.ready && buffer.count > limits.webhook_held_entries_max / 2;

  function leaving(): Step['leave'] {
    if (buffer.open > 0) return 'stay';
    if (!sending() || pauseLeft() > limits.webhook_linger_ms) return 'now';
    return buffer.count === 0 && pauseLeft() === 0 && !staying(performance.now()) ? 'idle' : 'stay';
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
    else timer.set(Math.min(soon, graceEnd - now, leaseEnd - now));
  }

  async function step(): Promise<void> {
    stepping = true;
    timer.clear();
    // Check the end of the lease even when Redis never answers.
    timer.set(limits.webhook_lease_ms - (performance.now() - renewedAt));
    try {
      await runStep();
      stepping = false;
      pump();
    } catch (thrown) {
      context.onError(thrown);
      stepping = false;
      if (state !== 'over')
        timer.set(Math.min(failurePauseMs, limits.webhook_lease_ms - (performance.now() - renewedAt)));
    }
  }

  async function runStep(): Promise<void> {
    if (deadLetters.count > 0 && !(await deadLetters.flush((chat) => buffer.settle(chat), notMoved)))
      return end(false);
    if (crowded())
      for (const { chat, ids } of buffer.spill()) report.park(chat, limits.webhook_lease_ms, 0, ids);
    blocked = isBlocked(await store.auth.botById(bot));
    const leave = leaving();
    const asked = wanted();
    const results = report.take();
    const before = performance.now();
    const known = { hinted, changed };
    if (asked.updates > 0) hinted = false;
    changed = false;
    const place = { fence: lease.fence, since: lease.since, hook, after, safe: buffer.safe(after) };
    const pausing = { holdMs: leave === 'now' ? pauseLeft() : 0, probes: breaker.probes };
    const step = { ...place, leave, ...results, ...asked, ...pausing };
    const advanced = await store.deliveries.advance(bot, step).catch((thrown) => {
      report.putBack(results);
      hinted ||= known.hinted;
      changed ||= known.changed;
      throw thrown;
    });
    if (results.gone === 'set' && advanced?.gone && afterAnswer(advanced.gone, 410, advanced.now).remove) {
      await store.webhooks.removeVersion(bot, hook);
      context.onRemoved?.(bot);
    }
    if (advanced === null || advanced.left) return end(advanced?.wake ?? false);
    renewedAt = before;
    clock = { redis: advanced.now, own: performance.now() };
    if (advanced.hook === 0) {
      graceEnd = Math.min(graceEnd, before + (advanced.wait ?? 0));
      return;
    }
    if (advanced.dropped !== dropped) {
      ({ dropped } = advanced);
      buffer.drop();
      report.drop();
    }
    receive(advanced, asked);
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

  receive(lease, { chats: 1, updates: 1 });
  const onHint = (webhook: boolean) => {
    hinted = true;
    changed ||= webhook;
    pump();
  };
  const hints = subscribeToHints(store.deliveries, bot, again ? 0 : listenAfterMs, onHint, context.onError);
  done.then(hints.end);
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
