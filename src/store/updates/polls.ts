/** Long polls: at most one waiting poll per bot in the whole installation, woken by hints and checked every second. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import type { Hints } from '../../redis/hints.js';
import type { Auth } from '../access/auth.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from '../core/context.js';
import { type Queues, readUpdate, type UpdateEntry } from './queues.js';

export interface PollRequest {
  /** Id below which all updates are confirmed; -N keeps the last N; 0 confirms nothing. */
  readonly offset: number;
  readonly limit: number;
  /** time in seconds to wait for updates; 0 answers immediately */
  readonly timeout: number;
  /** new mask of update kinds; null keeps the current one */
  readonly mask: number | null;
  /** Whether the token is still accepted. If not, a waiting poll ends. */
  readonly valid?: () => boolean | Promise<boolean>;
  /** registers a listener for the client's disconnect */
  readonly onGone: (listener: () => void) => void;
}

export interface Polls {
  /**
   * Waits for updates, oldest first. Errors: `poll_while_webhook`, `poll_terminated_by_poll` for the older of two
   * polls, `poll_terminated_by_webhook`, `unauthorized`.
   */
  poll(bot: number, request: PollRequest): Promise<UpdateEntry[]>;
  /** Number of polls waiting on this node. */
  waiting(): number;
  /** Ends all waiting polls with an empty result. */
  close(): void;
}

interface Waiter {
  readonly bot: number;
  readonly name: string;
  /** function that makes the poll check its queue */
  readonly requestCheck: () => void;
  /** function that ends the current wait */
  wake: () => void;
}

export function createPolls(
  context: StoreContext,
  hints: Hints,
  queues: Queues,
  auth: Pick<Auth, 'onForgotten'>,
): Polls {
  const { scripts, keys } = context;
  const waiters = new Map<string, Waiter>();
  let closing = false;

  async function check(
    bot: number,
    name: string,
    first: boolean,
    request: PollRequest,
  ): Promise<UpdateEntry[]> {
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
          // A long queue is confirmed in several calls. A newer poll may replace this one between them.
          args = { ...args, first: false, mask: '' };
          break;
        case 'queue_missing':
          await queues.open(bot);
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

  /**
   * Hints are lost with a connection or node, so every waiting poll is checked each second, with few script calls per
   * partition.
   */
  async function tick(): Promise<void> {
    const byPartition = new Map<number, Waiter[]>();
    for (const waiter of waiters.values()) {
      const partition = keys.partitions.of(waiter.bot);
      const list = byPartition.get(partition) ?? [];
      byPartition.set(partition, list);
      list.push(waiter);
    }
    await Promise.all(
      [...byPartition].map(async ([partition, list]) => {
        for (let i = 0; i < list.length; i += limits.polls_peeked_max) {
          const some = list.slice(i, i + limits.polls_peeked_max);
          const { wake } = await scripts.call(
            'updates/peek',
            partition,
            { state: keys.queueStateRoot(partition), queue: keys.queueRoot(partition) },
            { polls: some.flatMap(({ bot, name }) => [String(bot), name]) },
          );
          for (const name of wake) waiters.get(name)?.requestCheck();
        }
      }),
    );
  }

  const timer = setInterval(() => {
    // Failures are ignored: the next check is a second later.
    if (waiters.size > 0) tick().catch(() => undefined);
  }, limits.poll_tick_ms);
  timer.unref();

  async function checkToken({ valid }: PollRequest): Promise<void> {
    if (valid !== undefined && !(await valid())) fail('unauthorized');
  }

  async function wait(bot: number, name: string, request: PollRequest): Promise<UpdateEntry[]> {
    const deadline = performance.now() + request.timeout * 1_000;
    let gone = false;
    let woken = false;
    const requestCheck = () => {
      woken = true;
      waiter.wake();
    };
    const waiter: Waiter = { bot, name, requestCheck, wake: () => undefined };
    request.onGone(() => {
      gone = true;
      waiter.wake();
    });
    waiters.set(name, waiter);
    const forget = auth.onForgotten(`bot:${bot}`, requestCheck);
    // Earlier updates sent no hint, so check the queue once the subscription is active. Do not wait for it, because it
    // may take long while Redis is unreachable.
    const listening = hints.listen(keys.botChannel(bot), requestCheck);
    listening.then(requestCheck, () => undefined);
    try {
      // The token may have been revoked before this poll subscribed to revocations.
      await checkToken(request);
      for (;;) {
        const left = deadline - performance.now();
        if (left <= 0 || gone || closing) return [];
        if (!woken) {
          await new Promise<void>((resolve) => {
            const end = setTimeout(resolve, left);
            waiter.wake = () => {
              clearTimeout(end);
              resolve();
            };
          });
          waiter.wake = () => undefined;
          if (gone || closing) return [];
        }
        woken = false;
        await checkToken(request);
        const entries = await check(bot, name, false, request);
        if (entries.length > 0) return entries;
      }
    } finally {
      waiters.delete(name);
      forget();
      listening.then(
        (unlisten) => unlisten(),
        () => undefined,
      );
    }
  }

  return {
    async poll(bot, request) {
      const name = uniqueText();
      const entries = await check(bot, name, true, request);
      if (entries.length > 0 || request.timeout === 0 || closing) return entries;
      return wait(bot, name, request);
    },
    waiting: () => waiters.size,
    close() {
      closing = true;
      clearInterval(timer);
      for (const waiter of waiters.values()) waiter.requestCheck();
    },
  };
}
