/**
 * Delivers one bot's updates under one lease, until nothing is left for a while or the lease ends.
 *
 * All that happens (an answer, a hint, a timer) leads to `pump`: it opens what may go out, and takes the next step with Redis
 * when there is something to tell or to ask. One step is under way at a time, so what happens meanwhile goes with the next.
 *
 * The lease counts from when its renewal was sent, by the monotonic clock. After half of it nothing is sent; at its end what is
 * open is aborted, and what was not acknowledged is delivered again by whoever comes next.
 */
import { limits } from '../limits.js';
import type { Advanced, DeadReason, Delivery, Lease, Step } from '../store/deliveries.js';
import type { Store } from '../store/store.js';
import type { Webhook } from '../store/webhooks.js';
import { attempt, type Destination, destinationOf, type Send } from './attempt.js';
import { createBreaker } from './breaker.js';
import { createHeld, type Opened } from './held.js';
import { type Answered, errorMessageOf, isDelivered, type Outcome } from './outcome.js';
import { afterAnswer, nextTry } from './schedule.js';
import type { Slots } from './slots.js';

export interface DrainContext {
  readonly store: Pick<Store, 'deliveries' | 'webhooks' | 'auth'>;
  readonly send: Send;
  readonly slots: Slots;
  /** What stands for `Service` in the names of headers. */
  readonly service: string;
  /** Hears every attempt: `dead` is set when it was the update's last. */
  onOutcome?(bot: number, delivery: Delivery, outcome: Outcome | null, dead: DeadReason | null): void;
  /** Runs what an answer asks for before the chat's next update goes out. It must not reject. */
  onAnswer?(bot: number, answer: Answered): Promise<void>;
  /** A webhook was removed because its receiver said for 23 hours that it is gone. */
  onRemoved?(bot: number): void;
  onError(error: unknown): void;
}

export interface Drain {
  /** Resolves when the lease was given back or lost; true when there is something to do again at once. */
  readonly done: Promise<boolean>;
  /** Sends no more, waits for what is open up to `msMax`, and gives the lease back. */
  stop(msMax: number): Promise<void>;
}

/** Acknowledgements are gathered for so long while others are on their way. */
const gatherMs = 2;
/** A drain that is over sooner needs no hints. */
const listenAfterMs = 20;
/** Rest after a step that failed. */
const restMs = 100;

export function startDrain(
  context: DrainContext,
  bot: number,
  webhook: Webhook,
  lease: Lease,
  sentAt: number,
): Drain {
  const { store, slots } = context;
  const held = createHeld();
  const breaker = createBreaker(lease.probes);
  const aborts = new Set<AbortController>();
  let destination: Destination = destinationOf(webhook, context.service);
  let { maxConnections } = webhook;
  let { hook, after, more, gone } = lease;
  let renewedAt = sentAt;
  /** Redis' time, and when it was read by the monotonic clock. */
  let clock = { redis: lease.now, own: sentAt };
  /** When the next chat that failed is due, by the monotonic clock. */
  let retryAt = Number.POSITIVE_INFINITY;
  let acked: Array<Step['acked'][number]> = [];
  let failed: Array<Step['failed'][number] & { readonly ids: string[] }> = [];
  let dead: Array<{ readonly delivery: Delivery; readonly reason: DeadReason }> = [];
  let error = '';
  let goneSign: Step['gone'] = '';
  let hinted = false;
  /** Acknowledgements are told then, by the monotonic clock. */
  let tellAt = 0;
  /** The receiver is down: nothing is sent before. */
  let pauseEnd = 0;
  let stepping = false;
  let state: 'running' | 'stopping' | 'over' = 'running';
  /** The webhook was deleted: what is open may be acknowledged until then. */
  let graceEnd = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let unlisten: (() => void) | undefined;
  let finish: (again: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    finish = resolve;
  });

  const sending = () => state === 'running' && graceEnd === Number.POSITIVE_INFINITY;
  const pauseLeft = () => (breaker.down ? Math.max(0, pauseEnd - performance.now()) : 0);
  const nowRedis = () => clock.redis + (performance.now() - clock.own);
  function end(again: boolean): void {
    if (state === 'over') return;
    state = 'over';
    clearTimeout(timer);
    unlisten?.();
    for (const abort of aborts) abort.abort();
    finish(again);
  }

  /** Looks again in so many milliseconds, or sooner. */
  function wake(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(pump, Math.max(0, ms));
  }

  function takeUp({ again, fresh, ...taken }: Lease | Advanced): void {
    // A chat that failed while this was on its way is parked by the next step, with what came of it now.
    const parking = new Map(failed.map((each) => [each.chat, each]));
    const settled = new Set(acked.map(({ delivery }) => delivery.chat));
    for (const chat of again) if (!parking.has(chat.chat) && !settled.has(chat.chat)) held.addAgain(chat);
    for (const delivery of fresh) {
      const chat = parking.get(delivery.chat);
      if (chat) chat.ids.push(delivery.id);
      else held.add(delivery);
    }
    ({ after, more, gone } = taken);
    retryAt = taken.wait === null ? Number.POSITIVE_INFINITY : performance.now() + taken.wait;
  }

  /** Opens what may go out. */
  function open(): void {
    const fresh = performance.now() - renewedAt < limits.webhook_lease_ms / 2;
    if (!sending() || !fresh || pauseLeft() > 0) return;
    while (held.ready && held.open < breaker.allowed(maxConnections) && slots.take(pump)) {
      const opened = held.next();
      if (opened === null) slots.give();
      else void deliver(opened, breaker.down);
    }
  }

  async function deliver(opened: Opened, probe: boolean): Promise<void> {
    const { delivery } = opened;
    const abort = new AbortController();
    aborts.add(abort);
    let outcome: Outcome | DeadReason;
    try {
      outcome =
        nowRedis() - delivery.made >= limits.webhook_retry_age_ms_max
          ? 'expired'
          : await attempt(context, bot, destination, delivery, abort.signal);
    } catch (thrown) {
      // Nothing of the receiver's: it is tried again.
      context.onError(thrown);
      outcome = { kind: 'failed', reason: 'busy', message: 'Internal error', latencyMs: 0 };
    }
    aborts.delete(abort);
    slots.give();
    if (state === 'over') return;
    if (abort.signal.aborted) giveBack(delivery.chat, 0);
    else if (typeof outcome === 'string') bury(delivery, outcome, null);
    else if (isDelivered(outcome)) await delivered(delivery, outcome);
    else notDelivered(opened, outcome, probe);
    pump();
  }

  function bury(delivery: Delivery, reason: DeadReason, outcome: Outcome | null): void {
    dead.push({ delivery, reason });
    context.onOutcome?.(bot, delivery, outcome, reason);
  }

  /** Nothing of the receiver's doing: the update is tried again as if this had not been. */
  function giveBack(chat: string, delayMs: number): void {
    failed.push({ chat, delayMs, tries: 0, ids: held.giveUp(chat) });
  }

  async function delivered(delivery: Delivery, outcome: Answered): Promise<void> {
    breaker.success();
    if (gone !== null) goneSign = 'clear';
    context.onOutcome?.(bot, delivery, outcome, null);
    const asked = context.onAnswer?.(bot, outcome);
    if (asked) await asked.catch(context.onError);
    if (state === 'over') return;
    if (acked.length === 0) tellAt = performance.now() + gatherMs;
    acked.push({ delivery, parked: held.settle(delivery.chat) });
  }

  function notDelivered({ delivery, tries }: Opened, outcome: Outcome, probe: boolean): void {
    const { chat } = delivery;
    // This process is short of connections.
    if (outcome.kind === 'failed' && outcome.reason === 'busy') {
      giveBack(chat, restMs);
      return;
    }
    const [status, retryAfterMs] =
      outcome.kind === 'answered' ? [outcome.status, outcome.retryAfterMs] : [undefined, undefined];
    breaker.failure(probe, retryAfterMs, Math.random());
    pauseEnd = performance.now() + breaker.pauseMs;
    error = errorMessageOf(outcome);
    if (status === 410) goneSign = 'set';
    else if (status !== undefined) goneSign = 'clear';
    const failures = tries + 1;
    const nowMs = nowRedis();
    const next = nextTry({ failures, madeAtMs: delivery.made, nowMs, retryAfterMs }, Math.random());
    if (next.kind === 'dead') {
      bury(delivery, 'expired', outcome);
      return;
    }
    context.onOutcome?.(bot, delivery, outcome, null);
    failed.push({ chat, delayMs: next.atMs - nowMs, tries: failures, ids: held.giveUp(chat) });
  }

  /** What the next step asks for. */
  function wanted(): { readonly chats: number; readonly updates: number } {
    if (!sending()) return { chats: 0, updates: 0 };
    if (breaker.down) {
      const free = held.count === 0 && pauseLeft() === 0;
      return {
        chats: free ? 1 : 0,
        updates: free && retryAt - performance.now() > limits.webhook_linger_ms ? 1 : 0,
      };
    }
    const room = limits.webhook_held_entries_max - held.count;
    if (room <= 0 || held.bytes >= limits.webhook_held_bytes_max) return { chats: 0, updates: 0 };
    const most = Math.min(room, limits.webhook_take_max);
    return { chats: most, updates: most };
  }

  /** In how many milliseconds a step is due, 0 or less for now. */
  function nextStepIn(): number {
    const now = performance.now();
    const renewal = renewedAt + limits.webhook_renew_ms - now;
    const pause = pauseLeft();
    if (held.open === 0 && (!sending() || pause > limits.webhook_linger_ms)) return 0;
    if (failed.length > 0 || dead.length > 0 || acked.length >= limits.webhook_take_max) return 0;
    const telling = acked.length > 0 && held.count > 0 ? tellAt - now : acked.length > 0 ? 0 : renewal;
    if (pause > 0) return Math.min(renewal, telling, pause);
    if (held.count === 0)
      return more || hinted || !lingering(now) ? 0 : Math.min(telling, renewal, retryAt - now);
    const few = held.count < 2 * maxConnections;
    if (breaker.down || !(few || !held.ready)) return Math.min(renewal, telling);
    return more || hinted || crowded() ? 0 : Math.min(renewal, telling, retryAt - now);
  }

  /** True while the next retry is so close that giving the lease back would only delay it. */
  const lingering = (now: number) => retryAt - now <= limits.webhook_linger_ms && retryAt > now;
  /** Most of what is held waits behind something that is open. */
  const crowded = () => !held.ready && held.count > limits.webhook_held_entries_max / 2;

  function leaving(): Step['leave'] {
    if (held.open > 0) return 'stay';
    if (!sending() || pauseLeft() > limits.webhook_linger_ms) return 'now';
    return held.count === 0 && pauseLeft() === 0 ? 'idle' : 'stay';
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
    else wake(Math.min(soon, graceEnd - now, leaseEnd - now));
  }

  async function step(): Promise<void> {
    stepping = true;
    clearTimeout(timer);
    // Whatever Redis does, the end of the lease is heard of.
    timer = setTimeout(pump, limits.webhook_lease_ms - (performance.now() - renewedAt));
    try {
      await tell();
      stepping = false;
      pump();
    } catch (thrown) {
      context.onError(thrown);
      stepping = false;
      if (state !== 'over') wake(Math.min(restMs, limits.webhook_lease_ms - (performance.now() - renewedAt)));
    }
  }

  async function buryDead(): Promise<boolean> {
    for (const reason of new Set(dead.map((each) => each.reason))) {
      const ids = dead.filter((each) => each.reason === reason).map(({ delivery }) => delivery.id);
      if (!(await store.deliveries.bury(bot, lease.fence, reason, ids))) return false;
      for (const each of dead.filter(({ delivery }) => ids.includes(delivery.id)))
        held.settle(each.delivery.chat);
      dead = dead.filter(({ delivery }) => !ids.includes(delivery.id));
    }
    return true;
  }

  async function tell(): Promise<void> {
    if (dead.length > 0 && !(await buryDead())) return end(false);
    if (crowded()) {
      for (const { chat, ids } of held.spill())
        failed.push({ chat, delayMs: limits.webhook_lease_ms, tries: 0, ids: [...ids] });
    }
    const leave = leaving();
    const sent = { acked, failed, error, gone: goneSign };
    const before = performance.now();
    const safe = held.safe(after);
    [acked, failed, error, goneSign, hinted] = [[], [], '', '', false];
    let advanced: Advanced | null;
    try {
      advanced = await store.deliveries.advance(bot, {
        ...{ fence: lease.fence, since: lease.since, after, safe, leave },
        ...{ ...sent, ...wanted(), holdMs: leave === 'now' ? pauseLeft() : 0, probes: breaker.probes },
      });
    } catch (thrown) {
      acked = [...sent.acked, ...acked];
      failed = [...sent.failed, ...failed];
      error ||= sent.error;
      goneSign ||= sent.gone;
      throw thrown;
    }
    if (sent.gone === 'set' && advanced?.gone && afterAnswer(advanced.gone, 410, advanced.now).remove)
      await remove();
    if (advanced === null || advanced.left) return end(advanced?.ring ?? false);
    renewedAt = before;
    clock = { redis: advanced.now, own: performance.now() };
    if (advanced.hook === 0) {
      graceEnd = Math.min(graceEnd, before + (advanced.wait ?? 0));
      return;
    }
    takeUp(advanced);
    if (advanced.hook !== hook) await reload(advanced.hook);
  }

  /** The settings have changed: what is sent from now on goes by the new ones. */
  async function reload(version: number): Promise<void> {
    const present = await store.webhooks.find(bot);
    if (present === null) return;
    hook = version;
    destination = destinationOf(present, context.service);
    maxConnections = present.maxConnections;
  }

  async function remove(): Promise<void> {
    await store.webhooks.removeVersion(bot, hook);
    context.onRemoved?.(bot);
  }

  takeUp(lease);
  const listening = setTimeout(() => {
    if (state === 'over') return;
    store.deliveries
      .listen(bot, () => {
        hinted = true;
        pump();
      })
      .then((stop) => {
        unlisten = stop;
        if (state === 'over') stop();
        // What came before the subscription stood gave no hint.
        hinted = true;
        pump();
      }, context.onError);
  }, listenAfterMs);
  done.then(() => clearTimeout(listening));
  pump();
  return {
    done,
    async stop(msMax) {
      if (state !== 'running') return;
      state = 'stopping';
      const late = setTimeout(() => {
        for (const abort of aborts) abort.abort();
      }, msMax);
      pump();
      await done;
      clearTimeout(late);
    },
  };
}
