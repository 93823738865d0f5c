/** Starts the whole service on a Redis Cluster of three masters, with one bot and one group on each master. */
import { afterAll, beforeAll } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { type FreshCluster, freshCluster } from '../support/cluster.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';

export const keys = makeKeys(64);
export const masters = [0, 1, 2] as const;

export let cluster: FreshCluster;
export let service: Service;
export let owner: TestUser;
/** One bot on each master. The owner has a direct chat with each bot. */
export let bots: [TestBot, TestBot, TestBot];
export let groups: [number, number, number];

export const slotOfId = (id: number) => keys.partitions.slots[keys.partitions.of(id)] as number;

async function onEach<T>(make: () => Promise<T>, idOf: (made: T) => number): Promise<[T, T, T]> {
  const found: T[] = [];
  for (let tries = 0; tries < 200; tries++) {
    const made = await make();
    found[await cluster.ownerOf(slotOfId(idOf(made)))] ??= made;
    if (masters.every((i) => found[i] !== undefined)) return found as [T, T, T];
  }
  throw new Error('ids do not spread over the masters');
}

/** Starts the cluster and the service before the tests of a file. */
export function onCluster(): void {
  beforeAll(async () => {
    offsets.clear();
    cluster = await freshCluster();
    service = await startService({
      redis: cluster,
      combined: true,
      fronts: 2,
      extraEnv: { JOURNAL_HIGH_WATER: '100000' },
    });
    // Keeps the owner and all tokens on master 0, because the tests kill masters 1 and 2.
    do owner = await service.newUser('olga');
    while ((await cluster.ownerOf(slotOfId(owner.id))) !== 0);
    bots = await onEach(
      () => service.newBot(owner, 'b'),
      (bot) => bot.id,
    );
    for (const bot of bots) await service.openChat(owner, bot);
    groups = await onEach(() => service.newGroup(owner, 'g', bots), Number);
  });
  afterAll(async () => {
    await service?.stop();
  });
}

export const say = (bot: TestBot, text: string, front = 0): Promise<Answer> =>
  service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }, front);
export const sayInGroup = (group: number, text: string) =>
  service.app(owner, 'POST', `/api/chats/${group}/messages`, { text });

export interface Heard {
  readonly ids: number[];
  readonly texts: string[];
}
export const offsets = new Map<number, number>();

export async function poll(bot: TestBot, received: Heard): Promise<void> {
  const offset = offsets.get(bot.id) ?? 0;
  const answer = await service.bot(bot, 'getUpdates', { offset, timeout: 0 }, 1);
  if (answer.status === 503) return;
  for (const update of await resultOf(answer)) {
    received.ids.push(update.update_id);
    received.texts.push(update.message?.text ?? update.callback_query?.data);
    offsets.set(bot.id, update.update_id + 1);
  }
}

export async function history(bot: TestBot): Promise<{ texts: string[]; ids: number[] }> {
  const all: Array<{ text: string; message_id: number }> = [];
  for (let before: number | undefined; ; before = all.at(-1)?.message_id) {
    const query = before === undefined ? '?limit=100' : `?limit=100&before=${before}`;
    const page = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages${query}`));
    all.push(...page);
    if (page.length < 100) break;
  }
  all.reverse();
  return { texts: all.map(({ text }) => text), ids: all.map(({ message_id }) => message_id) };
}

export const once = (texts: readonly string[], text: string) => texts.filter((each) => each === text).length;
