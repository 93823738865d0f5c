/**
 * Runs long polls and streams of updates. A stream is a poll that does not end (decision 0069). Each bot has at most one
 * waiting poll in the whole installation, or one for each of its consumers (decision 0067). Hints wake polls, and a check
 * every second finds updates whose hints were lost.
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
  /** The offset. It confirms all updates with lower ids. -N keeps only the last N updates, and 0 confirms nothing. */
  readonly offset: number;
  readonly limit: number;
  /** How long to wait, in seconds. 0 answers immediately. */
  readonly timeout: number;
  /** The new mask of update kinds. Null keeps the current mask. */
  readonly mask: number | null;
  /**
   * The consumer that polls. It shares the queue with other consumers, and `offset` must not be negative. If the
   * consumer does not poll for `leaseMs`, its chats may move to other consumers.
   */
  readonly consumer?: { readonly name: string; readonly leaseMs: number } | undefined;
  /** Returns false if the token is no longer accepted. The poll then ends. */
  readonly valid?: () => boolean | Promise<boolean>;
  readonly onGone: (listener: () => void) => void;
}

/** The stream pauses while it has `limit` unconfirmed updates. */
interface StreamRequest extends Omit<PollRequest, 'timeout'> {
  /**
   * The id of the last update that the client has, or 0. The stream sends the updates after this id. This id confirms
   * no updates.
   */
  readonly lastSeen: number;
}

/** The result of one step of a poll. A waiting poll must make its next step within `waitMs`, even without a hint. */
interface Step {
  readonly entries: UpdateEntry[];
  readonly waitMs: number;
  /** How long a waiting poll pauses after this step. Hints do not end this pause. */
  readonly pauseMs: number;
  /** Whether a stream may get more updates from another step immediately. */
  readonly more: boolean;
}

type Waiting = Pick<PollRequest, 'consumer' | 'valid' | 'onGone'>;
type Consumer = NonNullable<PollRequest['consumer']>;
type Sent = SentUpdates | SharedUpdates;

/** The beginning of a hint about a newer poll of one consumer. The name of the consumer follows. */
const consumerHint = 'p ';
/**
 * A hint that says that updates were confirmed outside a poll. If a consumer confirmed the updates, a space and the
 * name of the consumer follow.
 */
const confirmedHint = 'c';
/** The first byte of a hint about an update. A copy of the update may follow. */
const updateHint = 0x75;

/**
 * The event that a poll or stream waits for. It is recorded, so that a hint that arrives during a step is not missed.
 */
type Wanted = 'updates' | 'confirmations' | 'client' | 'anything';

/** A waiting poll. It sleeps until a check is requested. It ends when its client disconnects or its node shuts down. */
class Waiter {
  readonly bot: number;
  readonly name: string;
  readonly consumer: Consumer | undefined;
  ended = false;
  wanted: Wanted = 'anything';
  #checkRequested = false;
  /** Whether an update arrived during the present step. */
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
   * Requests a check because of a new update. Has no effect if the stream waits for something else, now or when its
   * present step ends.
   */
  onUpdate(): void {
    if (this.wanted === 'updates') this.requestCheck();
    else if (this.wanted === 'anything') this.#updateArrived = true;
  }

  /** Requests a check when the promise resolves. Does nothing if an earlier promise is still pending. */
  checkAfter(event: () => Promise<void>): void {
    if (this.#expecting) return;
    this.#expecting = true;
    void event().then(() => {
      this.#expecting = false;
      this.requestCheck();
    });
  }

  /** Requests a check in `ms` if the poll waits for updates until then. */
  checkIn(time: Time, ms: number): void {
    if (this.wanted !== 'updates') return;
    time.cancel(this.#checkTimer);
    this.#checkTimer = time.after(ms, () => this.#wake());
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  /** Waits for `ms`, which may be infinite. Ends early when a check of the queue is requested, or when the poll ends. */
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

/** The value that `updates/renew` returns as the wait of a consumer whose poll must make a step. */
const mustStep = -2;

/**
 * Returns how long the poll of a consumer may wait until its next step. `wait` is the time until the lease of another
 * consumer ends, or -1. The regular check of all polls may be a tick away, and handles all leases that end later.
 */
const ownWait = (wait: number): number =>
  wait >= 0 && wait < limits.poll_tick_ms ? wait + 1 : Number.POSITIVE_INFINITY;

type Consumed = Extract<Scripts['updates/consume']['result'], { status: 'ok' }>;

type Refusal = Exclude<
  (Scripts['updates/poll'] | Scripts['updates/consume'])['result']['status'],
  'ok' | 'stale_run' | 'journal_full'
>;

/**
 * Returns whether a hint that announces no update may matter to a poll or stream. If `isFull` is true, the stream is
 * waiting for confirmations.
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

/**
 * The next step of a stream whose client has not accepted earlier updates yet. In this step, the stream sends nothing.
 */
const blockedStep: Step = { entries: [], waitMs: limits.poll_tick_ms, pauseMs: 0, more: false };

/**
 * Sends updates until the client accepts no more, or must first confirm some updates. A later step reads the remaining
 * updates again.
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
   * `poll_terminated_by_poll` for an older poll that a newer poll replaces, `poll_terminated_by_webhook`,
   * `too_many_requests` for too many consumers, `unauthorized`.
   */
  async poll(bot: number, request: PollRequest): Promise<UpdateEntry[]> {
    const name = this.#context.uniqueText();
    const step = await this.#step(bot, name, true, request);
    if (step.entries.length > 0 || request.timeout === 0 || this.#closing) return step.entries;
    return this.#wait(bot, name, request, step);
  }

  /**
   * Sends updates to a client as they are created, until the client disconnects or this node shuts down. Calls `begin`
   * when the stream has replaced other polls. Later errors end the stream. Throws the errors of `poll`.
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
        // Checks the token again, because a revocation may have happened before this stream subscribed to revocations.
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
   * Confirms the updates below `offset`. With a consumer, confirms only the updates that this consumer has seen
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

  /** The number of long polls that wait. */
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
    // This step replaces an earlier poll. If no updates are being confirmed, the step removes expired updates from the
    // queue.
    if (first || sent.isFull()) await this.#check(bot, name, first, { ...request, limit: 1 });
    const result = await this.#read(waiter, sent.last, sent.room);
    if (result === undefined) return blockedStep;
    const { rows, more, oldest, latest } = result;
    sent.learn(oldest, latest);
    const entries = (rows as unknown[]).map(readUpdate);
    return { entries, waitMs: Number.POSITIVE_INFINITY, pauseMs: 0, more };
  }

  /**
   * Performs a step of a stream whose client accepts nothing. Only checks whether the stream was replaced. Does not
   * renew the lease of the stream's consumer.
   */
  async #look(waiter: Waiter): Promise<Step> {
    await this.#read(waiter, 0, 0);
    return blockedStep;
  }

  /** Reads the updates after `after`. Reads nothing for a consumer. Returns undefined if the step must be repeated. */
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
        // Confirms the updates of a long queue in several calls. Between two calls, a newer poll may replace this poll.
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
        // If the stream has sent nothing on this connection yet, the next step reads all unconfirmed updates.
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

  /** Builds the step of a poll or stream from the result of its script. */
  #stepOf({ rows, wait, sharing, held, full, rest }: Consumed, first: boolean, sent?: SharedUpdates): Step {
    // A stream that waits for confirmations is left out of the regular check of all polls.
    const waitMs = full ? Math.min(limits.poll_tick_ms, ownWait(wait)) : ownWait(wait);
    const pauseMs = Math.max(limits.consumer_step_ms_min, sharing * limits.consumer_pause_ms);
    const entries = (rows as unknown[]).map(readUpdate);
    sent?.learn(held, entries.length, full, this.#context.time.monotonic());
    // This step decided after which update the stream continues. If the client accepts none of the updates of this
    // step, the next step reads all unconfirmed updates. If there are no unconfirmed updates, `Last-Event-ID` says
    // nothing about later updates.
    if (sent !== undefined && first && (entries.length > 0 || held === 0)) sent.last = 0;
    return { entries, waitMs, pauseMs, more: rest };
  }

  /** Opens the queue if it is missing. For any other refusal, throws the corresponding error. */
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
      // Checks the token again, because a revocation may have happened before this poll subscribed to revocations.
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

  /** Registers a waiting poll, or a stream with its sent updates. Returns the function that ends the registration. */
  #add(waiter: Waiter, request: Waiting, sent: Sent | null): () => void {
    const { time, keys } = this.#context;
    const { bot, name } = waiter;
    const requestCheck = () => waiter.requestCheck();
    request.onGone(() => waiter.end());
    this.#waiters.set(name, waiter);
    if (sent) this.#streaming++;
    this.#timer ??= time.every(limits.poll_tick_ms, () => this.#onTick()).unref();
    const forget = this.#auth.onForgotten(`bot:${bot}`, requestCheck);
    // Checks the queue as soon as the subscription is active, because hints about earlier updates were missed. Does not
    // wait for the subscription itself, which may take long while Redis is unreachable.
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
    // Ignores failures, because the next check follows a second later.
    else this.#checkAll().catch(() => undefined);
  }

  /**
   * Checks every waiting poll each second, because hints may be lost. Also renews the leases of idle consumers. Makes
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

  /** Renews the leases of consumers that have nothing to do. Lets the polls of all other consumers make a step. */
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
