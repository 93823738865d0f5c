import pg from 'pg';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { openAnywhere } from '../support/cluster.js';
import { createFront, type Front } from '../support/role_process.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
} from '../support/service.js';

// These limits refill over a day, so an exhausted limit stays exhausted even during a slow test.
const rates = { RATE_PER_BOT: '8/86400', RATE_PER_OWNER: '12/86400', RATE_PER_CHAT: '5/86400' };
const bounds = { ...rates, BOTS_PER_OWNER: '3' };
const perAddress = { RATE_PER_ADDRESS: '10/86400', TRUSTED_PROXIES: '127.0.0.1/32' };
/** The settings of a front that limits the calls of people but not the calls of bots. */
const perPerson = {
  RATE_PER_BOT: '0',
  RATE_PER_OWNER: '0',
  RATE_PER_PERSON: '5/86400',
  UPLOAD_BYTES_PER_DAY: String(64 * 1024),
};
let service: Service;
const more: Front[] = [];
let [counting, limited] = [] as unknown as [readonly Front[], Front];

async function startFront(env: Readonly<Record<string, string>>): Promise<Front> {
  const front = await createFront(env, {});
  more.push(front);
  await front.start();
  return front;
}

beforeAll(async () => {
  service = await startService({ combined: true, fronts: 2, frontEnv: bounds });
  const start = (own: object) => startFront({ ...service.env, ...own });
  counting = await Promise.all([start(perAddress), start(perAddress)]);
  limited = await start(perPerson);
});
afterAll(async () => {
  await Promise.all(more.map((front) => front.stop()));
  await service?.stop();
});

const many = (count: number, call: (front: number, n: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: count }, (_, n) => call(n % 2, n)));
const taken = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 200).length;

function expectWait(answer: Answer, seconds: number): void {
  const { retry_after } = answer.body.parameters;
  expect(answer.body).toEqual({
    ok: false,
    error_code: 429,
    description: `Too Many Requests: retry after ${retry_after}`,
    parameters: { retry_after },
  });
  expect([answer.status, answer.headers['retry-after']]).toEqual([429, String(retry_after)]);
  expect(retry_after).toBeGreaterThan(0);
  expect(retry_after).toBeLessThanOrEqual(seconds);
}

test('behaviour §14: the call limit of a bot covers its calls on all nodes, but not its polls', async () => {
  const owner = await service.newUser('olga');
  const [bot, other] = [await service.newBot(owner, 'noisy'), await service.newBot(owner, 'calm')];
  const answers = await many(20, (front) => service.bot(bot, 'getMe', {}, front));
  expect(taken(answers)).toBe(8);
  for (const answer of answers) if (answer.status !== 200) expectWait(answer, 86_400 / 8);
  for (const front of [0, 1]) {
    expectWait(await service.bot(bot, 'setMyName', { name: 'x' }, front), 86_400 / 8);
    expect((await service.bot(bot, 'getUpdates', {}, front)).status).toBe(200);
    expect((await service.bot(other, 'getMe', {}, front)).status).toBe(200);
  }
  expect((await service.bot(bot, 'nothing')).status).toBe(404);
  expect((await fetch(`${service.fronts[0].url}/file/bot${bot.token}/documents/x`)).status).toBe(429);
  expect((await itemsOf(service.app(owner, 'GET', '/api/me/bots')))[0].name).not.toBe('x');
});

test('behaviour §14: the poll limit of a bot is as high as its call limit, but never below ten polls per second', async () => {
  const owner = await service.newUser('poll');
  const [bot, other] = [await service.newBot(owner, 'hasty'), await service.newBot(owner, 'calm')];
  const began = performance.now();
  const answers = await many(400, (front) => service.bot(bot, 'getUpdates', {}, front));
  const seconds = (performance.now() - began) / 1_000;
  // If several polls run at the same time, only the newest poll gets 200. The other polls get 409, but also count
  // against the limit.
  const counted = answers.filter(({ status }) => status === 200 || status === 409).length;
  expect(counted).toBeGreaterThanOrEqual(100);
  expect(counted).toBeLessThanOrEqual(120 + 12 * seconds);
  for (const answer of answers) if (answer.status === 429) expectWait(answer, 1);
  expect((await service.bot(bot, 'getMe')).status).toBe(200);
  expect((await service.bot(other, 'getUpdates')).status).toBe(200);
});

test('behaviour §14: a call that changes settings of a bot counts as several calls', async () => {
  const bot = await service.newBot(await service.newUser('settings'), 'settings');
  expect((await service.bot(bot, 'setMyName', { name: 'x' })).status).toBe(200);
  expectWait(await service.bot(bot, 'getMe'), (86_400 / 8) * limits.settings_call_weight);
});

test('behaviour §14: a call that is repeated with its idempotency key counts against the limit again', async () => {
  const owner = await service.newUser('again');
  const bot = await service.newBot(owner, 'again');
  await service.openChat(owner, bot);
  const { url } = service.fronts[0];
  const call = async () => {
    const headers = { 'idempotency-key': 'one', 'content-type': 'application/json' };
    const body = JSON.stringify({ chat_id: owner.id, text: 'x' });
    const answer = await request(`${url}/bot${bot.token}/sendMessage`, { method: 'POST', headers, body });
    await answer.body.dump();
    return answer.statusCode;
  };
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) statuses.push(await call());
  expect(statuses).toEqual([...Array(8).fill(200), ...Array(4).fill(429)]);
});

test('behaviour §14: each person mentioned in a message counts as a call by the bot', async () => {
  const owner = await service.newUser('mention');
  const bot = await service.newBot(owner, 'mention');
  await service.openChat(owner, bot);
  const entities = Array.from({ length: 20 }, (_, offset) => ({
    ...{ type: 'text_mention', offset, length: 1 },
    user: { id: owner.id + offset, is_bot: false, first_name: 'x' },
  }));
  const sent = { chat_id: owner.id, text: 'x'.repeat(20), entities };
  expect((await service.bot(bot, 'sendMessage', sent)).status).toBe(200);
  expectWait(await service.bot(bot, 'getMe'), 86_400 * 2);
});

test('behaviour §14: the bots of one owner share a call limit', async () => {
  const [owner, other] = [await service.newUser('pia'), await service.newUser('rob')];
  const bots = [
    await service.newBot(owner, 'one'),
    await service.newBot(owner, 'two'),
    await service.newBot(owner, 'three'),
  ];
  const answers = await many(18, (front, n) =>
    service.bot(bots[n % 3] as { token: string }, 'getMe', {}, front),
  );
  expect(taken(answers)).toBe(12);
  for (const answer of answers) if (answer.status !== 200) expectWait(answer, 86_400 / 12);
  expect((await service.bot(await service.newBot(other, 'alone'), 'getMe')).status).toBe(200);
});

test('behaviour §14: all bots in a chat share one limit for changes of the chat', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const bots = [await service.newBot(ann, 'left'), await service.newBot(ben, 'right')];
  const chat_id = await service.newGroup(ann, 'Busy', bots);
  const send = (front: number, n: number) =>
    service.bot(
      bots[n % 4 < 2 ? 0 : 1] as { token: string },
      'sendMessage',
      { chat_id, text: `${n}` },
      front,
    );
  const answers = await many(10, send);
  expect(taken(answers)).toBe(5);
  for (const answer of answers) if (answer.status !== 200) expectWait(answer, 86_400 / 5);
  const kept = await itemsOf(service.app(ann, 'GET', `/api/chats/${chat_id}/messages`));
  expect(kept.filter(({ text }: { text?: string }) => text)).toHaveLength(5);
  // A call of getMe changes no chat, so it does not count. Each person in a chat has a separate limit, which is as high
  // as the common limit of all bots in the chat.
  expect((await service.bot(await service.newBot(ann, 'late'), 'getMe')).status).toBe(200);
  await resultOf(service.app(ann, 'PUT', `/api/chats/${chat_id}/members/${ben.id}`, { status: 'member' }));
  const path = `/api/chats/${chat_id}/messages`;
  const write = (who: typeof ann) => (front: number, n: number) =>
    service.app(who, 'POST', path, { text: `${who.username} ${n}` }, front);
  const own = await many(10, write(ann));
  // Ann may make five changes in this chat, and has made three: she added two bots and Ben.
  expect(taken(own)).toBe(2);
  for (const answer of own) if (answer.status !== 200) expectWait(answer, 86_400 / 5);
  expect(taken(await many(5, write(ben)))).toBe(5);
  const [last] = await itemsOf(service.app(ann, 'GET', path));
  for (const [verb, at, body] of [
    ['PATCH', `${path}/${last.message_id}`, { text: 'x' }],
    ['DELETE', `${path}/${last.message_id}`, undefined],
    ['POST', `/api/chats/${chat_id}/pin`, { message_id: last.message_id }],
    ['POST', `${path}/${last.message_id}/callback`, { data: 'x' }],
  ] as const)
    expectWait(await service.app(ben, verb, at, body, 1), 86_400 / 5);
  // A read mark does not count, because it changes nothing for other members.
  const read = { message_id: last.message_id };
  await resultOf(service.app(ben, 'POST', `/api/chats/${chat_id}/read`, read));
  const all = await itemsOf(service.app(ann, 'GET', path));
  expect(all.filter(({ text }: { text?: string }) => text)).toHaveLength(12);
  // The limit also applies to a person in a direct chat with a bot, and /start counts as a change.
  await service.openChat(ben, bots[0] as TestBot);
  const direct = await many(10, (front, n) =>
    service.app(ben, 'POST', `/api/chats/${bots[0]?.id}/messages`, { text: `${n}` }, front),
  );
  expect(taken(direct)).toBe(4);
  const start = `/api/bots/${bots[0]?.username}/start`;
  expectWait(await service.app(ben, 'POST', start, {}), 86_400 / 5);
});

test('behaviour §14: calls by a bot that is not in a chat do not count against the limit of that chat', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const [inside, outside] = [await service.newBot(ann, 'inside'), await service.newBot(eve, 'outside')];
  const chat_id = await service.newGroup(ann, 'Ours', [inside]);
  const send = (bot: TestBot) => (front: number) =>
    service.bot(bot, 'sendMessage', { chat_id, text: 'x' }, front);
  const refused = await many(8, send(outside));
  expect(refused.map(({ status }) => status).sort()).toEqual([...Array(5).fill(403), ...Array(3).fill(429)]);
  expect(taken(await many(6, send(inside)))).toBe(5);
});

test("behaviour §14: each client address has a request limit, and a trusted proxy tells the service the client's address", async () => {
  const owner = await service.newUser('sue');
  const bot = await service.newBot(owner, 'seen');
  const from = async (address: string, n: number, path = `/bot${bot.token}/getMe`): Promise<Answer> => {
    const answer = await request(`${counting[n % 2]?.url}${path}`, {
      headers: { 'x-forwarded-for': address, authorization: `Bearer ${owner.token}` },
    });
    return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
  };
  const paths = [undefined, '/api/me', '/bot1:wrong/getMe'];
  const answers = await many(30, (_, n) => from('192.0.2.7', n, paths[n % 3]));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(20);
  for (const answer of refused) expectWait(answer, 86_400 / 10);
  for (const n of [0, 1]) {
    expect((await from('192.0.2.7', n, '/healthz')).status).toBe(200);
    expect((await from('192.0.2.8', n)).status).toBe(200);
  }
});

test('behaviour §14: a person can own a limited number of bots, including transferred bots', async () => {
  const [owner, giver] = [await service.newUser('tim'), await service.newUser('uma')];
  const given = await service.newBot(giver, 'given');
  for (const name of ['one', 'two', 'three']) await service.newBot(owner, name);
  const one_more = { username: 'one_too_many_bot', name: 'x' };
  const created = await service.app(owner, 'POST', '/api/me/bots', one_more, 1);
  expect([created.status, created.body.description]).toEqual([400, 'Bad Request: too many bots']);
  const path = `/api/me/bots/${given.id}/transfer`;
  const moved = await service.app(giver, 'POST', path, { username: owner.username, confirm: true });
  expect([moved.status, moved.body.description]).toEqual([
    400,
    'Bad Request: the new owner has too many bots',
  ]);
  expect(await itemsOf(service.app(owner, 'GET', '/api/me/bots'))).toHaveLength(3);
  expect((await service.bot(given, 'getMe')).status).toBe(200);
});

test('behaviour §14: calls far below the default rate limits are not counted in Redis', async () => {
  const { RATE_PER_BOT: _bot, RATE_PER_PERSON: _person, RATE_PER_CHAT: _chat, ...env } = service.env;
  const { url: base } = await startFront(env);
  const document = (await (await request(`${base}/openapi.json`)).body.json()) as { info: object };
  expect(document.info).toMatchObject({
    'x-rates': { RATE_PER_BOT: '2000/2', RATE_PER_PERSON: '30/1', RATE_PER_CHAT: '60/1' },
  });
  const owner = await service.newUser('default');
  const bot = await service.newBot(owner, 'default');
  await service.openChat(owner, bot);
  const redis = openAnywhere(service.redis);
  const rates = () => redis.keys('*:rate:*');
  const before = (await rates()).length;
  const send = async () => {
    const body = JSON.stringify({ chat_id: owner.id, text: 'x' });
    const headers = { 'content-type': 'application/json' };
    const answer = await request(`${base}/bot${bot.token}/sendMessage`, { method: 'POST', headers, body });
    await answer.body.dump();
    return answer.statusCode;
  };
  expect(await send()).toBe(200);
  expect(await rates()).toHaveLength(before);
  // The maximum number of successful calls has three parts: the burst of 60, the calls that this front admits without
  // asking Redis, and the calls that become available during the test.
  const began = performance.now();
  const statuses = await Promise.all(Array.from({ length: 400 }, send));
  const seconds = (performance.now() - began) / 1_000;
  const sent = statuses.filter((status) => status === 200).length;
  expect(sent).toBeGreaterThanOrEqual(60);
  expect(sent).toBeLessThanOrEqual(70 + 70 * seconds);
  expect(statuses).toContain(429);
  redis.disconnect();

  const dispatcher = new Agent({ connections: 100 });
  const look = async () => {
    const answer = await request(`${base}/bot${bot.token}/getMe`, { dispatcher });
    await answer.body.dump();
    return answer.statusCode;
  };
  // The bot has at least 1,500 calls left from its burst of 2,000. The test sends these calls over 100 connections.
  const looks = await Promise.all(Array.from({ length: 1_500 }, look));
  expect(looks.filter((status) => status !== 200)).toEqual([]);
  await dispatcher.close();
});

test('behaviour §14: calls by a person to the application API are limited', async () => {
  const user = await service.newUser('paula');
  const me = async () => {
    const headers = { authorization: `Bearer ${user.token}` };
    const answer = await request(`${limited.url}/api/me`, { headers });
    await answer.body.dump();
    return answer.statusCode;
  };
  const statuses = await Promise.all(Array.from({ length: 12 }, me));
  expect(statuses.filter((status) => status === 200)).toHaveLength(5);
});

test('behaviour §14: a batch counts as one call per message that it creates', async () => {
  const owner = await service.newUser('batch');
  const bot = await service.newBot(owner, 'batch');
  await service.openChat(owner, bot);
  const { message_id } = await resultOf(service.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'x' }));
  const message_ids = Array(6).fill(message_id);
  const p = { chat_id: owner.id, from_chat_id: owner.id, message_ids };
  // The chat has four changes left. A batch of six messages is still accepted, but its last two messages delay later
  // changes.
  expect((await service.bot(bot, 'copyMessages', p)).status).toBe(200);
  expectWait(await service.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'y' }), 86_400);
});

test('behaviour §14: uploads of a person and of all their bots count against the same daily limit of bytes', async () => {
  const [owner, other] = [await service.newUser('uploads'), await service.newUser('others')];
  const bots = [await service.newBot(owner, 'first'), await service.newBot(owner, 'second')];
  const calm = await service.newBot(other, 'calm');
  for (const bot of [...bots, calm]) await service.openChat(owner, bot);
  const upload = async (bot: TestBot, kib: number) => {
    const body = new FormData();
    body.set('chat_id', `${owner.id}`);
    body.set('document', new Blob([Buffer.alloc(kib * 1024, 'x')]), 'file.txt');
    const answer = await fetch(`${limited.url}/bot${bot.token}/sendDocument`, { method: 'POST', body });
    await answer.arrayBuffer();
    return answer.status;
  };
  expect(await upload(bots[0] as TestBot, 40)).toBe(200);
  expect(await upload(bots[1] as TestBot, 40)).toBe(200);
  for (const bot of bots) expect(await upload(bot, 1)).toBe(429);
  const picture = await fetch(`${limited.url}/api/me/bots/${bots[0]?.id}/avatar`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'image/png' },
    body: Buffer.alloc(1024, 'x'),
  });
  await picture.arrayBuffer();
  expect(picture.status).toBe(429);
  expect(await upload(calm, 1)).toBe(200);
});

test('behaviour §14: look-ups of new webhook host names are limited per minute, for each bot and for each owner', async () => {
  const owner = await service.newUser('names');
  const bots = await Promise.all(['one', 'two', 'three'].map((name) => service.newBot(owner, name)));
  // The limit of look-ups applies even if the calls of bots have no limit.
  let named = 0;
  const set = async (bot: TestBot, url = `https://n${++named}.invalid/`): Promise<Answer> => {
    const answer = await fetch(`${limited.url}/bot${bot.token}/setWebhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url }),
    });
    return { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.json() };
  };
  const [first] = bots as [TestBot, ...TestBot[]];
  const statuses: number[] = [];
  for (let n = 0; n < limits.host_look_ups_per_bot_max; n++) statuses.push((await set(first)).status);
  expect([...new Set(statuses)]).toEqual([400]);
  let refused = await set(first);
  // The limit refills during the first calls, so the bot may get some further look-ups.
  while (refused.status === 400) refused = await set(first);
  expectWait(refused, 60 / limits.host_look_ups_per_bot_max);
  expect((await set(first, 'https://127.0.0.1/')).status).toBe(400);
  expect((await set(bots[1] as TestBot)).status).toBe(400);
});

test('behaviour §14: a person can create a limited number of bots per day, and deleted bots count too', async () => {
  const [owner, other] = [await service.newUser('maker'), await service.newUser('calm')];
  const db = new pg.Client(service.databaseUrl);
  await db.connect();
  try {
    const made = await service.newBot(owner, 'made');
    await resultOf(service.app(owner, 'DELETE', `/api/me/bots/${made.id}`));
    await db.query(
      `insert into bot_creations (user_id, created_at)
       select $1, now() - interval '23 hours' from generate_series(2, $2::int)`,
      [owner.id, limits.bots_created_per_day_min],
    );
    const create = (user: typeof owner, front = 0) =>
      service.app(user, 'POST', '/api/me/bots', { username: `made_${Date.now()}_bot`, name: 'made' }, front);
    for (const front of [0, 1]) expectWait(await create(owner, front), 3_600);
    expect((await create(other)).status).toBe(200);
    await db.query(
      "update bot_creations set created_at = created_at - interval '2 hours' where user_id = $1",
      [owner.id],
    );
    expect((await create(owner)).status).toBe(200);
  } finally {
    await db.end();
  }
});
