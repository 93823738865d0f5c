/**
 * Runs one bot with several pollers or streams that share its queue. Kills pollers and fronts while people write to the
 * bot. Keeps only counters, so that the memory of the test does not limit the number of updates. The text of a message
 * consists of its number in the chat and the time at which it was sent.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';

export interface Amounts {
  readonly pollers: number;
  readonly kills: number;
  /** The minimum number of updates. The load continues until all kills have happened. */
  readonly updates: number;
  /**
   * The maximum number of unprocessed updates per person. Default 500. Without a maximum, the bot's queue could become
   * full.
   */
  readonly ahead?: number;
  /** The minimum time between two kills, in ms. */
  readonly gapMs: number;
  /**
   * Which pollers use a stream. `alone` means a single stream without a consumer name. If absent, all pollers call
   * getUpdates.
   */
  readonly streams?: 'half' | 'all' | 'alone';
  /** Causes further faults, from the beginning of the load. The load continues until the returned promise resolves. */
  readonly faults?: (sharing: Faults) => Promise<void>;
}

export interface Faults {
  /** Resolves when `count` more updates have been processed. */
  processed(count: number): Promise<void>;
  /** Stops half of the pollers for `ms`. A stopped poller keeps its updates and its connections. */
  stopPollers(ms: number): Promise<void>;
}

interface Chat {
  readonly user: TestUser;
  /** The next number to send, and the first number that no poller has processed yet. */
  sent: number;
  next: number;
  /** The time at which the last update of the chat was processed. */
  processedAt: number;
}

export interface SharingVerdict {
  readonly updates: number;
  readonly kills: number;
  readonly lost: number;
  /** The number of updates that a poller got before an earlier update of the same chat was processed. */
  readonly early: number;
  readonly again: number;
  readonly pollers: number;
  /**
   * The longest time from sending to processing. This time grows if people send updates faster than the pollers process
   * them.
   */
  readonly longestMs: number;
  /**
   * The longest pause of a chat. During a pause, the chat has unprocessed updates, and no poller processes any of them.
   */
  readonly longestPauseMs: number;
  /** The longest pause of a chat that ended within 10 s after a kill. */
  readonly longestPauseAfterKillMs: number;
}

const chatsPerPoller = 20;

/** A process of the bot. When the process is killed, it loses its offset and the answers in flight. */
class Poller {
  readonly #ended = new AbortController();
  readonly #url: (round: number, method: string) => string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #process: (update: Update) => void;
  readonly finished: Promise<void>;
  #offset = 0;
  /** If true, the process ends after it has processed its next update, before it confirms this update. */
  #endsUnconfirmed = false;
  /** Resolves when the process runs again after a stop. */
  #running: Promise<unknown> = Promise.resolve();
  processed = 0;

  constructor(
    url: (round: number, method: string) => string,
    name: string,
    process: (update: Update) => void,
    streams: boolean,
  ) {
    this.#url = url;
    this.#headers = name === '' ? {} : { 'X-Service-Consumer': name };
    this.#process = process;
    this.finished = this.#run(streams);
  }

  async #run(streams: boolean) {
    const { signal } = this.#ended;
    for (let round = 0; !signal.aborted; round++) {
      try {
        await (streams ? this.#stream(round) : this.#poll(round));
      } catch {
        if (!signal.aborted) await sleep(20);
      }
    }
  }

  async #take(update: Update): Promise<void> {
    await this.#running;
    this.#ended.signal.throwIfAborted();
    this.#process(update);
    this.processed++;
    if (this.#endsUnconfirmed) this.#ended.abort();
    this.#ended.signal.throwIfAborted();
    this.#offset = update.update_id + 1;
    // Pauses now and then, so that a kill can come between two updates of an answer.
    if (this.processed % 10 === 0) await sleep(1, undefined, { signal: this.#ended.signal });
  }

  async #poll(round: number): Promise<void> {
    const { signal } = this.#ended;
    await this.#running;
    const body = JSON.stringify({ offset: this.#offset, timeout: 2 });
    const headers = { ...this.#headers, 'Content-Type': 'application/json' };
    const answer = await fetch(this.#url(round, 'getUpdates'), { method: 'POST', headers, body, signal });
    const { result } = (await answer.json()) as { readonly result?: readonly Update[] };
    if (result === undefined) await sleep(20, undefined, { signal });
    for (const update of result ?? []) await this.#take(update);
  }

  /**
   * Reads a stream until its connection ends. The next connection resumes after the last update. Confirms updates on
   * the other front.
   */
  async #stream(round: number): Promise<void> {
    const { signal } = this.#ended;
    const headers = { ...this.#headers, 'Last-Event-ID': `${this.#offset - 1}` };
    const answer = await fetch(this.#url(round, 'streamUpdates'), { headers, signal });
    if (answer.body === null || !answer.ok) throw new Error(`answered ${answer.status}`);
    let text = '';
    for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
      text += part;
      const blocks = text.split('\n\n');
      text = blocks.pop() as string;
      for (const block of blocks) {
        const [, data] = /^event: update\ndata: (.*)$/m.exec(block) ?? [];
        if (data !== undefined) await this.#take(JSON.parse(data) as Update);
      }
      await this.#confirm(round + 1);
    }
  }

  /** Ignores a lost confirmation, because the next confirmation covers the same updates too. */
  async #confirm(round: number): Promise<void> {
    const { signal } = this.#ended;
    await this.#running;
    const url = `${this.#url(round, 'confirmUpdates')}?offset=${this.#offset}`;
    const answer = await fetch(url, { headers: this.#headers, signal }).catch(() => undefined);
    await answer?.arrayBuffer();
  }

  /** Stops the process for `ms`, like SIGSTOP and a later SIGCONT. */
  async stop(ms: number): Promise<void> {
    this.#running = sleep(ms);
    await this.#running;
  }

  kill(): Promise<void> {
    this.#ended.abort();
    return this.finished;
  }

  /**
   * Kills the process after its next update and before the confirmation, so that another poller must get this update
   * again.
   */
  killUnconfirmed(): Promise<void> {
    this.#endsUnconfirmed = true;
    return this.finished;
  }
}

interface Update {
  readonly update_id: number;
  readonly message?: { readonly text?: string; readonly chat: { readonly id: number } };
}

class Sharing {
  readonly #service: Service;
  readonly #bot: TestBot;
  readonly #chats: ReadonlyMap<number, Chat>;
  #early = 0;
  #again = 0;
  #processed = 0;
  #longestMs = 0;
  #longestPauseMs = 0;
  #longestPauseAfterKillMs = 0;
  #killedAt = Number.NEGATIVE_INFINITY;

  constructor(service: Service, bot: TestBot, users: readonly TestUser[]) {
    this.#service = service;
    this.#bot = bot;
    this.#chats = new Map(users.map((user) => [user.id, { user, sent: 0, next: 0, processedAt: 0 }]));
  }

  start(name: string, shift: number, streams: boolean): Poller {
    const url = (round: number, method: string) => {
      const { fronts } = this.#service;
      return `${fronts[(round + shift) % fronts.length]?.url}/bot${this.#bot.token}/${method}`;
    };
    return new Poller(url, name, (update) => this.#process(update), streams);
  }

  #process({ message }: Update): void {
    const chat = message && this.#chats.get(message.chat.id);
    const [number, sentAt] = (message?.text ?? '').split(' ').map(Number) as [number, number | undefined];
    if (chat === undefined || sentAt === undefined) return;
    if (number > chat.next) this.#early++;
    if (number < chat.next) this.#again++;
    if (number !== chat.next) return;
    chat.next++;
    this.#processed++;
    const now = performance.now();
    const pauseMs = now - Math.max(sentAt, chat.processedAt);
    chat.processedAt = now;
    this.#longestMs = Math.max(this.#longestMs, now - sentAt);
    this.#longestPauseMs = Math.max(this.#longestPauseMs, pauseMs);
    if (now - this.#killedAt < 10_000)
      this.#longestPauseAfterKillMs = Math.max(this.#longestPauseAfterKillMs, pauseMs);
  }

  /**
   * Sends at least `updates` updates, and continues until `ended`. Repeats each call until it is acknowledged. Each
   * person has at most `ahead` unprocessed updates.
   */
  async load(updates: number, ahead: number, ended: AbortSignal): Promise<void> {
    let left = updates;
    const send = async (chat: Chat, text: string, front: number) => {
      const path = `/api/chats/${this.#bot.id}/messages`;
      const headers = {
        'Idempotency-Key': `${chat.user.id}.${chat.sent}`,
        'Content-Type': 'application/json',
      };
      const url = `${this.#service.fronts[front % this.#service.fronts.length]?.url}${path}`;
      const authorization = { Authorization: `Bearer ${chat.user.token}` };
      const body = JSON.stringify({ text });
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, ...authorization },
        body,
      }).catch(() => undefined);
      await answer?.arrayBuffer();
      return answer?.status === 200;
    };
    await Promise.all(
      [...this.#chats.values()].map(async (chat) => {
        while (left-- > 0 || !ended.aborted) {
          while (chat.sent - chat.next >= ahead) await sleep(20);
          const text = `${chat.sent} ${performance.now()}`;
          for (let tries = 0; !(await send(chat, text, tries)); tries++) await sleep(20);
          chat.sent++;
        }
      }),
    );
  }

  killed(): void {
    this.#killedAt = performance.now();
  }

  get processed(): number {
    return this.#processed;
  }

  get missing(): number {
    return [...this.#chats.values()].reduce((sum, { sent, next }) => sum + sent - next, 0);
  }

  verdict(kills: number, pollers: number): SharingVerdict {
    return {
      ...{
        updates: this.#processed,
        kills,
        lost: this.missing,
        early: this.#early,
        again: this.#again,
        pollers,
      },
      longestMs: Math.round(this.#longestMs),
      longestPauseMs: Math.round(this.#longestPauseMs),
      longestPauseAfterKillMs: Math.round(this.#longestPauseAfterKillMs),
    };
  }
}

/** Kills pollers in turn while the load runs. Returns the indexes of the pollers that have processed updates. */
async function killPollers(
  sharing: Sharing,
  pollers: Poller[],
  start: (name: string, victim: number) => Poller,
  { kills, updates, gapMs }: Amounts,
): Promise<Set<number>> {
  const worked = new Set<number>();
  for (let n = 0; n < kills; n++) {
    const target = ((n + 1) * updates) / (kills + 1);
    const after = performance.now() + gapMs;
    while (sharing.processed < target || performance.now() < after) await sleep(20);
    const victim = n % pollers.length;
    // Half of the kills come at a random moment. The other kills come between an update and its confirmation.
    await (n % 2 === 0 ? pollers[victim]?.killUnconfirmed() : pollers[victim]?.kill());
    sharing.killed();
    for (const [i, { processed }] of pollers.entries()) if (processed > 0) worked.add(i);
    // Half of the killed pollers restart immediately under the same name, and the other half restart later under a new
    // name.
    if (n % 2 === 1) await sleep(1_000);
    pollers[victim] = start(n % 2 === 0 ? `worker-${victim}` : `worker-${victim}.${n}`, victim);
  }
  return worked;
}

/** Creates a bot and people who may write to it, and confirms the updates that this causes. */
async function createSharing(service: Service, people: number): Promise<Sharing> {
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'sharing');
  const users: TestUser[] = [];
  // Creates ten people at a time. Otherwise calls would wait too long for connections to Postgres and get 503.
  while (users.length < people)
    users.push(...(await Promise.all(Array.from({ length: 10 }, () => service.newUser('person')))));
  for (const user of users) await service.openChat(user, bot);
  await resultOf(service.bot(bot, 'getUpdates', { offset: -1 }));
  const [last] = await resultOf(service.bot(bot, 'getUpdates', {}));
  await resultOf(service.bot(bot, 'getUpdates', { offset: last.update_id + 1 }));
  return new Sharing(service, bot, users);
}

/**
 * Runs the load, the kills and the other faults, and waits until all updates were processed or `settleMs` have passed.
 */
export async function share(service: Service, amounts: Amounts, settleMs: number): Promise<SharingVerdict> {
  const { pollers: count, kills, updates, ahead = 500, streams, faults } = amounts;
  const sharing = await createSharing(service, count * chatsPerPoller);
  const isStream = (i: number) => streams !== undefined && (streams !== 'half' || i % 2 === 0);
  const start = (name: string, i: number) => sharing.start(streams === 'alone' ? '' : name, i, isStream(i));
  const pollers = Array.from({ length: count }, (_, i) => start(`worker-${i}`, i));
  const ended = new AbortController();
  const loading = sharing.load(updates, ahead, ended.signal);
  const killing = killPollers(sharing, pollers, start, amounts);
  const faulting = faults?.({
    async processed(more) {
      const target = sharing.processed + more;
      while (sharing.processed < target) await sleep(20);
    },
    async stopPollers(ms) {
      await Promise.all(pollers.filter((_, i) => i % 2 === 0).map((poller) => poller.stop(ms)));
    },
  });
  const [worked] = await Promise.all([killing, faulting]);
  ended.abort();
  await loading;
  const end = performance.now() + settleMs;
  while (sharing.missing > 0 && performance.now() < end) await sleep(50);
  for (const [i, { processed }] of pollers.entries()) if (processed > 0) worked.add(i);
  await Promise.all(pollers.map((poller) => poller.kill()));
  return sharing.verdict(kills, worked.size);
}
