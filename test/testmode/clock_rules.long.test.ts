/** Tests that limits, expiries and retention follow the movable clock of a test server. */
import { expect, test } from 'vitest';
import type { Json, TestServer, World } from '../../src/testing/client.js';
import { call, onOwnTestServer, webhookOf } from './server.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

let server: TestServer;
onOwnTestServer(
  // The rate limits refill so slowly that real time allows no further call during a test.
  {
    RATE_PER_BOT: '60/86400',
    RATE_PER_OWNER: '120/86400',
    RATE_PER_CHAT: '15/7200',
    RATE_PER_PERSON: '30/86400',
    UPLOAD_BYTES_PER_DAY: '1000000',
    MESSAGE_DAYS: '3',
  },
  (started) => {
    server = started;
  },
);

const bot = (world: World, method: string, params: object = {}) =>
  call(server.url, world.bot.token, method, params);

/** Makes a call of the application API. */
async function app(token: string, verb: string, path: string, body?: object) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const response = await fetch(server.url + path, {
    ...{ method: verb, headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

/** Returns a function that waits for the next update of a kind, and skips updates of other kinds. */
function updatesOf(world: World, kind: string) {
  let offset = 0;
  const pending: Json[] = [];
  return async () => {
    while (pending.length === 0) {
      const { body } = await bot(world, 'getUpdates', { offset, timeout: 50 });
      offset = body.result.at(-1).update_id + 1;
      pending.push(...body.result.flatMap((update: Json) => update[kind] ?? []));
    }
    return pending.shift();
  };
}

const send = (world: World, text = 'x') => bot(world, 'sendMessage', { chat_id: world.person().id, text });

interface Answer {
  readonly status: number;
  readonly body: Json;
}

interface Limited {
  readonly calls: number;
  readonly seconds: number;
  readonly use: (world: World) => Promise<Answer>;
}

test.each<[string, Limited]>([
  ['a bot', { calls: 60, seconds: 86_400, use: (world) => bot(world, 'getMe') }],
  ['a chat', { calls: 15, seconds: 7_200, use: (world) => send(world) }],
  ['a person', { calls: 30, seconds: 86_400, use: (world) => app(world.person().token, 'GET', '/api/me') }],
])('the rate limit of %s refills with the moved clock', async (_, { calls, seconds, use }) => {
  const world = await server.world();
  /** Makes calls until one is refused. */
  const allowed = async () => {
    for (let n = 0; ; n++) {
      const { status, body } = await use(world);
      if (status !== 200) return { n, status, retryS: body.parameters.retry_after };
    }
  };
  const { n, status, retryS } = await allowed();
  expect([n, status]).toEqual([calls, 429]);
  expect(retryS).toBeGreaterThan(0);
  expect(retryS).toBeLessThanOrEqual(seconds / calls);
  await server.advance((retryS - 60) * second);
  expect((await use(world)).status).toBe(429);
  await server.advance(minute);
  expect(await allowed()).toMatchObject({ n: 1, status: 429 });
  await server.advance(seconds * second);
  expect(await allowed()).toMatchObject({ n: calls, status: 429 });
});

test('when the clock is moved, the daily upload allowance of a person refills', async () => {
  const world = await server.world();
  const upload = () => world.person().sendFile('document', 'a.bin', 'x'.repeat(1_000_000));
  await upload();
  await expect(upload()).rejects.toMatchObject({ status: 429 });
  await server.advance(day);
  await upload();
});

test('a message can be edited again after a second, but not after 48 hours', async () => {
  const world = await server.world();
  const sent = await send(world, 'first');
  const { message_id } = sent.body.result;
  const edit = async (text: string) =>
    (await bot(world, 'editMessageText', { chat_id: world.person().id, message_id, text })).status;
  expect((await Promise.all(['a', 'b'].map(edit))).sort()).toEqual([200, 429]);
  await server.advance(second);
  expect((await Promise.all(['c', 'd'].map(edit))).sort()).toEqual([200, 429]);
  await server.advance(47 * hour);
  expect(await edit('e')).toBe(200);
  await server.advance(hour);
  expect(await edit('f')).toBe(400);
});

test('an inline query expires if the bot does not answer it', async () => {
  const world = await server.world({ inline: true });
  const nextQuery = updatesOf(world, 'inline_query');
  const asking = world.person().inlineQuery('tea');
  const { id } = await nextQuery();
  const refused = expect(asking).rejects.toThrow('BOT_RESPONSE_TIMEOUT');
  await server.advance(7 * second);
  await refused;
  await server.advance(23 * second);
  const { status, body } = await bot(world, 'answerInlineQuery', { inline_query_id: id, results: [] });
  expect([status, body.description]).toEqual([400, expect.stringContaining('query is too old')]);
});

test('an answer to an inline query is reused for its cache_time', async () => {
  const world = await server.world({ inline: true });
  const nextQuery = updatesOf(world, 'inline_query');
  const ask = () => world.person().inlineQuery('tea');
  const tea = { type: 'article', id: 'tea', title: 'Tea', input_message_content: { message_text: 'Tea!' } };
  const asking = ask();
  const { id } = await nextQuery();
  await bot(world, 'answerInlineQuery', { inline_query_id: id, results: [tea], cache_time: 7_200 });
  expect((await asking).results).toHaveLength(1);
  await server.advance(hour);
  expect((await ask()).results).toHaveLength(1);
  await server.advance(hour);
  const again = ask();
  const { id: other } = await nextQuery();
  expect(other).not.toBe(id);
  await bot(world, 'answerInlineQuery', { inline_query_id: other, results: [], cache_time: 0 });
  expect((await again).results).toEqual([]);
});

test('an invite link expires at its date', async () => {
  const world = await server.world({ people: ['ann', 'ben', 'cat'], group: true });
  const chat_id = world.chats.group;
  const expire_date = (await world.person().send('hi')).date + 3_600;
  const { result } = (await bot(world, 'createChatInviteLink', { chat_id, expire_date })).body;
  const join = async (name: string) => {
    const link = { link: result.invite_link };
    return (await app(world.person(name).token, 'POST', '/api/invite_links/join', link)).status;
  };
  await server.advance(50 * minute);
  expect(await join('ben')).toBe(200);
  await server.advance(10 * minute);
  expect(await join('cat')).toBe(400);
});

test('a restriction ends at its date', async () => {
  const world = await server.world({ people: ['ann', 'ben'], group: true });
  const ben = world.person('ben');
  await ben.join('group');
  const where = { chat_id: world.chats.group, user_id: ben.id };
  const until_date = (await ben.send('free', { chat: 'group' })).date + 3_600;
  await bot(world, 'restrictChatMember', { ...where, permissions: {}, until_date });
  const memberStatus = async () => (await bot(world, 'getChatMember', where)).body.result.status;
  await server.advance(50 * minute);
  expect(await memberStatus()).toBe('restricted');
  await expect(ben.send('now', { chat: 'group' })).rejects.toThrow('not enough rights');
  await server.advance(10 * minute);
  expect(await memberStatus()).toBe('member');
  await ben.send('later', { chat: 'group' });
});

test.each(['open_period', 'close_date'])('a poll with %s closes, and the bot is told', async (field) => {
  const world = await server.world({ group: true });
  const ann = world.person();
  const { date } = await ann.send('hi', { chat: 'group' });
  const ends = { [field]: field === 'open_period' ? 3_600 : date + 3_600 };
  const poll = { chat_id: world.chats.group, question: 'Tea?', options: ['yes', 'no'], ...ends };
  const { message_id } = (await bot(world, 'sendPoll', poll)).body.result;
  const nextPoll = updatesOf(world, 'poll');
  await server.advance(50 * minute);
  await ann.vote(message_id, [0], { chat: 'group' });
  expect(await nextPoll()).toMatchObject({ is_closed: false, total_voter_count: 1 });
  await server.advance(10 * minute);
  await expect(ann.vote(message_id, [], { chat: 'group' })).rejects.toMatchObject({ status: 400 });
  expect(await nextPoll()).toMatchObject({ is_closed: true, total_voter_count: 1 });
});

test('messages are removed after MESSAGE_DAYS', async () => {
  const world = await server.world();
  await world.person().send('hello');
  const history = async () =>
    (await app(world.person().token, 'GET', `/api/chats/${world.bot.id}/messages`)).body.result.items;
  await server.advance(2 * day);
  expect(await history()).toHaveLength(1);
  await server.advance(3 * day);
  // Tries again, because retention runs once an hour and leaves a locked table to the next run.
  const later = async () => {
    await server.advance(hour);
    return history();
  };
  await expect.poll(later, { interval: 1_000 }).toEqual([]);
});

test('after an answer with Retry-After, the delivery is retried when the test clock reaches the given time', async () => {
  const world = await server.world();
  const { texts } = await webhookOf(world);
  await world.fault('delivery', { status: 429, retry_after: 1_800 });
  await world.person().send('hello');
  await server.advance(29 * minute);
  expect(texts).toEqual([]);
  await server.advance(2 * minute);
  await expect.poll(() => texts).toEqual(['hello']);
});
