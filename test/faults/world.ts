/** Makes people and bots send messages in direct chats and groups. Keeps a ledger of every answer and every update. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Ledger, type Seen, type Verdict } from '../support/ledger.js';
import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';

export async function eventually(what: string, holds: () => Promise<boolean> | boolean, msMax = 40_000) {
  const end = performance.now() + msMax;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${msMax} ms: ${what}`);
    await sleep(20);
  }
}

interface Lane {
  readonly chat: string;
  readonly sender: string;
  send(text: string, front: number): Promise<Answer>;
}

export interface LoadOptions {
  /** How many calls must be acknowledged, in total over all senders. */
  readonly count: number;
  /** Chooses the front for an attempt of a call. `tries` is the number of earlier attempts. */
  readonly front: (lane: number, tries: number) => number;
  readonly groupsOnly?: boolean;
  /**
   * How long in ms one call may take until it is acknowledged. The load fails if a call takes longer. Default 40,000.
   */
  readonly patienceMs?: number;
  /** How long each sender pauses between two calls, in ms. Default 0. */
  readonly restMs?: number;
  readonly signal?: AbortSignal;
  /** Called for each unsuccessful answer. The status is 0 for a lost connection. */
  readonly onRefusal?: (status: number, body: unknown) => void;
  readonly onAcknowledged?: (total: number, ms: number, chat: string) => void;
}

export interface World {
  readonly ledger: Ledger;
  readonly users: readonly TestUser[];
  readonly bots: readonly TestBot[];
  readonly groups: readonly number[];
  /** Each sender makes one call after another, and retries each call until it is acknowledged. */
  load(options: LoadOptions): Promise<void>;
  /**
   * Waits until every sender has got an acknowledgement. A sender's first calls may read from Postgres. Its later calls
   * find everything in Redis.
   */
  warmedUp(): Promise<void>;
  poll(frontOf: (round: number) => number): void;
  /**
   * Pushes every bot’s updates with these parameters of setWebhook, or of setWebhookRoute. The receivers call `hear`
   * for each update.
   */
  push(settings: (bot: TestBot) => object, method?: 'setWebhook' | 'setWebhookRoute'): Promise<void>;
  hear(bot: number, update: Answer['body']): void;
  /**
   * Waits until bots have received all messages of the history. Then waits a while for unexpected updates, and compares
   * the results with the ledger.
   */
  settled(msMax?: number): Promise<Verdict>;
  history(): Promise<Map<string, Seen[]>>;
  stop(): Promise<void>;
}

/**
 * The calls that create a world. A test that stops servers must give `databaseUrl`. With it, the world compares the
 * copies in Redis with Postgres, and waits until the copies are up to date.
 */
export type WorldCalls = Pick<Service, 'app' | 'bot' | 'newUser' | 'newBot' | 'openChat' | 'newGroup'> &
  Partial<Pick<Service, 'databaseUrl'>>;

/**
 * How long the final check waits for unexpected updates, in ms. This is longer than the interval of one second at which
 * outboxes are swept.
 */
const lingerMs = 1_500;

/**
 * Waits until the copies of all changed records in Redis are refreshed. Otherwise a late refresh might remove a copy
 * just before Postgres fails, and the next call that needs this copy would get 503.
 */
async function copiesRefreshed(databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await eventually('the copies are refreshed', async () => {
    const { rows } = await client.query('select 1 from control_outbox limit 1');
    return rows.length === 0;
  });
  await client.end();
}

/**
 * Creates three bots and six people. Each person has a direct chat with one of the bots. Also creates two groups, each
 * with all people and two bots.
 */
export async function createWorld(service: WorldCalls): Promise<World> {
  const owner = await service.newUser('owner');
  const users = await Promise.all(Array.from({ length: 6 }, () => service.newUser('person')));
  const bots = await Promise.all(Array.from({ length: 3 }, () => service.newBot(owner, 'fault')));
  const botOf = (i: number) => bots[i % bots.length] as TestBot;
  await Promise.all(users.map((user, i) => service.openChat(user, botOf(i))));
  const inGroup = [bots.slice(0, 2), bots.slice(1, 3)];
  const groups = await Promise.all(
    inGroup.map((members, i) => service.newGroup(owner, `group ${i}`, [...users, ...members])),
  );
  if (service.databaseUrl) await copiesRefreshed(service.databaseUrl);
  const ledger = new Ledger();
  const chatIdOf = (user: TestUser, bot: TestBot) => `${bot.id}.${user.id}`;

  const lanes: Lane[] = [
    ...users.map((user, i) => ({
      chat: chatIdOf(user, botOf(i)),
      sender: `person ${user.id}`,
      send: (text: string, front: number) =>
        service.app(user, 'POST', `/api/chats/${botOf(i).id}/messages`, { text }, front),
    })),
    ...users.map((user, i) => ({
      chat: chatIdOf(user, botOf(i)),
      sender: `bot ${botOf(i).id}`,
      send: (text: string, front: number) =>
        service.bot(botOf(i), 'sendMessage', { chat_id: user.id, text }, front),
    })),
    ...groups.flatMap((group, i) => [
      ...users.slice(0, 3).map((user) => ({
        chat: `${group}`,
        sender: `person ${user.id}`,
        send: (text: string, front: number) =>
          service.app(user, 'POST', `/api/chats/${group}/messages`, { text }, front),
      })),
      ...(inGroup[i] as TestBot[]).map((bot) => ({
        chat: `${group}`,
        sender: `bot ${bot.id}`,
        send: (text: string, front: number) =>
          service.bot(bot, 'sendMessage', { chat_id: group, text }, front),
      })),
    ]),
  ];

  const hears = (bot: number, chat: string, text: string): boolean => {
    const group = groups.indexOf(Number(chat));
    // Bots do not receive each other’s messages in groups.
    if (!text.startsWith('person')) return false;
    return group < 0 ? chat.startsWith(`${bot}.`) : inGroupOf(group, bot);
  };
  const inGroupOf = (group: number, bot: number) =>
    (inGroup[group] as TestBot[]).some(({ id }) => id === bot);

  async function sendUntilAcknowledged(lane: Lane, index: number, options: LoadOptions): Promise<void> {
    const began = performance.now();
    for (let tries = 0; !options.signal?.aborted; tries++) {
      const text = ledger.attempt(lane.chat, lane.sender);
      const sent = performance.now();
      const answer = await lane.send(text, options.front(index, tries)).catch(() => null);
      if (answer?.status === 200) {
        ledger.acknowledge(lane.chat, lane.sender, text, answer.body.result.message_id);
        options.onAcknowledged?.(ledger.acknowledged.length, performance.now() - sent, lane.chat);
        return;
      }
      options.onRefusal?.(answer?.status ?? 0, answer?.body);
      if (performance.now() - began > (options.patienceMs ?? 40_000))
        throw new Error(`no success for "${text}": ${answer?.status} ${JSON.stringify(answer?.body)}`);
      await sleep(5 + Math.random() * 20);
    }
  }

  async function load(options: LoadOptions): Promise<void> {
    let left = options.count;
    await Promise.all(
      lanes.map(async (lane, index) => {
        if (options.groupsOnly && lane.chat.includes('.')) return;
        while (left-- > 0 && !options.signal?.aborted) {
          await sendUntilAcknowledged(lane, index, options);
          if (options.restMs) await sleep(options.restMs);
        }
      }),
    );
  }

  function warmedUp(): Promise<void> {
    const answered = () => new Set(ledger.acknowledged.map(({ chat, sender }) => `${sender} in ${chat}`));
    return eventually('every sender got an answer', () => answered().size === lanes.length, 60_000);
  }

  let polling = false;
  let pushing = false;
  let pollers: Promise<void>[] = [];
  async function pollAs(bot: TestBot, frontOf: (round: number) => number): Promise<void> {
    let offset = 0;
    for (let round = 0; polling; round++) {
      const params = { offset, timeout: 1 };
      const answer = await service.bot(bot, 'getUpdates', params, frontOf(round)).catch(() => null);
      if (answer?.status !== 200) {
        await sleep(20);
        continue;
      }
      for (const update of answer.body.result) {
        offset = update.update_id + 1;
        hear(bot.id, update);
      }
    }
  }

  function hear(bot: number, { update_id: updateId, message }: Answer['body']): void {
    // Counts only messages with a text. Membership updates (after a join or a start) and service messages have no text.
    if (message?.text === undefined || message.text === '/start') return;
    const { id, type } = message.chat;
    const chat = type === 'private' ? `${bot}.${id}` : `${id}`;
    ledger.receive(bot, { chat, updateId, messageId: message.message_id, text: message.text });
  }

  async function stop(): Promise<void> {
    polling = false;
    await Promise.all(pollers);
    pollers = [];
  }

  async function pages(user: TestUser, chatId: number): Promise<Seen[]> {
    const all: Seen[] = [];
    for (let cursor = ''; ; ) {
      const path = `/api/chats/${chatId}/messages?limit=100${cursor}`;
      const { items, next_cursor } = await resultOf(service.app(user, 'GET', path));
      for (const { message_id, text } of items)
        if (text !== undefined && text !== '/start') all.push({ messageId: message_id, text });
      if (next_cursor === undefined) return all;
      cursor = `&cursor=${next_cursor}`;
    }
  }

  async function history(): Promise<Map<string, Seen[]>> {
    const found = new Map<string, Seen[]>();
    for (const [i, user] of users.entries())
      found.set(chatIdOf(user, botOf(i)), await pages(user, botOf(i).id));
    for (const group of groups) found.set(`${group}`, await pages(users[0] as TestUser, group));
    return found;
  }

  return {
    ledger,
    users,
    bots,
    groups,
    load,
    warmedUp,
    poll(frontOf) {
      polling = true;
      pollers = bots.map((bot) => pollAs(bot, frontOf));
    },
    async push(settings, method = 'setWebhook') {
      pushing = true;
      await Promise.all(bots.map((bot) => resultOf(service.bot(bot, method, { ...settings(bot) }))));
    },
    hear,
    async settled(msMax = 60_000) {
      const kept = await history();
      const heardAll = () =>
        bots.every(({ id }) => {
          const received = ledger.textsOf(id);
          return [...kept].every(([chat, list]) =>
            list.every(({ text }) => !hears(id, chat, text) || received.has(text)),
          );
        });
      // Does not fail at the time limit, because the result of the check counts the missing updates.
      if (polling || pushing) await eventually('all updates arrived', heardAll, msMax).catch(() => undefined);
      await sleep(lingerMs);
      await stop();
      const ids = bots.map(({ id }) => id);
      return ledger.check(await history(), ids, hears, pushing);
    },
    history,
    stop,
  };
}
