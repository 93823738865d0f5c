/** Tests the search of messages over HTTP: the results, their order, the access rights and the bounds. */
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type Content, messageKinds, packMessage } from '../../src/store/core/codec.js';
import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let client: pg.Client;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;
let group: number;

onSharedService(async (running) => {
  service = running;
  client = new pg.Client(service.databaseUrl);
  await client.connect();
  [ann, ben] = await Promise.all([service.newUser('ann'), service.newUser('ben')]);
  bot = await service.newBot(ann, 'seeker');
  group = await service.newGroup(ann, 'Search', [bot, ben]);
});
afterAll(() => client?.end());

interface Found {
  readonly message_id: number;
  readonly chat: { readonly id: number };
  readonly text?: string;
}

const ask = (who: TestUser, path: string, params: Readonly<Record<string, unknown>>): Promise<Answer> =>
  service.app(
    who,
    'GET',
    `${path}?${new URLSearchParams(Object.entries(params).map(([name, value]) => [name, `${value}`] as [string, string]))}`,
  );
const inChat = (who: TestUser, query: string, params = {}, chat = group) =>
  ask(who, `/api/chats/${chat}/search`, { query, ...params });
const everywhere = (who: TestUser, query: string, params = {}) =>
  ask(who, '/api/search/messages', { query, ...params });
const idsOf = async (answer: Promise<Answer>): Promise<number[]> =>
  (await resultOf(answer)).items.map(({ message_id }: Found) => message_id);

const say = async (text: string, chat = group, who = ann): Promise<number> =>
  (await resultOf(service.app(who, 'POST', `/api/chats/${chat}/messages`, { text }))).message_id;

/**
 * Waits until a message with this text is in Postgres. The search for the UTF-8 bytes works because a stored record
 * contains its text as UTF-8.
 */
const written = (chat: number, text: string) =>
  expect
    .poll(async () => {
      const query = 'select from messages where chat_id = $1 and position($2::bytea in record) > 0';
      return (await client.query(query, [chat, Buffer.from(text)])).rowCount;
    })
    .toBeGreaterThan(0);

async function refusal(answer: Promise<Answer>) {
  const { status, body } = await answer;
  return [status, body.description];
}

test('a search of a chat returns the messages that contain all words, newest first', async () => {
  const first = await say('Zebra crossing ahead');
  await say('a zebra alone');
  const last = await say('CROSSING of zebras');
  await written(group, 'CROSSING of zebras');
  expect(await idsOf(inChat(ben, 'zebra crossing'))).toEqual([last, first]);
  expect(await idsOf(inChat(ben, 'ZEBRA of'))).toEqual([last]);
  expect(await idsOf(inChat(ben, 'zebra giraffe'))).toEqual([]);
  const { items } = await resultOf(inChat(ben, 'crossing of'));
  expect(items[0]).toMatchObject({ message_id: last, chat: { id: group }, text: 'CROSSING of zebras' });
});

test('a search covers texts, captions and file names, and no other parts of a message', async () => {
  const sent = await resultOf(
    service.bot(bot, 'sendDocument', {
      ...{ chat_id: group, document: 'https://media.example/walrus_report.pdf', caption: 'The Quarter' },
      reply_markup: { inline_keyboard: [[{ text: 'platypus', callback_data: 'platypus' }]] },
    }),
  );
  await written(group, 'The Quarter');
  expect(await idsOf(inChat(ann, 'quarter'))).toEqual([sent.message_id]);
  for (const query of ['platypus', 'media.example', 'document'])
    expect(await idsOf(inChat(ann, query))).toEqual([]);
});

test('a search finds neither deleted messages nor texts from before an edit, even before Postgres has stored the change', async () => {
  const gone = await say('okapi one');
  const changed = await say('okapi two');
  await written(group, 'okapi two');
  expect(await idsOf(inChat(ben, 'okapi'))).toEqual([changed, gone]);
  const path = `/api/chats/${group}/messages`;
  await resultOf(service.app(ann, 'DELETE', `${path}/${gone}`));
  await resultOf(service.app(ann, 'PATCH', `${path}/${changed}`, { text: 'tapir two' }));
  expect(await idsOf(inChat(ben, 'okapi'))).toEqual([]);
  expect(await idsOf(everywhere(ben, 'okapi'))).toEqual([]);
  await expect.poll(() => idsOf(inChat(ben, 'tapir'))).toEqual([changed]);
});

test('only people who may read a chat can find the messages of the chat', async () => {
  const eve = await service.newUser('eve');
  const secret = await say('narwhal plans');
  await written(group, 'narwhal plans');
  expect(await idsOf(everywhere(ben, 'narwhal'))).toEqual([secret]);
  expect(await idsOf(everywhere(eve, 'narwhal'))).toEqual([]);
  expect(await refusal(inChat(eve, 'narwhal'))).toEqual([403, 'Forbidden: user is not a member of the chat']);
  expect((await inChat(eve, 'narwhal', {}, -9_999_999)).status).toBe(404);
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${eve.id}`, { status: 'member' }));
  expect(await idsOf(everywhere(eve, 'narwhal'))).toEqual([secret]);
  await resultOf(service.app(eve, 'POST', `/api/chats/${group}/leave`));
  expect(await idsOf(everywhere(eve, 'narwhal'))).toEqual([]);
});

test('a search finds no messages from direct chats of other people', async () => {
  await Promise.all([ann, ben].map((person) => service.openChat(person, bot)));
  const mine = await say('ibex of ann', bot.id, ann);
  await say('ibex of ben', bot.id, ben);
  await written(bot.id, 'ibex of ann');
  await written(bot.id, 'ibex of ben');
  const { items } = await resultOf(everywhere(ann, 'ibex'));
  expect(items).toMatchObject([{ message_id: mine, text: 'ibex of ann', chat: { id: bot.id } }]);
  expect(await idsOf(inChat(ann, 'ibex', {}, bot.id))).toEqual([mine]);
});

test('a search of all chats shows up to three messages of each chat, in the order of the chat list', async () => {
  const person = await service.newUser('collector');
  const other = await service.newGroup(person, 'Other', [ben]);
  const busy = await service.newGroup(person, 'Busy', [ben]);
  const single = await say('quokka in other', other, person);
  const many: number[] = [];
  for (let n = 1; n <= 5; n++) many.unshift(await say(`quokka ${n}`, busy, person));
  await written(other, 'quokka in other');
  await written(busy, 'quokka 5');
  await expect.poll(() => idsOf(inChat(person, 'quokka', {}, busy))).toEqual(many);
  const { items, next_cursor } = await resultOf(everywhere(person, 'quokka'));
  const found = (items as Found[]).map(({ chat, message_id }) => [chat.id, message_id]);
  const newest = many.slice(0, 3).map((id) => [busy, id]);
  // Chats whose newest messages were sent in the same second are ordered by id.
  const order = busy > other ? [...newest, [other, single]] : [[other, single], ...newest];
  expect([order, [...newest, [other, single]]]).toContainEqual(found);
  expect(next_cursor).toBeUndefined();
});

test('a search returns the same messages, whatever the page size', async () => {
  const person = await service.newUser('pager');
  const chats: number[] = [];
  for (let n = 0; n < 4; n++) {
    const chat = await service.newGroup(person, `Pages ${n}`, [ben]);
    for (let k = 0; k < 3; k++) await say(`axolotl ${k}`, chat, person);
    await written(chat, 'axolotl 2');
    chats.push(chat);
  }
  const all = async (path: string, limit: number) => {
    const seen: string[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 20; pages++) {
      const params = { query: 'axolotl', limit, ...(cursor === undefined ? {} : { cursor }) };
      const { items, next_cursor } = await resultOf(ask(person, path, params));
      expect(items.length).toBeLessThanOrEqual(limit);
      seen.push(...items.map(({ chat, message_id }: Found) => `${chat.id}:${message_id}`));
      if (next_cursor === undefined) return seen;
      cursor = next_cursor;
    }
    throw new Error('the pages do not end');
  };
  const [chat] = chats as [number];
  const own = await all(`/api/chats/${chat}/search`, 100);
  expect(own).toHaveLength(3);
  for (const limit of [1, 2, 3]) expect(await all(`/api/chats/${chat}/search`, limit)).toEqual(own);
  const everywhere = await all('/api/search/messages', 100);
  expect(everywhere).toHaveLength(12);
  expect(new Set(everywhere).size).toBe(12);
  // Each chat has three messages. If a page with fewer than 100 messages ended in the middle of a chat, the search
  // would omit the other messages of the chat. The page sizes are therefore multiples of three.
  for (const limit of [3, 6]) expect(await all('/api/search/messages', limit)).toEqual(everywhere);
});

/** Stores messages in Postgres as the flusher does, oldest first. */
async function fill(chat: number, from: number, contents: readonly Content[]): Promise<void> {
  const records = contents.map((content) =>
    packMessage({
      ...{ version: 1, date: 1_700_000_000, editedAt: 0, sender: ann.id, kind: messageKinds.text, flags: 0 },
      ...{ content, markup: null, origin: { from: { id: ann.id, n: 'Ann' } }, post: 0 },
    }),
  );
  await client.query(
    `insert into messages (chat_id, user_id, message_id, version, day, record)
     select $1, 0, $2 + n, 1, '2023-11-14', record from unnest($3::bytea[]) with ordinality as r (record, n)`,
    [chat, from, records],
  );
  await client.query(
    `insert into chat_sequences (chat_id, user_id, last_message_id, version, incarnation) values ($1, 0, $2, 1, 0)
     on conflict (chat_id, user_id) do update set last_message_id = excluded.last_message_id`,
    [chat, from + contents.length],
  );
}

/**
 * Loads pages until a page has messages. Returns the ids of these messages, and the number of empty pages before this
 * page.
 */
async function firstFound(path: string, query: string) {
  let cursor: string | undefined;
  for (let empty = 0; ; empty++) {
    const params = { query, ...(cursor === undefined ? {} : { cursor }) };
    const { items, next_cursor } = await resultOf(ask(ann, path, params));
    const ids = items.map(({ message_id }: Found) => message_id);
    if (ids.length > 0 || next_cursor === undefined) return { ids, empty };
    cursor = next_cursor;
  }
}

test('a search of a long chat reads a bounded number of rows, and its cursor continues after these rows', async () => {
  const chat = await service.newGroup(ann, 'Long', [ben]);
  const rest = Array.from({ length: limits.search_rows_max }, (_, n) => ({ text: `filler ${n}` }));
  await fill(chat, 1_000, [{ text: 'oldest wombat' }, ...rest]);
  const { ids, empty } = await firstFound(`/api/chats/${chat}/search`, 'wombat');
  expect(ids).toEqual([1_001]);
  expect(empty).toBeGreaterThan(0);
  // A search of all chats reads the newest rows of each chat.
  expect(await firstFound('/api/search/messages', 'wombat')).toMatchObject({ ids: [] });
  const newest = `${limits.search_rows_max - 1}`;
  expect(await firstFound('/api/search/messages', newest)).toMatchObject({
    ids: [1_001 + limits.search_rows_max],
  });
});

test('a search skips messages that contain the word only outside the text, for instance in a button', async () => {
  const person = await service.newUser('skipper');
  const chat = await service.newGroup(person, 'Skips', [bot]);
  const wanted = await say('gecko here', chat, person);
  for (let n = 0; n < 25; n++)
    await resultOf(
      service.bot(bot, 'sendMessage', {
        ...{ chat_id: chat, text: `other ${n}` },
        reply_markup: { inline_keyboard: [[{ text: 'gecko', callback_data: 'x' }]] },
      }),
    );
  await written(chat, 'other 24');
  const pages: number[][] = [];
  for (let cursor: string | undefined; pages.length < 5; ) {
    const { items, next_cursor } = await resultOf(
      everywhere(person, 'gecko', cursor === undefined ? {} : { cursor }),
    );
    pages.push(items.map(({ message_id }: Found) => message_id));
    if (next_cursor === undefined) break;
    cursor = next_cursor;
  }
  expect(pages).toEqual([[], [wanted]]);
  expect(await idsOf(inChat(person, 'gecko', {}, chat))).toEqual([wanted]);
});

test('a search result shows a placeholder instead of a token, and a search for the token finds nothing', async () => {
  const own = await service.newBot(ann, 'tokened');
  const chat = await service.newGroup(ann, 'Tokens');
  const text = 'urchin: your token';
  await fill(chat, 1_000, [{ text, entities: [{ type: 'bot_token', offset: 8, length: 10, bot: own.id }] }]);
  for (const search of [inChat(ann, 'urchin', {}, chat), everywhere(ann, 'urchin')])
    expect((await resultOf(search)).items).toMatchObject([{ message_id: 1_001, text }]);
  expect(await idsOf(inChat(ann, own.token.slice(-12), {}, chat))).toEqual([]);
});

test('queries and cursors outside their bounds are refused', async () => {
  const { search_words_max, search_query_bytes_max } = limits;
  const bounds = `parameter "query" must be 1 to ${search_words_max} words of at most ${search_query_bytes_max} bytes`;
  const words = Array.from({ length: search_words_max + 1 }, (_, n) => `w${n}`).join(' ');
  const long = 'é'.repeat(search_query_bytes_max / 2);
  for (const search of [inChat, everywhere]) {
    for (const query of ['', ' \n', words, `${long}é`])
      expect(await refusal(search(ann, query))).toEqual([400, `Bad Request: ${bounds}`]);
    expect(await idsOf(search(ann, long))).toEqual([]);
    for (const cursor of ['x', '1_2', '-1'])
      expect(await refusal(search(ann, 'x', { cursor }))).toEqual([
        400,
        'Bad Request: parameter "cursor" must be a cursor of an earlier answer',
      ]);
    expect((await search(ann, 'x', { limit: 'x' })).status).toBe(400);
  }
  expect(await refusal(ask(ann, '/api/search/messages', {}))).toEqual([
    400,
    'Bad Request: parameter "query" is required',
  ]);
});

test('a person who starts too many simultaneous searches is refused, and other people can still search', async () => {
  const keen = await service.newUser('keen');
  const chat = await service.newGroup(keen, 'Keen');
  const blocker = new pg.Client(service.databaseUrl);
  await blocker.connect();
  try {
    // Locks the table, so that searches wait.
    await blocker.query('begin; lock table messages in access exclusive mode');
    const most = 1 + limits.searches_per_person_waiting_max;
    const asked = Array.from({ length: most + 1 }, () => inChat(keen, 'x', {}, chat));
    const refused = await Promise.race(
      asked.map(async (answer) => {
        const { status } = await answer;
        return status === 429 ? status : new Promise<number>(() => {});
      }),
    );
    expect(refused).toBe(429);
    const other = inChat(ann, 'zebra');
    await blocker.query('rollback');
    expect((await other).status).toBe(200);
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses).toContain(200);
  } finally {
    await blocker.end();
  }
});

test('a search is cancelled if Postgres takes too long', async () => {
  const blocker = new pg.Client(service.databaseUrl);
  await blocker.connect();
  try {
    await blocker.query('begin; lock table messages in access exclusive mode');
    const { status, body } = await inChat(ben, 'zebra');
    expect([status, body.parameters]).toEqual([503, { retry_after: 1 }]);
  } finally {
    await blocker.end();
  }
  expect((await inChat(ben, 'zebra')).status).toBe(200);
});
