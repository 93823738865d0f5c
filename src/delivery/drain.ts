/**
 * Delivers one bot's updates under one lease, until the queue has been empty for a while or the lease ends.
 *
 * Every event (an answer, a hint, a timer) calls `#pump`. `#pump` sends the updates that may be sent, and runs a step
 * with Redis when there are results to report or updates to fetch. Only one step runs at a time. Events that occur
 * during a step are handled by the next step.
 *
 * The hint of a small update contains a copy of the update. `#accept` buffers the copy if this update is the next one
 * in the queue. Otherwise the hint only causes a step, as if it contained no copy.
 *
 * The lease is measured by the monotonic clock, from the time at which its renewal was sent. Once half of the lease has
 * passed, nothing more is sent. Shortly before the lease ends, requests in flight are aborted. The next lease holder
 * redelivers every unacknowledged update.
 *
 * A drain is in one of four states. Only `#enter` changes the state.
 * - `running`: updates are sent, unless the bot is blocked, the receiver is down, or the settings are outdated.
 * - `removed`: a step found that the webhook was deleted. Nothing is sent, and the lease is no longer renewed. Requests
 *   in flight may still be acknowledged until `#graceEnd`, when they are aborted. The lease is released once no request
 *   is in flight. Until then, polls return no updates.
 * - `stopping`: `stop` was called. Nothing is sent, and the lease is released once no request is in flight.
 * - `over`: the lease was released, lost or expired. Requests in flight are aborted.
 *
 * `running` may become any other state, `removed` may become `stopping` or `over`, and `stopping` may only become
 * `over`.
 */

import { isBlocked } from '../store/core/control.js';
import { botOf, queueId } from '../store/core/queue_ids.js';
import {
  type Advanced,
  type DeadReason,
  type Delivery,
  type Lease,
  readDelivery,
  type Step,
} from '../store/webhooks/deliveries.js';
import type { Hint, UpdateCopy } from '../store/webhooks/hints.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import type { Time } from '../time.js';
import { attempt, type Destination, destinationOf } from './attempt.js';
import { type Breaker, createBreaker } from './breaker.js';
import type { AttemptFacts, DrainContext } from './context.js';
import { createDeadLetterBuffer, type DeadLetterBuffer } from './dead_letters.js';
import { type HintSubscription, subscribeToHints } from './hints.js';
import { deliveryLimits as limits } from './limits.js';
import { type Answered, errorMessageOf, isDelivered, type Outcome } from './outcome.js';
import { Report } from './report.js';
import { afterAnswer, ageMaxOf, nextTry } from './schedule.js';
import { mayTake } from './slots.js';
import { type InFlight, UpdateBuffer } from './update_buffer.js';
import { createWakeTimer } from './wake_timer.js';

/** How long a drain collects acknowledgements before it reports them, while other requests are in flight, in ms. */
const gatherMs = 25;
/**
 * How long a hint waits after a step before it causes the next step, in ms. New updates within this time share one
 * step. If this time has already passed, a hint causes a step immediately.
 */
const hintIntervalMs = 20;
/**
 * How long a drain runs before it subscribes to hints, in ms. A drain that ends earlier needs no subscription. If the
 * bot was served a moment ago, the drain subscribes immediately.
 */
const listenAfterMs = 20;
const failurePauseMs = 100;
/** How long a worker uses its lease, in ms. */
const heldMs = limits.webhook_lease_ms - limits.webhook_lease_margin_ms;
type Wanted = Pick<Step, 'chats' | 'updates'>;
const nothing: Wanted = { chats: 0, updates: 0 };
const unanswered = { status: undefined, retryAfterMs: undefined };

type State = 'running' | 'removed' | 'stopping' | 'over';

export class Drain {
  readonly #context: DrainContext;
  readonly #time: Time;
  /** The id of the queue. A route has its own queue, whose id differs from the bot's id. */
  readonly #queue: number;
  readonly #bot: number;
  /** The owner of the bot. The process divides its slots and its memory among owners. */
  readonly #owner: number;
  /** The queue for which the attempts are recorded. In a replay, this is the queue into which the replay delivers. */
  readonly #target: number;
  readonly #isReplay: boolean;
  readonly #lease: Lease;
  readonly #buffer = new UpdateBuffer();
  readonly #report = new Report();
  readonly #deadLetters: DeadLetterBuffer;
  readonly #hints: HintSubscription;
  readonly #abort = new AbortController();
  readonly #timer: ReturnType<typeof createWakeTimer>;
  #state: State = 'running';
  #blocked: boolean;
  #breaker: Breaker;
  /** If the receiver is down, nothing is sent before this time. */
  #pauseEnd = 0;
  #destination: Destination;
  #maxConnections: number;
  #hook: number;
  /**
   * Whether the settings have changed. If so, the drain sends nothing until it has read the new settings, because the
   * buffer may contain updates that were made after the change.
   */
  #outdated = false;
  #after: number;
  /**
   * Whether the drain may accept copies of updates from hints. Set when a step finds that no chat is parked. Cleared
   * when a step parks a chat, fails, or asks to release the lease.
   */
  #copying = false;
  #more: Lease['more'];
  #gone: Lease['gone'];
  #dropped: Lease['dropped'];
  /** The monotonic time in ms at which the lease was last renewed. */
  #renewedAt: number;
  /** The time of Redis and the monotonic time, read at the same moment. */
  #clock: { readonly redis: number; readonly own: number };
  /** The monotonic time in ms at which the next parked chat may be retried. */
  #retryAt = Number.POSITIVE_INFINITY;
  /** If the webhook was deleted, requests in flight may still be acknowledged until this time. */
  #graceEnd = Number.POSITIVE_INFINITY;
  /** The number of bytes that are counted in `heldBytes` for this drain's buffer. */
  #counted = 0;
  #hinted = false;
  #changed = false;
  #stepping = false;
  /** The monotonic time in ms at which an update was last fetched or settled. */
  #busyAt: number;
  #finish: (again: boolean) => void = () => {};
  #resolveQuiet: () => void = () => {};
  /** Resolves when the lease was released or lost. The value is true if more updates can be delivered immediately. */
  readonly done = new Promise<boolean>((resolve) => {
    this.#finish = resolve;
  });
  /**
   * Resolves when the drain has nothing left to do for the first time. The drain may continue and wait for new updates.
   */
  readonly quiet = new Promise<void>((resolve) => {
    this.#resolveQuiet = resolve;
  });

  /**
   * Starts delivering immediately. `sentAt` is the monotonic time at which the lease was requested. `again` says that
   * the bot was served a moment ago and will probably get more updates soon.
   */
  constructor(
    context: DrainContext,
    { queue, owner }: { readonly queue: number; readonly owner: number },
    webhook: Webhook,
    lease: Lease,
    sentAt: number,
    again: boolean,
    blocked: boolean,
  ) {
    this.#context = context;
    this.#time = context.time;
    this.#timer = createWakeTimer(context.time, () => this.#pump());
    this.#queue = queue;
    this.#bot = botOf(queue);
    this.#owner = owner;
    this.#target = webhook.replay === undefined ? queue : queueId(this.#bot, webhook.replay.slot);
    this.#isReplay = webhook.replay !== undefined;
    this.#lease = lease;
    this.#blocked = blocked;
    this.#breaker = createBreaker(lease.probes, webhook.retry);
    this.#deadLetters = createDeadLetterBuffer(context.store.deliveries, queue, lease.fence);
    this.#destination = destinationOf(webhook, context.signer);
    this.#maxConnections = webhook.maxConnections;
    this.#hook = lease.hook;
    this.#after = Number(lease.safe);
    this.#more = lease.more;
    this.#gone = lease.gone;
    this.#dropped = lease.dropped;
    this.#renewedAt = sentAt;
    this.#busyAt = sentAt;
    this.#clock = { redis: lease.now, own: sentAt };
    this.#receive(lease, { chats: 1, updates: 1 });
    const { time, store, onError } = context;
    const delayMs = again ? 0 : listenAfterMs;
    this.#hints = subscribeToHints(time, store.deliveries, queue, delayMs, this.#onHint, onError);
    this.done.then(this.#hints.end);
    this.#pump();
  }

  /**
   * Whether the drain has something to do now: a running step, an update in flight, an unreported result, or an update
   * that may be sent.
   */
  get busy(): boolean {
    if (this.#isOver()) return false;
    const reporting = this.#report.urgent || this.#report.acked > 0 || this.#deadLetters.count > 0;
    const sending = this.#sending() && !this.paused && this.#buffer.ready;
    return this.#stepping || this.#buffer.open > 0 || reporting || sending;
  }

  /** Whether the drain sends nothing for a while, because the receiver is down or the bot is blocked. */
  get paused(): boolean {
    return this.#pauseLeft() > 0;
  }

  async stop(msMax: number): Promise<void> {
    if (this.#state === 'stopping' || this.#state === 'over') return;
    this.#enter('stopping');
    const late = this.#time.after(msMax, () => this.#abort.abort());
    this.#pump();
    await this.done;
    this.#time.cancel(late);
  }

  #enter(state: Exclude<State, 'running'>): void {
    this.#state = state;
    if (state !== 'over') return;
    this.#count(0);
    this.#timer.clear();
    this.#abort.abort();
    this.#resolveQuiet();
  }

  #sending(): boolean {
    return this.#state === 'running' && !this.#blocked;
  }

  #isOver(): boolean {
    return this.#state === 'over';
  }

  /** Returns whether a step found that the webhook was deleted. The lease is then no longer renewed. */
  #isRemoved(): boolean {
    return this.#graceEnd < Number.POSITIVE_INFINITY;
  }

  #pauseRemaining(): number {
    return this.#breaker.down ? Math.max(0, this.#pauseEnd - this.#time.monotonic()) : 0;
  }

  #pauseLeft(): number {
    return this.#blocked ? limits.blocked_look_ms : this.#pauseRemaining();
  }

  #nowRedis(): number {
    return this.#clock.redis + (this.#time.monotonic() - this.#clock.own);
  }

  #end(again: boolean): void {
    if (this.#isOver()) return;
    this.#enter('over');
    this.#finish(again);
  }

  /**
   * Adds fetched updates to the buffer. Skips a retried chat if its last outcome is not yet reported to Redis. `asked`
   * says which data this step requested from Redis.
   */
  #receive({ again: failed, fresh, ...taken }: Lease | Advanced, asked: Wanted): void {
    for (const chat of failed) if (!this.#report.has(chat.chat)) this.#buffer.addAgain(chat);
    for (const delivery of fresh) this.#buffered(delivery);
    if (this.#buffer.count > 0) this.#busyAt = this.#time.monotonic();
    if (asked.updates > 0) this.#more = taken.more;
    this.#after = Math.max(this.#after, Number(taken.after));
    this.#copying = taken.wait === null;
    this.#gone = taken.gone;
    this.#retryAt = taken.wait === null ? Number.POSITIVE_INFINITY : this.#time.monotonic() + taken.wait;
  }

  /** Adds an update to the buffer, unless a copy of it was already accepted from a hint. */
  #buffered(delivery: Delivery): void {
    const id = Number(delivery.id);
    if (id <= this.#after) return;
    this.#after = id;
    if (!this.#report.parkWith(delivery)) this.#buffer.add(delivery);
  }

  readonly #onHint = ({ changed, copy }: Hint): void => {
    this.#changed ||= changed;
    if (copy === null || !this.#accept(copy)) this.#hinted = true;
    this.#pump();
  };

  /**
   * Adds an update to the buffer. The update is a copy that arrived in a hint. Returns false if the queue must be read
   * instead: earlier updates are missing, the settings have changed, the buffer is full, or nothing may be sent. Also
   * returns false if the copy is older than this lease, because the copy may be outdated.
   */
  #accept({ hook, id, made, row }: UpdateCopy): boolean {
    if (id <= this.#after) return true;
    const next = id === this.#after + 1 && hook === this.#hook && made > this.#lease.now;
    if (!next || !this.#copying || this.#changed || this.#outdated || this.#pauseLeft() > 0) return false;
    if (this.#wanted().updates === 0 || this.#isBlocked()) return false;
    this.#buffered(readDelivery(row));
    this.#busyAt = this.#time.monotonic();
    return true;
  }

  /**
   * Returns whether the bot is blocked, according to this process's cache. Returns true while the lookup is still
   * running.
   */
  #isBlocked(): boolean {
    const found = this.#context.store.auth.botById(this.#bot);
    if (!(found instanceof Promise)) return isBlocked(found);
    // Ignores the rejection here, because the next step awaits the same promise.
    found.catch(() => undefined);
    return true;
  }

  /** Returns whether the lease and the settings are recent enough for a new request. */
  #current(): boolean {
    const fresh = this.#time.monotonic() - this.#renewedAt < limits.webhook_lease_ms / 2;
    return fresh && this.#sending() && !this.#outdated;
  }

  #open(): void {
    if (!this.#current() || this.#pauseLeft() > 0) return;
    while (
      this.#buffer.ready &&
      this.#buffer.open < this.#breaker.allowed(this.#maxConnections) &&
      this.#context.slots.take(this.#owner, this.#buffer.open, this.#pump)
    ) {
      const opened = this.#buffer.next();
      if (opened === null) this.#context.slots.give(this.#owner);
      else void this.#deliver(opened, this.#breaker.down);
    }
  }

  async #deliver(opened: InFlight, probe: boolean): Promise<void> {
    const { delivery } = opened;
    const to = this.#destination;
    const outcome = await attempt(
      this.#context,
      this.#bot,
      to,
      delivery,
      this.#nowRedis(),
      () => this.#current() && to === this.#destination,
      this.#abort.signal,
    );
    this.#context.slots.give(this.#owner);
    this.#busyAt = this.#time.monotonic();
    if (this.#isOver()) return;
    if (outcome === 'blocked') this.#blocked = true;
    const unsent = outcome === 'blocked' || outcome === 'late';
    if (this.#abort.signal.aborted || unsent) this.#giveBack(delivery.chat, 0);
    else if (typeof outcome === 'string') this.#giveUp(opened, outcome, null, to);
    else if (isDelivered(outcome)) await this.#delivered(opened, outcome, to);
    else this.#notDelivered(opened, outcome, probe, to);
    this.#pump();
  }

  #facts({ secrets }: Destination, tries: number, nextAtMs: number | null = null): AttemptFacts {
    return { owner: this.#owner, tries: tries + 1, nextAtMs, secrets, isReplay: this.#isReplay };
  }

  #giveUp(opened: InFlight, reason: DeadReason, outcome: Outcome | null, to: Destination): void {
    this.#deadLetters.add(opened.delivery, reason);
    this.#context.onOutcome?.(this.#target, opened.delivery, outcome, reason, this.#facts(to, opened.tries));
  }

  #notMoved(chat: string, error: unknown): void {
    this.#context.onError(error);
    this.#giveBack(chat, limits.webhook_pause_ms_max);
  }

  /**
   * Puts the chat's updates back into Redis for a retry. Does not count a failed delivery, because the receiver is not
   * the cause.
   */
  #giveBack(chat: string, delayMs: number): void {
    this.#report.park(chat, delayMs, 0, this.#buffer.discard(chat));
  }

  async #delivered({ delivery, tries }: InFlight, outcome: Answered, to: Destination): Promise<void> {
    this.#breaker.success();
    this.#report.notGone(this.#gone !== null);
    this.#context.onOutcome?.(this.#target, delivery, outcome, null, this.#facts(to, tries));
    const asked = this.#context.onAnswer?.(this.#bot, delivery, outcome);
    if (asked) await asked.catch(this.#context.onError);
    if (this.#isOver()) return;
    this.#report.ack(delivery, this.#buffer.settle(delivery.chat), this.#time.monotonic());
  }

  #notDelivered(opened: InFlight, outcome: Outcome, probe: boolean, to: Destination): void {
    const { delivery, tries } = opened;
    // If this process had no free connection, the failure does not count against the receiver.
    const busy = outcome.kind === 'failed' && outcome.reason === 'busy';
    // If the request went to a previous webhook, its outcome says nothing about the current receiver.
    const former = !busy && to !== this.#destination;
    if (former)
      this.#context.onOutcome?.(
        this.#target,
        delivery,
        outcome,
        null,
        this.#facts(to, tries, this.#nowRedis()),
      );
    if (busy || former) {
      this.#giveBack(delivery.chat, busy ? failurePauseMs : 0);
      return;
    }
    const { status, retryAfterMs } = outcome.kind === 'answered' ? outcome : unanswered;
    this.#breaker.failure(probe, retryAfterMs, this.#context.random.number());
    this.#pauseEnd = this.#time.monotonic() + this.#breaker.pauseMs;
    this.#report.error(errorMessageOf(outcome), status);
    const failures = tries + 1;
    const nowMs = this.#nowRedis();
    const { made: madeAtMs, entry } = delivery;
    const next = nextTry(
      { failures, madeAtMs, ageMaxMs: ageMaxOf(entry.kind, to.retry), nowMs, retryAfterMs, policy: to.retry },
      this.#context.random.number(),
    );
    if (next.kind === 'dead') this.#giveUp(opened, 'expired', outcome, to);
    else {
      this.#context.onOutcome?.(this.#target, delivery, outcome, null, this.#facts(to, tries, next.atMs));
      this.#report.park(delivery.chat, next.atMs - nowMs, failures, this.#buffer.discard(delivery.chat));
    }
  }

  #wanted(): Wanted {
    if (!this.#sending()) return nothing;
    if (this.#breaker.down) {
      if (this.#buffer.count > 0 || this.#pauseLeft() > 0) return nothing;
      return { chats: 1, updates: this.#retryAt - this.#time.monotonic() > limits.webhook_linger_ms ? 1 : 0 };
    }
    const enough = this.#buffer.ready && this.#buffer.count >= 2 * this.#maxConnections;
    const room = Math.min(limits.webhook_held_entries_max - this.#buffer.count, limits.webhook_take_max);
    if (enough || room <= 0 || this.#buffer.bytes >= limits.webhook_held_bytes_max) return nothing;
    if (mayTake(this.#buffer.bytes, this.#context.heldBytes.room(this.#owner)))
      return { chats: room, updates: room };
    return this.#buffer.count === 0 ? { chats: 1, updates: 1 } : nothing;
  }

  #count(bytes: number): void {
    if (bytes === this.#counted) return;
    this.#context.heldBytes.add(this.#owner, bytes - this.#counted);
    this.#counted = bytes;
  }

  #nextStepIn(): number {
    const now = this.#time.monotonic();
    const pause = this.#pauseLeft();
    if (this.#changed) return 0;
    if (this.#buffer.open === 0 && (!this.#sending() || pause > limits.webhook_linger_ms)) return 0;
    if (
      this.#report.urgent ||
      this.#deadLetters.count > 0 ||
      this.#report.acked >= limits.webhook_take_max ||
      this.#crowded()
    )
      return 0;
    if (this.#report.acked > 0 && this.#buffer.count === 0 && !this.#staying(now)) return 0;
    const { chats, updates } = this.#wanted();
    if (updates > 0 && this.#more) return 0;
    const renewal = this.#isRemoved()
      ? Number.POSITIVE_INFINITY
      : this.#renewedAt + limits.webhook_renew_ms - now;
    const fetchIn = updates > 0 && this.#hinted ? this.#renewedAt + hintIntervalMs - now : renewal;
    const reportIn = Math.min(
      fetchIn,
      this.#report.acked > 0 ? this.#report.ackedSince + gatherMs - now : renewal,
    );
    if (pause > 0) return Math.min(renewal, reportIn, pause);
    const soonest = Math.min(renewal, reportIn, chats > 0 ? this.#retryAt - now : renewal);
    if (this.#buffer.count > 0 || this.#lingering(now)) return soonest;
    if (!this.#staying(now)) return 0;
    this.#resolveQuiet();
    return Math.min(soonest, this.#busyAt + limits.webhook_stay_ms - now);
  }

  /** Returns whether the next retry is so close that the lease should be kept until then. */
  #lingering(now: number): boolean {
    return this.#retryAt - now <= limits.webhook_linger_ms && this.#retryAt > now;
  }

  /**
   * Returns whether to keep the lease although no update is left. If the next update comes soon, keeping the lease
   * costs less than a wake-up.
   */
  #staying(now: number): boolean {
    return (
      this.#hints.active &&
      this.#sending() &&
      now - this.#busyAt < limits.webhook_stay_ms &&
      this.#context.mayStay(this.#owner)
    );
  }

  /** Returns whether most buffered updates wait for an in-flight update of their own chat. */
  #crowded(): boolean {
    return !this.#buffer.ready && this.#buffer.count > limits.webhook_held_entries_max / 2;
  }

  #leaving(): Step['leave'] {
    if (this.#buffer.open > 0) return 'stay';
    if (!this.#sending() || this.#pauseLeft() > limits.webhook_linger_ms) return 'now';
    return this.#buffer.count === 0 && this.#pauseLeft() === 0 && !this.#staying(this.#time.monotonic())
      ? 'idle'
      : 'stay';
  }

  /** A property and not a method, because `slots` identifies a waiting drain by this function object. */
  readonly #pump = (): void => {
    if (this.#isOver()) return;
    this.#count(this.#buffer.bytes);
    const now = this.#time.monotonic();
    if (now >= this.#renewedAt + heldMs) {
      this.#end(!this.#isRemoved());
      return;
    }
    if (now >= this.#graceEnd) this.#abort.abort();
    this.#open();
    const soon = this.#stepping ? Number.POSITIVE_INFINITY : this.#nextStepIn();
    if (soon <= 0) void this.#step();
    else this.#timer.set(Math.min(soon, this.#abortIn(now)));
  };

  /**
   * Returns the time until the requests in flight must be aborted. If they were already aborted, returns the time until
   * the lease ends.
   */
  #abortIn(now: number): number {
    const leaseEnd = this.#renewedAt + heldMs;
    return (this.#abort.signal.aborted ? leaseEnd : Math.min(leaseEnd, this.#graceEnd)) - now;
  }

  async #step(): Promise<void> {
    this.#stepping = true;
    this.#timer.clear();
    // Sets the timer so that requests in flight are aborted before the lease ends, even if Redis never answers.
    this.#timer.set(this.#abortIn(this.#time.monotonic()));
    try {
      await this.#runStep();
      this.#stepping = false;
      this.#pump();
    } catch (thrown) {
      this.#context.onError(thrown);
      this.#stepping = false;
      if (!this.#isOver()) this.#timer.set(Math.min(failurePauseMs, this.#abortIn(this.#time.monotonic())));
    }
  }

  async #runStep(): Promise<void> {
    if (
      this.#deadLetters.count > 0 &&
      !(await this.#deadLetters.flush(
        (chat) => this.#buffer.settle(chat),
        (chat, error) => this.#notMoved(chat, error),
      ))
    )
      return this.#end(false);
    if (this.#crowded())
      for (const { chat, ids } of this.#buffer.spill())
        this.#report.park(chat, limits.webhook_lease_ms, 0, ids);
    this.#blocked = isBlocked(await this.#context.store.auth.botById(this.#bot));
    const leave = this.#leaving();
    const asked = this.#wanted();
    const results = this.#report.take();
    if (leave !== 'stay' || results.failed.length > 0) this.#copying = false;
    const before = this.#time.monotonic();
    const known = { hinted: this.#hinted, changed: this.#changed };
    if (asked.updates > 0) this.#hinted = false;
    this.#changed = false;
    const step = {
      fence: this.#lease.fence,
      since: this.#lease.since,
      hook: this.#hook,
      after: String(this.#after),
      safe: this.#buffer.safe(this.#after),
      leave,
      holdMs: leave === 'now' ? this.#pauseLeft() : 0,
      probes: this.#breaker.probes,
      ...results,
      ...asked,
    };
    const advanced = await this.#context.store.deliveries.advance(this.#queue, step).catch((thrown) => {
      this.#report.putBack(results);
      this.#copying = false;
      this.#hinted ||= known.hinted;
      this.#changed ||= known.changed;
      throw thrown;
    });
    if (results.gone === 'set' && advanced?.gone && afterAnswer(advanced.gone, 410, advanced.now).remove) {
      if (await this.#context.store.webhooks.removeVersion(this.#queue, this.#hook))
        this.#context.onRemoved?.(this.#queue);
    }
    if (advanced === null || advanced.left) return this.#end(advanced?.wake ?? false);
    this.#clock = { redis: advanced.now, own: this.#time.monotonic() };
    if (advanced.hook === 0) {
      this.#graceEnd = Math.min(this.#graceEnd, before + (advanced.wait ?? 0));
      if (this.#state === 'running') this.#enter('removed');
      return;
    }
    this.#renewedAt = before;
    if (advanced.dropped !== this.#dropped) {
      this.#dropped = advanced.dropped;
      this.#buffer.drop(this.#dropped);
      this.#report.drop(this.#dropped);
      this.#after = Math.max(this.#after, this.#dropped);
    }
    this.#receive(advanced, asked);
    this.#outdated = advanced.hook !== this.#hook;
    if (this.#outdated) await this.#reload(advanced.hook);
  }

  async #reload(version: number): Promise<void> {
    const present = await this.#context.store.webhooks.find(this.#queue);
    if (present === null) return;
    this.#hook = version;
    this.#outdated = false;
    this.#destination = destinationOf(present, this.#context.signer);
    this.#maxConnections = present.maxConnections;
    this.#breaker = createBreaker(0, present.retry);
  }
}
