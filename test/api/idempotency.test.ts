import type { Redis } from 'ioredis';
import { request } from 'undici';
import { afterAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from '../support/cluster.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { firstWithin } from '../support/times.js';

const reused = 'Bad Request: idempotency key was used with other parameters';

let service: Service;
let redis: Redis;
let user: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'once');
  await service.openChat(user, bot);
  redis = openAnywhere(service.redis);
});
afterAll(async () => {
  redis?.disconnect();
});

async function call(
  path: string,
  key: string,
  body: string,
  front = 0,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  method = 'POST',
): Promise<Answer & { readonly text: string }> {
  const url = (service.fronts[front] as { url: string }).url + path;
  const answer = await request(url, {
    method: method as 'POST',
    headers: { ...headers, 'idempotency-key': key },
    body,
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, body: JSON.parse(text), text };
}

const json = { 'content-type': 'application/json' };
const of = (method: string, by = bot) => `/bot${by.token}/${method}`;
const send = (key: string, text: string, front = 0, more = {}) =>
  call(of('sendMessage'), key, JSON.stringify({ chat_id: user.id, text, ...more }), front);
const texts = async (text: string): Promise<number> => {
  const all = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=100`));
  return all.filter((message: { text: string }) => message.text === text).length;
};

test('a call that is repeated with its idempotency key gets the first answer, even on another front or with reordered parameters', async () => {
  const first = await send('k1', 'once only');
  expect(first.status).toBe(200);
  const second = await send('k1', 'once only', 1);
  expect([second.status, second.text]).toEqual([200, first.text]);
  expect(second.headers['content-type']).toBe('application/json');
  const turned = await call(
    of('SENDMESSAGE'),
    'k1',
    JSON.stringify({ text: 'once only', chat_id: user.id }),
    1,
  );
  expect(turned.text).toBe(first.text);
  expect(await texts('once only')).toBe(1);
  await resultOf(send('k1b', 'once only'));
  expect(await texts('once only')).toBe(2);
});

test('simultaneous calls with one idempotency key run once, even on two fronts', async () => {
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all(
      [0, 1, 0, 1, 0, 1].map((front) => send(`r${round}`, `r${round}`, front)),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    expect(await texts(`r${round}`)).toBe(1);
  }
});

test('an idempotency key cannot be used again with other parameters', async () => {
  const sent = await resultOf(send('k2', 'two'));
  const other = await send('k2', 'two!', 1);
  expect([other.status, other.body.description]).toEqual([400, reused]);
  expect(await texts('two!')).toBe(0);
  const edit = JSON.stringify({ chat_id: user.id, message_id: sent.message_id, text: 'edited' });
  expect((await resultOf(call(of('editMessageText'), 'k2', edit))).text).toBe('edited');
  const second = await service.newBot(user, 'other');
  await service.openChat(user, second);
  const body = JSON.stringify({ chat_id: user.id, text: 'three' });
  await resultOf(call(of('sendMessage', second), 'k2', body));
});

test('a call that is repeated with its idempotency key gets the stored refusal, unless the refusal asks the caller to retry later', async () => {
  const absent = { chat_id: user.id, message_id: 999_999, text: 'x' };
  const refuse = (front: number) => call(of('editMessageText'), 'k3', JSON.stringify(absent), front);
  const [first, second] = [await refuse(0), await refuse(1)];
  expect([first.status, second.status, second.text]).toEqual([400, 400, first.text]);

  const edit = (message_id: number, key: string, text: string, front = 0) =>
    call(of('editMessageText'), key, JSON.stringify({ chat_id: user.id, message_id, text }), front);
  let run = 0;
  // The second edit is refused only within a second of the first edit. If both edits take longer, repeats them.
  const { id, key, late } = await firstWithin(limits.edit_interval_ms_min, async () => {
    const name = `k4 ${++run}`;
    const { message_id } = await resultOf(send(`${name} sent`, 'v0'));
    await resultOf(edit(message_id, `${name} first`, 'v1'));
    return { id: message_id, key: name, late: await edit(message_id, name, 'v2') };
  });
  expect([late.status, late.headers['retry-after']]).toEqual([429, '1']);
  await new Promise((resolve) => setTimeout(resolve, limits.edit_interval_ms_min + 50));
  expect((await resultOf(edit(id, key, 'v2', 1))).text).toBe('v2');
});

test('methods that change something refuse an invalid idempotency key', async () => {
  const what =
    'Bad Request: parameter "Idempotency-Key" must be up to 255 characters without control characters';
  const long = 'x'.repeat(limits.idempotency_key_length_max + 1);
  const refused = await send(long, 'long');
  expect([refused.status, refused.body.description]).toEqual([400, what]);
  expect(await texts('long')).toBe(0);
  await resultOf(send(long.slice(1), 'long'));
  expect((await send('a\tb', 'tab')).body.description).toBe(what);
  const live = await redis.keys('*:idempotency:*');
  for (let i = 0; i < 2; i++) await resultOf(call(of('getChat'), long, JSON.stringify({ chat_id: user.id })));
  await resultOf(call(of('getUpdates'), 'k', '{}'));
  expect(await redis.keys('*:idempotency:*')).toHaveLength(live.length);
});

test('a repeated upload of the same bytes is treated as the same call, even if its multipart part has another name', async () => {
  const upload = (name: string, bytes: string, front: number) => {
    const form = new FormData();
    form.set('chat_id', String(user.id));
    form.set('text', 'file');
    form.set('photo', `attach://${name}`);
    form.set(name, new Blob([bytes]), 'a.jpg');
    const encoded = new Response(form);
    return encoded.text().then((text) =>
      call(of('sendMessage'), 'k7', text, front, {
        'content-type': encoded.headers.get('content-type') ?? '',
      }),
    );
  };
  const first = await upload('one', 'bytes', 0);
  const second = await upload('two', 'bytes', 1);
  expect([second.status, second.text]).toEqual([200, first.text]);
  expect((await upload('three', 'other', 1)).body.description).toBe(reused);
});

describe('calls of people can have an idempotency key', () => {
  const auth = (who: { token: string }) => ({ ...json, authorization: `Bearer ${who.token}` });

  test('equal idempotency keys of different people are independent', async () => {
    const say = (text: string, front: number, method = 'POST') =>
      call(`/api/chats/${bot.id}/messages`, 'k1', JSON.stringify({ text }), front, auth(user), method);
    const first = await say('mine', 0);
    expect((await say('mine', 1)).text).toBe(first.text);
    expect(await texts('mine')).toBe(1);
    expect((await say('other', 1)).body.description).toBe(reused);
    const group = { type: 'group', title: 'Once' };
    const create = (who: TestUser) =>
      call('/api/chats', 'g', JSON.stringify(group), 0, auth(who)).then(resultOf);
    const eve = await service.newUser('eve');
    const made = [await create(user), await create(user), await create(eve)].map(({ id }) => id);
    expect(made[0]).toBe(made[1]);
    expect(made[2]).not.toBe(made[0]);
  });

  test('a refused call that is repeated with its idempotency key gets the same error text again', async () => {
    const path = `/api/chats/${bot.id}/messages/999999`;
    const edit = (front: number) => call(path, 'e', '{"text":"x"}', front, auth(user), 'PATCH');
    const [first, second] = [await edit(0), await edit(1)];
    expect(first.body.description).toBe('Not Found: message not found');
    expect([second.status, second.text]).toEqual([404, first.text]);
  });
});

test('the stored entry of an idempotency key contains neither the key nor the parameters nor the answer', async () => {
  await resultOf(send('my plain key', 'my plain text'));
  const kept = await redis.keys('*:idempotency:*');
  expect(kept.length).toBeGreaterThan(0);
  for (const key of kept) {
    const all = Buffer.concat(
      (await redis.hgetallBuffer(key)) && Object.values(await redis.hgetallBuffer(key)),
    );
    expect(`${key}${all.toString('latin1')}`).not.toMatch(/plain|message_id|once only/);
    expect(await redis.pttl(key)).toBeGreaterThan(limits.idempotency_ttl_ms - 3_600_000);
  }
});

test('a caller with the maximum number of live idempotency keys gets 429 for a new key', async () => {
  const first = await send('known', 'known');
  const live = makeKeys(64).idempotencyLive({ kind: 'bot', id: bot.id });
  const end = Date.now() + 3_600_000;
  await redis.eval(
    "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], ARGV[2], i) end",
    1,
    live,
    limits.idempotency_keys_max,
    end,
  );
  const more = await send('one more', 'one more');
  expect([more.status, more.body.parameters, more.headers['retry-after']]).toEqual([
    429,
    { retry_after: 1 },
    '1',
  ]);
  expect((await send('known', 'known', 1)).text).toBe(first.text);
  await redis.zremrangebyscore(live, end, end);
  await resultOf(send('one more', 'one more'));
});

describe('answers are stored together with their idempotency keys', () => {
  const claims = () => redis.keys('*:idempotency:*');
  const answerOf = async (key: string, run: () => Promise<Answer & { readonly text: string }>) => {
    const before = new Set(await claims());
    const first = await run();
    const made = (await claims()).filter((name) => !before.has(name));
    expect(made, key).toHaveLength(1);
    return { first, claim: made[0] as string };
  };

  test('a large answer is not stored with its idempotency key, and a repeated call computes it from the stored change', async () => {
    const long = 'long '.repeat(800).trim();
    const { first, claim } = await answerOf('large', () => send('large', long));
    expect(first.status).toBe(200);
    expect(await redis.hexists(claim, 'a')).toBe(0);
    const id = first.body.result.message_id;
    // Edits the message. A repeated call then gets its first answer only if Petrel computes it from the stored change,
    // not from the message.
    await resultOf(service.bot(bot, 'editMessageText', { chat_id: user.id, message_id: id, text: 'other' }));
    for (const front of [0, 1]) expect((await send('large', long, front)).body).toEqual(first.body);
    expect(await texts(long)).toBe(0);
    const { first: small, claim: kept } = await answerOf('small', () => send('small', 'small'));
    expect(await redis.hexists(kept, 'a')).toBe(1);
    expect((await send('small', 'small', 1)).text).toBe(small.text);
    expect(await redis.memory('USAGE', claim)).toBeLessThan(1_024);
  });

  test('a bot that has used up its daily bytes for idempotency keys gets 429 for a new key', async () => {
    const other = await service.newBot(user, 'bytes');
    await service.openChat(user, other);
    const body = JSON.stringify({ chat_id: user.id, text: 'x' });
    const first = await call(of('sendMessage', other), 'one', body);
    const bytes = makeKeys(64).idempotencyBytes({ kind: 'bot', id: other.id });
    expect(Number(await redis.get(bytes))).toBeGreaterThan(100);
    await redis.set(bytes, limits.idempotency_bytes_max, 'KEEPTTL');
    expect((await call(of('sendMessage', other), 'two', body)).status).toBe(429);
    expect((await call(of('sendMessage', other), 'one', body)).text).toBe(first.text);
  });
});

test("copying a message twice with one idempotency key stores one copy, and the key's entry in Redis does not contain the text", async () => {
  const { message_id } = await resultOf(
    service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x'.repeat(4_000) }),
  );
  const copy = () =>
    call(
      of('copyMessage'),
      'copied once',
      JSON.stringify({ chat_id: user.id, from_chat_id: user.id, message_id }),
    );
  const before = new Set(await redis.keys('*:req:once.*'));
  const first = await copy();
  expect(first.status).toBe(200);
  const added = (await redis.keys('*:req:once.*')).filter((key) => !before.has(key));
  expect(added).toHaveLength(1);
  expect(await redis.strlen(added[0] as string)).toBeLessThan(64);
  expect((await copy()).text).toBe(first.text);
});
