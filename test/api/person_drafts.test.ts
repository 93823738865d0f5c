/** Tests the texts that a person has written but not sent. All windows of the person share them. */
import fc from 'fast-check';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { openAnywhere } from '../support/cluster.js';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

interface Draft {
  readonly chat_id: number;
  readonly text: string;
  readonly version: number;
}

let service: Service;
let [ann, ben] = [] as unknown as [TestUser, TestUser];
let group: number;
const sources: EventSource[] = [];

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  group = await service.newGroup(ben, 'Drafts', [ann]);
});
afterAll(() => {
  for (const source of sources) source.cut();
});

const path = (chat: number) => `/api/me/drafts/${chat}`;
/** Stores a draft. If the person changes drafts too often and the call gets 429, repeats the call. */
async function put(text: string, chat = group, front = 0): Promise<number> {
  for (;;) {
    const answer = await service.app(ann, 'PUT', path(chat), { text }, front);
    if (answer.status !== 429) return (await resultOf(Promise.resolve(answer))).version;
    await new Promise((resolve) => setTimeout(resolve, limits.person_draft_change_ms));
  }
}
const list = (who = ann): Promise<Draft[]> => itemsOf(service.app(who, 'GET', '/api/me/drafts?limit=100'));
const refusal = async (...[who, verb, at, body]: Parameters<Service['app']>) => {
  const { status, body: answer } = await service.app(who, verb, at, body);
  return [status, answer.description];
};
/** Returns the key of a person's drafts in Redis. */
async function keyOf(who: TestUser): Promise<string | undefined> {
  const client = openAnywhere(service.redis);
  const [key] = await client.keys(`*:person_drafts:${who.id}`);
  client.disconnect();
  return key;
}

async function listen(who: TestUser, front: number): Promise<EventSource> {
  const source = await openEvents(service.fronts[front]?.url ?? '', who.token);
  sources.push(source);
  return source;
}
const seen = (source: EventSource) =>
  source.events.flatMap(({ event, data }) => (event === 'chat_draft' ? [data] : []));

test('every event stream of a person reports the changes of a draft in order, and streams of other people do not report them', async () => {
  const [first, second, other] = [await listen(ann, 0), await listen(ann, 1), await listen(ben, 1)];
  const texts = ['H', ' He\nllo "x" ', 'Привет 👋', ''];
  const expected: Draft[] = [];
  for (const [n, text] of texts.entries())
    expected.push({ chat_id: group, text, version: await put(text, group, n % 2) });
  // Storing the same text again is not a change.
  expect(await put('')).toBe(expected.at(-1)?.version);
  for (const source of [first, second]) await eventually(() => expect(seen(source)).toEqual(expected));
  const versions = expected.map(({ version }) => version);
  expect([...new Set(versions)].sort((a, b) => a - b)).toEqual(versions);
  await resultOf(service.app(ben, 'POST', `/api/chats/${group}/messages`, { text: 'last' }));
  await other.received(({ data }) => data.text === 'last');
  expect(seen(other)).toEqual([]);
  expect(await list(ben)).toEqual([]);
});

test('after random changes of drafts, the list contains the last text of each chat', async () => {
  const bot = await service.newBot(ann, 'drafted');
  await service.openChat(ann, bot);
  const chats = [group, bot.id, await service.newGroup(ann, 'More')];
  const change = fc.record({
    chat: fc.constantFrom(...chats),
    text: fc.oneof(
      fc.constant(''),
      fc.string({ unit: 'grapheme', maxLength: 40 }).filter((t) => !t.includes('\0')),
    ),
    front: fc.constantFrom(0, 1),
  });
  const last = new Map<number, string>();
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
      for (const { chat, text, front } of changes) {
        await put(text, chat, front);
        if (text !== '' || last.has(chat)) last.set(chat, text);
      }
      const listed = (await list()).map(({ chat_id, text }) => [chat_id, text]);
      expect(listed).toEqual([...last].sort(([a], [b]) => a - b));
    }),
    { numRuns: 6 },
  );
});

test('a page of drafts has at most 64 KiB, and the remaining drafts are on the next pages', async () => {
  const groups = [group, await service.newGroup(ann, 'Second'), await service.newGroup(ann, 'Third')];
  for (const id of groups) await put('\u0001'.repeat(limits.text_length_max), id);
  const pages: number[][] = [];
  for (let cursor = ''; ; ) {
    const { items, next_cursor } = await resultOf(service.app(ann, 'GET', `/api/me/drafts?${cursor}`));
    pages.push(items.map(({ chat_id }: Draft) => chat_id));
    if (next_cursor === undefined) break;
    cursor = `cursor=${next_cursor}`;
  }
  expect(pages.length).toBeGreaterThan(1);
  expect(pages.flat()).toEqual([...groups].sort((a, b) => a - b));
});

test('an invalid draft is refused, and the stored drafts stay the same', async () => {
  await put('Hello');
  const before = await list();
  const long = 'Bad Request: parameter "text" must be a text of up to 4096 characters';
  expect(await refusal(ann, 'PUT', path(group), { text: 'x'.repeat(limits.text_length_max + 1) })).toEqual([
    400,
    long,
  ]);
  expect(await refusal(ann, 'PUT', path(group), { text: 5 })).toEqual([400, long]);
  const [status, description] = await refusal(ann, 'PUT', path(group), {});
  expect([status, description]).toEqual([400, expect.stringContaining('"text"')]);
  expect(await list()).toEqual(before);
  const longest = '👋'.repeat(limits.text_length_max);
  await put(longest);
  expect((await list()).map(({ text }) => text)).toEqual([longest]);
});

test('only members of a chat can set a draft', async () => {
  const closed = await service.newGroup(ben, 'Closed');
  const bot = await service.newBot(ben, 'unopened');
  for (const verb of ['PUT', 'DELETE'])
    for (const [chat, refused] of [
      [closed, [403, 'Forbidden: user is not a member of the chat']],
      [bot.id, [404, 'Not Found: chat not found']],
      [-999_999, [404, 'Not Found: chat not found']],
    ] as const) {
      const body = verb === 'PUT' ? { text: 'x' } : undefined;
      expect(await refusal(ann, verb, path(chat), body)).toEqual(refused);
    }
  expect(await keyOf(ann)).toBeUndefined();
});

test('a person who changes drafts too often gets 429', async () => {
  const statuses: number[] = [];
  for (let n = 0; n <= 2 * limits.person_draft_changes_max && statuses.at(-1) !== 429; n++)
    statuses.push((await service.app(ann, 'PUT', path(group), { text: `${n}` })).status);
  expect(statuses.length).toBeGreaterThan(limits.person_draft_changes_max);
  expect(statuses.at(-1)).toBe(429);
});

test('the draft of a bot and the draft of the person do not affect each other', async () => {
  const bot = await service.newBot(ann, 'writer');
  await service.openChat(ann, bot);
  const shown = { chat_id: ann.id, draft_id: 7, text: 'By the bot' };
  await resultOf(service.bot(bot, 'sendMessageDraft', shown));
  await put('By the person', bot.id);
  const { draft } = await resultOf(service.app(ann, 'GET', `/api/chats/${bot.id}/draft`));
  expect(draft).toMatchObject({ text: 'By the bot' });
  await resultOf(service.app(ann, 'DELETE', path(bot.id)));
  expect(await resultOf(service.app(ann, 'GET', `/api/chats/${bot.id}/draft`))).toEqual({ draft });
  expect((await list()).map(({ text }) => text)).toEqual(['']);
});

test('when a person leaves a chat or is removed from a chat, the draft for this chat is removed', async () => {
  const other = await service.newGroup(ben, 'Other', [ann]);
  for (const chat of [group, other]) await put('Hello', chat);
  await resultOf(service.app(ann, 'POST', `/api/chats/${group}/leave`));
  await resultOf(service.app(ben, 'DELETE', `/api/chats/${other}/members/${ann.id}`));
  expect((await list()).map(({ text }) => text)).toEqual(['', '']);
});

test('drafts are exported, and are deleted with the account', async () => {
  await put('Mine');
  const answer = await fetch(`${service.fronts[0].url}/api/me/export`, {
    headers: { authorization: `Bearer ${ann.token}` },
  });
  const lines = (await answer.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual({ kind: 'draft', chat_id: group, text: 'Mine' });
  expect(await keyOf(ann)).toBeDefined();
  await resultOf(service.app(ann, 'DELETE', '/api/me', { confirm: true }));
  expect(await keyOf(ann)).toBeUndefined();
});
