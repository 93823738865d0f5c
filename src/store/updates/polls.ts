/**
 * Runs long polls. Each bot has at most one waiting poll in the whole installation. Hints wake polls, and a check every
 * second finds updates whose hints were lost.
 */
import { fail } from '../../errors.js';
import type { Hints } from '../../redis/hints.js';
import type { Time, Timer } from '../../time.js';
import type { Auth } from '../access/auth.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { groupBy, piecesOf } from '../core/groups.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readUpdate, type UpdateEntry } from './queues.js';

export interface PollRequest {
  /** The offset. It confirms all updates with lower ids. -N keeps only the last N updates, and 0 confirms nothing. */
  readonly offset: number;
  readonly limit: number;
  /** How long to wait, in seconds. 0 answers immediately. */
  readonly timeout: number;
  /** The new mask of update kinds. Null keeps the current mask. */
  readonly mask: number | null;
  /** Returns false once the token is no longer accepted. The poll then ends. */
  readonly valid?: () => boolean | Promise<boolean>;
  readonly onGone: (listener: () => void) => void;
}

/**
 * A poll that waits. It sleeps until somebody requests a check. It ends when its client disconnects or its node shuts
 * down.
 */
class Waiter {
  readonly bot: number;
  readonly name: string;
  ended = false;
  #checkRequested = false;
  #wake = () => {};

  constructor(bot: number, name: string) {
    this.bot = bot;
    this.name = name;
  }

  requestCheck(): void {
    this.#checkRequested = true;
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  /** Waits for `ms`. Ends early when a check of the queue is requested, or when the poll ends. */
  async sleep(time: Time, ms: number): Promise<void> {
    if (!this.#checkRequested) {
      await new Promise<void>((resolve) => {
        const timer = time.after(ms, resolve);
        this.#wake = () => {
          time.cancel(timer);
          resolve();
        };
      });
      this.#wake = () => {};
    }
    this.#checkRequested = false;
  }
}

async function checkToken({ valid }: PollRequest): Promise<void> {
  if (valid !== undefined && !(await valid())) fail('unauthorized');
}

export class Polls {
  readonly #context: StoreContext;
  readonly #hints: Hints;
  readonly #queues: Queues;
  readonly #auth: Pick<Auth, 'onForgotten'>;
  readonly #waiters = new Map<string, Waiter>();
  #closing = false;
  #timer: Timer | undefined;

  constructor(context: StoreContext, hints: Hints, queues: Queues, auth: Pick<Auth, 'onForgotten'>) {
    this.#context = context;
    this.#hints = hints;
    this.#queues = queues;
    this.#auth = auth;
  }

  /**
   * Waits for updates and returns them, oldest first. Errors: `poll_while_webhook`, `poll_terminated_by_poll` for the
   * older of two polls, `poll_terminated_by_webhook`, `unauthorized`.
   */
  async poll(bot: number, request: PollRequest): Promise<UpdateEntry[]> {
    const name = this.#context.uniqueText();
    const entries = await this.#check(bot, name, true, request);
    if (entries.length > 0 || request.timeout === 0 || this.#closing) return entries;
    return this.#wait(bot, name, request);
  }

  waiting(): number {
    return this.#waiters.size;
  }

  close(): void {
    this.#closing = true;
    this.#context.time.cancel(this.#timer);
    for (const waiter of this.#waiters.values()) waiter.end();
  }

  async #check(bot: number, name: string, first: boolean, request: PollRequest) {
    const { scripts, keys } = this.#context;
    const partition = keys.partitions.of(bot);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      channel: keys.botChannel(bot),
    };
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
      switch (result.status) {
        case 'ok':
          if (!result.more) return (result.rows as unknown[]).map(readUpdate);
          // Confirms the updates of a long queue in several calls. A newer poll may replace this poll between two of
          // them.
          args = { ...args, first: false, mask: '' };
          break;
        case 'queue_missing':
          if (!(await this.#queues.open(bot))) return fail('unauthorized');
          attempt++;
          break;
        case 'webhook_active':
          return fail('poll_while_webhook');
        case 'terminated':
          return fail('poll_terminated_by_poll');
        case 'terminated_by_webhook':
          return fail('poll_terminated_by_webhook');
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  async #wait(bot: number, name: string, request: PollRequest): Promise<UpdateEntry[]> {
    const deadline = this.#context.time.monotonic() + request.timeout * 1_000;
    const waiter = new Waiter(bot, name);
    const requestCheck = () => waiter.requestCheck();
    request.onGone(() => waiter.end());
    this.#waiters.set(name, waiter);
    this.#timer ??= this.#context.time.every(limits.poll_tick_ms, () => this.#onTick()).unref();
    const forget = this.#auth.onForgotten(`bot:${bot}`, requestCheck);
    // Checks the queue once the subscription is active, because the hints of earlier updates were missed. Does not wait
    // for the subscription itself, which may take long while Redis is unreachable.
    const listening = this.#hints.listen(this.#context.keys.botChannel(bot), requestCheck);
    listening.then(requestCheck, () => undefined);
    try {
      // Checks the token again, because it may have been revoked before this poll subscribed to revocations.
      await checkToken(request);
      for (;;) {
        const left = deadline - this.#context.time.monotonic();
        if (left <= 0 || waiter.ended) return [];
        await waiter.sleep(this.#context.time, left);
        if (waiter.ended) return [];
        await checkToken(request);
        const entries = await this.#check(bot, name, false, request);
        if (entries.length > 0) return entries;
      }
    } finally {
      this.#waiters.delete(name);
      forget();
      listening.then(
        (unlisten) => unlisten(),
        () => undefined,
      );
    }
  }

  #onTick(): void {
    if (this.#waiters.size === 0) {
      this.#context.time.cancel(this.#timer);
      this.#timer = undefined;
    }
    // Ignores failures, because the next check follows a second later.
    else this.#checkAll().catch(() => undefined);
  }

  /** Checks every waiting poll each second, because hints may be lost. Makes only a few script calls per partition. */
  async #checkAll(): Promise<void> {
    const { scripts, keys } = this.#context;
    const byPartition = groupBy(this.#waiters.values(), ({ bot }) => keys.partitions.of(bot));
    await Promise.all(
      [...byPartition].map(async ([partition, list]) => {
        const at = { state: keys.queueStateRoot(partition), queue: keys.queueRoot(partition) };
        for (const some of piecesOf(list, limits.polls_peeked_max)) {
          const polls = some.flatMap(({ bot, name }) => [String(bot), name]);
          const { wake } = await scripts.call('updates/peek', partition, at, { polls });
          for (const name of wake) this.#waiters.get(name)?.requestCheck();
        }
      }),
    );
  }
}
