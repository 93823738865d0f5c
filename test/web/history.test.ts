import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

interface History {
  readonly messages: ReadonlyArray<{ readonly message_id: number }>;
  readonly first: number;
  readonly last: number;
  readonly atStart: boolean;
  readonly atEnd: boolean;
  readonly failed: string;
  loadNewest(): Promise<void>;
  loadOlder(): Promise<void>;
  loadNewer(): Promise<void>;
  show(id: number): Promise<boolean>;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const client = '../../src/web/client';
const { History }: { History: new (chat: number) => History } = await import(`${client}/model/history.ts`);
const { token }: { token: { set(value: string): void } } = await import(`${client}/session.ts`);

const count = 130;
/** The group begins with two service messages: the group was created, and the bot was added. */
const last = count + 2;
let service: Service;
let ann: TestUser;
let bot: TestBot;
let group: number;

onSharedService(async (running) => {
  service = running;
  ann = await service.newUser('ann');
  bot = await service.newBot(ann, 'writer');
  group = await service.newGroup(ann, 'Large', [bot]);
  for (let n = 1; n <= count; n++)
    await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, text: `${n} ${'🐦'.repeat(3_000)}` }));
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', (path: string, init?: RequestInit) => fetch(service.fronts[0].url + path, init));
});
beforeEach(() => token.set(ann.token));
afterAll(async () => {
  vi.unstubAllGlobals();
});

const idsOf = ({ messages }: History) => messages.map(({ message_id }) => message_id);
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test('the history of a chat is loaded from the newest message back to the first', async () => {
  const history = new History(group);
  await history.loadNewest();
  expect([history.last, history.atEnd, history.failed]).toEqual([last, true, '']);
  for (let n = 0; n < count && !history.atStart; n++) {
    await history.loadOlder();
    expect(idsOf(history)).toEqual(range(history.first, last));
  }
  expect(idsOf(history)).toEqual(range(1, last));
});

test('the history of a chat is loaded from a message in the middle up to the newest', async () => {
  const history = new History(group);
  expect(await history.show(40)).toBe(true);
  expect(idsOf(history)).toEqual(range(history.first, history.last));
  expect(history.first).toBeLessThanOrEqual(40);
  for (let n = 0; n < count && !history.atEnd; n++) {
    await history.loadNewer();
    expect(idsOf(history)).toEqual(range(history.first, history.last));
  }
  expect(history.last).toBe(last);
});
