/**
 * Runs long polls and streams of updates. A stream is a poll that does not end (decision 0069). Each bot has at most
 * one waiting poll in the whole installation, or one for each of its consumers (decision 0067). Hints wake polls, and a
 * check every second finds updates whose hints were lost.
 */
import { fail } from '../../errors.js';
import type { Hints } from '../../redis/hints.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import type { Time, Timer } from '../../time.js';
import type { Auth } from '../access/auth.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { groupBy, piecesOf } from '../core/groups.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readUpdate, type UpdateEntry } from './queues.js';
import { SentUpdates, SharedUpdates, type UpdateSink } from './update_streams.js';

export interface PollRequest {
  /**
   * The offset of the poll. All updates with lower ids are confirmed. -N keeps only the last N updates, and 0 confirms
   * nothing.
   */
  readonly offset: number;
  readonly limit: number;
  /** How long to wait, in seconds. 0 answers immediately. */
  readonly timeout: number;
  /** The new mask of update kinds. Null keeps the current mask. */
  readonly mask: number | null;
  /**
   * The polling consumer. It shares the queue with other consumers, and `offset` must not be negative. If the consumer
   * does not poll for `leaseMs`, its chats may move to other consumers.
   */
  readonly consumer?: { readonly name: string; readonly leaseMs: number } | undefined;
  /** Returns false if the bot's token is no longer accepted. The poll then ends. */
  readonly valid?: () => boolean | Promise<boolean>;
  readonly onGone: (listener: () => void) => void;
}

/** The stream pauses while it has `limit` unconfirmed updates. */
interface StreamRequest extends Omit<PollRequest, 'timeout'> {
  /**
   * The id of the last update that the client has, or 0. The stream sends the updates after this one. This id does not
   * confirm any updates.
   */
  readonly lastSeen: number;
}

/**
 * The result of one step of a poll. A waiting poll makes its next step after `waitMs` at the latest, even without a
 * hint.
 */
interface Step {
  readonly entries: UpdateEntry[];
  readonly waitMs: number;
  /** How long a waiting poll must pause after this step. A hint does not end this pause. */
  readonly pauseMs: number;
  /** True if another step may immediately find more updates for a stream. */
  readonly more: boolean;
}

type Waiting = Pick<PollRequest, 'consumer' | 'valid' | 'onGone'>;
type Consumer = NonNullable<PollRequest['consumer']>;
type Sent = SentUpdates | SharedUpdates;

/** The prefix of a hint that a consumer has started a newer poll. The consumer's name follows. */
const consumerHint = 'p ';
/**
 * The prefix of a hint that updates were confirmed outside a poll. If a consumer confirmed them, a space and the
 * consumer's name follow.
 */
const confirmedHint = 'c';
/** The first byte of a hint about a new update. A copy of the update may follow. */
const updateHint = 0x75;

/** What a poll or stream waits for. 'anything' is set during a step, so that no hint is missed in that time. */
type Wanted = 'updates' | 'confirmations' | 'client' | 'anything';

/**
 * A waiting poll or stream. It sleeps until a check of the queue is requested. It ends when its client disconnects or
 * its node shuts down.
 */
class Waiter {
  readonly bot: number;
  readonly name: string;
  readonly consumer: Consumer | undefined;
  ended = false;
  wanted: Wanted = 'anything';
  #checkRequested = false;
  /** True if an update arrived during the current step. */
  #updateArrived = false;
  #expecting = false;
  #checkTimer: Timer | undefined;
  #wake = () => {};

  constructor(bot: number, name: string, consumer: Consumer | undefined) {
    this.bot = bot;
    this.name = name;
    this.consumer = consumer;
  }

  requestCheck(): void {
    this.#checkRequested = true;
    this.#wake();
  }

  /**
   * Handles a hint about a new update. Requests a check if the poll or stream is waiting for updates. During a step,
   * only remembers that an update has arrived.
   */
  onUpdate(): void {
    if (this.wanted === 'updates') this.requestCheck();
    else if (this.wanted === 'anything') this.#updateArrived = true;
  }

  /**
   * Calls `event`, and requests a check when the returned promise resolves. Does nothing if an earlier promise is still
   * pending.
   */
  checkAfter(event: () => Promise<void>): void {
    if (this.#expecting) return;
    this.#expecting = true;
    void event().then(() => {
      this.#expecting = false;
      this.requestCheck();
    });
  }

  /** Wakes the poll in `ms` if it is waiting for updates. */
  checkIn(time: Time, ms: number): void {
    if (this.wanted !== 'updates') return;
    time.cancel(this.#checkTimer);
    this.#checkTimer = time.after(ms, () => this.#wake());
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  /**
   * Waits for `ms`, which may be infinite. Ends early when a check of the queue is requested, or when the poll ends.
   */
  async sleep(time: Time, ms: number, wanted: Wanted): Promise<void> {
    this.wanted = wanted;
    if (!this.#checkRequested && !(this.#updateArrived && wanted === 'updates')) {
      await new Promise<void>((resolve) => {
        const timer = Number.isFinite(ms) ? time.after(ms, resolve) : undefined;
        this.#wake = () => {
          time.cancel(timer);
          resolve();
        };
      });
      this.#wake = () => {};
      time.cancel(this.#checkTimer);
      this.#checkTimer = undefined;
    }
    this.#checkRequested = false;
    this.#updateArrived = false;
    this.wanted = 'anything';
  }
}

/**
 * The script `updates/renew` returns this value instead of a waiting time if the consumer's poll must make its next
 * step now.
 */
const mustStep = -2;

/**
 * Returns how long a consumer's poll may wait until its next step. `wait` is the time until another consumer's lease
 * ends, or -1 if no other consumer has a lease. If the regular check comes before the lease ends, returns infinity,
 * because that check handles the lease.
 */
const ownWait = (wait: number): number =>
  wait >= 0 && wait < limits.poll_tick_ms ? wait + 1 : Number.POSITIVE_INFINITY;

type Consumed = Extract<Scripts['updates/consume']['result'], { status: 'ok' }>;

type Refusal = Exclude<
  (Scripts['updates/poll'] | Scripts['updates/consume'])['result']['status'],
  'ok' | 'stale_run' | 'journal_full'
>;

/**
 * Returns whether this poll or stream must react to a hint. Hints about new updates are handled elsewhere. `isFull` is
 * true if the stream is waiting for confirmations.
 */
function concerns(hint: Buffer, { consumer }: Waiter, isFull: boolean): boolean {
  const text = String(hint);
  const name = text.slice(consumerHint.length);
  if (text.startsWith(confirmedHint)) return isFull && name === (consumer?.name ?? '');
  return !text.startsWith(consumerHint) || name === consumer?.name;
}

async function checkToken({ valid }: Waiting): Promise<void> {
  if (valid !== undefined && !(await valid())) fail('unauthorized');
}

/** The result of a step in which a stream sends nothing, because its client has not yet accepted earlier updates. */
const blockedStep: Step = { entries: [], waitMs: limits.poll_tick_ms, pauseMs: 0, more: false };

/**
 * Sends updates until the client accepts no more or must first confirm some. A later step reads the remaining updates
 * again.
 */
async function sendAll(entries: readonly UpdateEntry[], sent: Sent, sink: UpdateSink): Promise<void> {
  for (const entry of entries) {
    if (sink.isBlocked() || !sent.canAdd()) return;
    const bytes = sent.has(entry.updateId) ? 0 : await sink.send(entry);
    sent.add(entry.updateId, bytes);
  }
}

export class Polls {
  readonly #context: StoreContext;
  readonly #hints: Hints;
  readonly #queues: Queues;
  readonly #auth: Pick<Auth, 'onForgotten'>;
  readonly #waiters = new Map<string, Waiter>();
  #streaming = 0;
  #closing = false;
  #timer: Timer | undefined;

  constructor(context: StoreContext, hints: Hints, queues: Queues, auth: Pick<Auth, 'onForgotten'>) {
    this.#context = context;
    this.#hints = hints;
    this.#queues = queues;
    this.#auth = auth;
  }

  /**
   * Waits for updates and returns them, oldest first. Errors: `poll_while_webhook`, `poll_while_consumers`,
   * `poll_terminated_by_poll` if a newer poll replaces this poll, `poll_terminated_by_webhook`, `too_many_requests` for
   * too many consumers, `unauthorized`.
   */
  async poll(bot: number, request: PollRequest): Promise<UpdateEntry[]> {
    const name = this.#context.uniqueText();
    const step = await this.#step(bot, name, true, request);
    if (step.entries.length > 0 || request.timeout === 0 || this.#closing) return step.entries;
    return this.#wait(bot, name, request, step);
  }

  /**
   * Sends updates to a client as they are created, until the client disconnects or this node shuts down. Calls `begin`
   * when the stream has replaced other polls. An error after that ends the stream. Throws the errors of `poll`.
   */
  async stream(bot: number, request: StreamRequest, begin: () => UpdateSink): Promise<void> {
    const { time, uniqueText } = this.#context;
    const waiter = new Waiter(bot, uniqueText(), request.consumer);
    const sent =
      request.consumer === undefined
        ? new SentUpdates(request)
        : new SharedUpdates(request, time.monotonic());
    const made = await this.#follow(waiter, true, request, sent);
    const sink = begin();
    const forget = this.#add(waiter, request, sent);
    try {
      for (let step: Step | undefined = made; !this.#closing && !waiter.ended; step = undefined) {
        // Checks the token again. It may have been revoked before this stream subscribed to revocations.
        await checkToken(request);
        step ??= sink.isBlocked()
          ? await this.#look(waiter)
          : await this.#follow(waiter, false, request, sent);
        await sendAll(step.entries, sent, sink);
        const isBlocked = sink.isBlocked();
        if (isBlocked) waiter.checkAfter(() => sink.drained());
        else if (step.more && !sent.isFull()) waiter.requestCheck();
        if (sent instanceof SharedUpdates && sent.isStalled(time.monotonic())) return;
        if (step.pauseMs > 0) await time.sleep(step.pauseMs);
        const wanted = isBlocked ? 'client' : sent.isFull() ? 'confirmations' : 'updates';
        const waitMs = isBlocked ? blockedStep.waitMs : step.waitMs;
        if (!waiter.ended) await waiter.sleep(time, waitMs, wanted);
      }
    } finally {
      forget();
    }
  }

  /**
   * Confirms the updates below `offset`. If `consumer` is given, confirms only updates that this consumer has seen
   * (decision 0069). Errors: `poll_while_webhook`, `poll_while_consumers`, `unauthorized`.
   */
  async confirm(bot: number, offset: number, consumer = ''): Promise<void> {
    const { scripts, keys } = this.#context;
    const { state, queue, channel } = this.#keysOf(bot);
    const at = { state, queue, channel, consumption: keys.consumption(bot), holders: keys.holders(bot) };
    const args = { name: consumer, offset };
    for (let attempt = 0; attempt < fillAttemptsMax; ) {
      const result = await scripts.call('updates/confirm', keys.partitions.of(bot), at, args);
      if (result.status !== 'ok') {
        await this.#afterRefusal(bot, result.status);
        attempt++;
      } else if (!result.more) return;
    }
    fail('unavailable', { retry_after: 1 });
  }

  /** The number of waiting long polls. */
  waiting(): number {
    return this.#waiters.size - this.#streaming;
  }

  streaming(): number {
    return this.#streaming;
  }

  close(): void {
    this.#closing = true;
    this.#context.time.cancel(this.#timer);
    for (const waiter of this.#waiters.values()) waiter.end();
  }

  #step(bot: number, name: string, first: boolean, request: PollRequest): Promise<Step> {
    return request.consumer === undefined
      ? this.#check(bot, name, first, request)
      : this.#consume(bot, name, first, request, request.consumer);
  }

  #keysOf(bot: number) {
    const { keys } = this.#context;
    const partition = keys.partitions.of(bot);
    return {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      channel: keys.botChannel(bot),
    };
  }

  /** Performs a step of a stream. */
  async #follow(waiter: Waiter, first: boolean, request: StreamRequest, sent: Sent): Promise<Step> {
    const { bot, name } = waiter;
    if (sent instanceof SharedUpdates)
      return this.#consume(bot, name, first, request, request.consumer as Consumer, sent);
    // The first step calls `#check` so that the stream replaces an earlier poll. Later steps call it only while the
    // stream waits for confirmations, to remove expired updates from the queue.
    if (first || sent.isFull()) await this.#check(bot, name, first, { ...request, limit: 1 });
    const result = await this.#read(waiter, sent.last, sent.room);
    if (result === undefined) return blockedStep;
    const { rows, more, oldest, latest } = result;
    sent.learn(oldest, latest);
    const entries = (rows as unknown[]).map(readUpdate);
    return { entries, waitMs: Number.POSITIVE_INFINITY, pauseMs: 0, more };
  }

  /**
   * Performs a step of a stream whose client accepts nothing now. Only checks whether another poll has replaced the
   * stream. Does not renew a consumer's lease.
   */
  async #look(waiter: Waiter): Promise<Step> {
    await this.#read(waiter, 0, 0);
    return blockedStep;
  }

  /**
   * For a stream without a consumer, reads the updates after the update `after`. For a consumer's stream, only checks
   * that no other poll has replaced the stream. Returns undefined if the step must be repeated.
   */
  async #read({ bot, name, consumer }: Waiter, after: number, limit: number) {
    const { scripts, keys } = this.#context;
    const at = {
      ...{ state: keys.queueState(bot), queue: keys.queue(bot), consumption: keys.consumption(bot) },
    };
    const args = { name: consumer?.name ?? '', poll: name, after, limit };
    const result = await scripts.call('updates/follow', keys.partitions.of(bot), at, args);
    if (result.status === 'ok') return result;
    await this.#afterRefusal(bot, result.status);
    return undefined;
  }

  async #check(
    bot: number,
    name: string,
    first: boolean,
    request: Omit<PollRequest, 'timeout'>,
  ): Promise<Step> {
    const { scripts, keys } = this.#context;
    const partition = keys.partitions.of(bot);
    const at = this.#keysOf(bot);
    let args = {
      bot: String(bot),
      poll: name,
      first,
      offset: first && request.offset !== 0 ? String(request.offset) : '',
      limit: request.limit,
      mask: request.mask === null ? '' : String(request.mask),
    };
    for (let attempt = 0; attempt < fillAttemptsMax; ) {
      const result = await scripts.call('updates/poll', partition, at, args);
      if (result.status === 'ok') {
        if (!result.more) {
          return {
            entries: (result.rows as unknown[]).map(readUpdate),
            waitMs: Number.POSITIVE_INFINITY,
            pauseMs: 0,
            more: false,
          };
        }
        // If many updates must be confirmed, the script must run several times. Between two runs, a newer poll may
        // replace this poll.
        args = { ...args, first: false, mask: '' };
      } else {
        await this.#afterRefusal(bot, result.status);
        attempt++;
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  async #consume(
    bot: number,
    name: string,
    first: boolean,
    request: Omit<PollRequest, 'timeout'>,
    consumer: Consumer,
    sent?: SharedUpdates,
  ): Promise<Step> {
    const { scripts, keys } = this.#context;
    const partition = keys.partitions.of(bot);
    const at = {
      consumers: keys.consumers(bot),
      consumption: keys.consumption(bot),
      assigned: keys.assigned(bot),
      unsent: keys.unsent(bot),
      holders: keys.holders(bot),
      ...this.#keysOf(bot),
    };
    let args = {
      bot: String(bot),
      name: consumer.name,
      poll: name,
      first,
      offset: request.offset,
      limit: sent === undefined ? String(request.limit) : `${request.limit} ${sent.last}`,
      mask: request.mask === null ? '' : String(request.mask),
      lease: consumer.leaseMs,
    };
    for (let attempt = 0; attempt < fillAttemptsMax; ) {
      const result = await scripts.call('updates/consume', partition, at, args);
      if (result.status === 'ok') {
        if (!result.more) return this.#stepOf(result, first, sent);
        // In the first step of a stream, nothing was sent on this connection yet, so the next call reads all
        // unconfirmed updates.
        const limit = sent !== undefined && first ? `${request.limit} 0` : args.limit;
        args = { ...args, first: false, mask: '', limit };
      } else if (result.status === 'lapsed' && sent !== undefined) {
        sent.last = 0;
        args = { ...args, first: true, mask: '', limit: `${request.limit} 0` };
        attempt++;
      } else {
        await this.#afterRefusal(bot, result.status);
        attempt++;
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /** Converts the result of the script `updates/consume` to the result of a poll's or stream's step. */
  #stepOf({ rows, wait, sharing, held, full, rest }: Consumed, first: boolean, sent?: SharedUpdates): Step {
    // The regular check of all polls skips streams that wait for confirmations, so such a stream must limit its own
    // wait.
    const waitMs = full ? Math.min(limits.poll_tick_ms, ownWait(wait)) : ownWait(wait);
    const pauseMs = Math.max(limits.consumer_step_ms_min, sharing * limits.consumer_pause_ms);
    const entries = (rows as unknown[]).map(readUpdate);
    sent?.learn(held, entries.length, full, this.#context.time.monotonic());
    // Only the first step uses `Last-Event-ID`. The next step reads all unconfirmed updates, because the client may
    // accept none of the updates of the first step. If there are no unconfirmed updates, `Last-Event-ID` says nothing
    // about later updates.
    if (sent !== undefined && first && (entries.length > 0 || held === 0)) sent.last = 0;
    return { entries, waitMs, pauseMs, more: rest };
  }

  /** Opens the queue if it is missing. For any other refusal, throws its error. */
  async #afterRefusal(bot: number, status: Refusal): Promise<void> {
    switch (status) {
      case 'queue_missing':
        if (!(await this.#queues.open(bot))) fail('unauthorized');
        return;
      case 'webhook_active':
        return fail('poll_while_webhook');
      case 'shared':
        return fail('poll_while_consumers');
      case 'terminated':
        return fail('poll_terminated_by_poll');
      case 'terminated_by_webhook':
        return fail('poll_terminated_by_webhook');
      case 'too_many_consumers':
        return fail('too_many_requests', { retry_after: limits.consumer_lease_s_default });
    }
  }

  async #wait(bot: number, name: string, request: PollRequest, made: Step): Promise<UpdateEntry[]> {
    const { time } = this.#context;
    const deadline = time.monotonic() + request.timeout * 1_000;
    const waiter = new Waiter(bot, name, request.consumer);
    const forget = this.#add(waiter, request, null);
    try {
      // Checks the token again. It may have been revoked before this poll subscribed to revocations.
      await checkToken(request);
      for (let { waitMs } = made; ; ) {
        const left = deadline - time.monotonic();
        if (left <= 0 || waiter.ended) return [];
        await waiter.sleep(time, Math.min(left, waitMs), 'updates');
        if (waiter.ended) return [];
        await checkToken(request);
        const step = await this.#step(bot, name, false, request);
        if (step.entries.length > 0) return step.entries;
        waitMs = step.waitMs;
        if (step.pauseMs > 0) await time.sleep(step.pauseMs);
      }
    } finally {
      forget();
    }
  }

  /**
   * Registers a waiting poll, or a stream with the updates that it has sent. Returns a function that removes the
   * registration.
   */
  #add(waiter: Waiter, request: Waiting, sent: Sent | null): () => void {
    const { time, keys } = this.#context;
    const { bot, name } = waiter;
    const requestCheck = () => waiter.requestCheck();
    request.onGone(() => waiter.end());
    this.#waiters.set(name, waiter);
    if (sent) this.#streaming++;
    this.#timer ??= time.every(limits.poll_tick_ms, () => this.#onTick()).unref();
    const forget = this.#auth.onForgotten(`bot:${bot}`, requestCheck);
    // Checks the queue as soon as the subscription is active, because earlier hints were missed. Does not wait until
    // the subscription is active, because this may take long while Redis is unreachable.
    const listening = this.#hints.listen(keys.botChannel(bot), (hint) => {
      if (hint[0] === updateHint) waiter.onUpdate();
      else if (concerns(hint, waiter, sent?.isFull() ?? false)) requestCheck();
    });
    listening.then(requestCheck, () => undefined);
    return () => {
      this.#waiters.delete(name);
      if (sent) this.#streaming--;
      forget();
      listening.then(
        (unlisten) => unlisten(),
        () => undefined,
      );
    };
  }

  #onTick(): void {
    if (this.#waiters.size === 0) {
      this.#context.time.cancel(this.#timer);
      this.#timer = undefined;
    }
    // Ignores failures, because the next check follows in a second.
    else this.#checkAll().catch(() => undefined);
  }

  /**
   * Every second, checks all waiting polls, because hints may be lost, and renews the leases of idle consumers. Makes
   * only a few script calls per partition.
   */
  async #checkAll(): Promise<void> {
    const { keys } = this.#context;
    const byPartition = groupBy(this.#waiters.values(), ({ bot }) => keys.partitions.of(bot));
    await Promise.all(
      [...byPartition].map(async ([partition, list]) => {
        const plain = list.filter(({ consumer }) => consumer === undefined);
        for (const some of piecesOf(plain, limits.polls_peeked_max)) await this.#peek(partition, some);
        const idle = list.filter(({ consumer, wanted }) => consumer !== undefined && wanted === 'updates');
        for (const some of piecesOf(idle, limits.polls_peeked_max)) await this.#renew(partition, some);
      }),
    );
  }

  async #peek(partition: number, some: readonly Waiter[]): Promise<void> {
    const { scripts, keys } = this.#context;
    const at = { state: keys.queueStateRoot(partition), queue: keys.queueRoot(partition) };
    const polls = some.flatMap(({ bot, name }) => [String(bot), name]);
    const { wake } = await scripts.call('updates/peek', partition, at, { polls });
    for (const name of wake) this.#waiters.get(name)?.requestCheck();
  }

  /** Renews the leases of consumers that have nothing to do. Wakes the polls of all other consumers. */
  async #renew(partition: number, some: readonly Waiter[]): Promise<void> {
    const { scripts, keys, time } = this.#context;
    const at = {
      meta: keys.meta(partition),
      state: keys.queueStateRoot(partition),
      consumers: keys.consumersRoot(partition),
      consumption: keys.consumptionRoot(partition),
      assigned: keys.assignedRoot(partition),
    };
    const waiting: string[] = [];
    for (const { bot, name, consumer } of some) {
      const { name: own, leaseMs } = consumer as Consumer;
      waiting.push(String(bot), own, name, String(leaseMs));
    }
    const { waits } = await scripts.call('updates/renew', partition, at, { waiting });
    for (const [i, wait] of (waits as number[]).entries()) {
      const waiter = some[i] as Waiter;
      if (wait === mustStep) waiter.requestCheck();
      else if (ownWait(wait) < Number.POSITIVE_INFINITY) waiter.checkIn(time, wait + 1);
    }
  }
}
