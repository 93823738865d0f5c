import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { makeCertificate } from '../support/certificates.js';
import { openAnywhere } from '../support/cluster.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let service: Service;
let operator: { readonly token: string };
let receiver: Receiver;
let received: string[] = [];
let owner: TestUser;
let ann: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  operator = { token: service.adminToken };
  receiver = await startReceiver(certificate, (_, response, body) => {
    received.push(JSON.parse(body.toString()).message?.text);
    response.writeHead(200).end();
  });
});
afterAll(async () => {
  await receiver?.close();
});
beforeEach(async () => {
  received = [];
  owner = await service.newUser('olga');
  ann = await service.newUser('ann');
  bot = await service.newBot(owner, 'seen');
  await service.openChat(ann, bot);
});

const refusal = (status: number, description: string) => ({
  status,
  body: { ok: false, error_code: status, description },
});
const own = (verb: string, rest = '', by = owner) => service.app(by, verb, `/api/me/bots/${bot.id}${rest}`);
const say = (text = 'hi', front = 0) =>
  service.app(ann, 'POST', `/api/chats/${bot.id}/messages`, { text }, front);
const events = async () =>
  (await resultOf(own('GET', '/audit'))).items.map(({ event }: { event: string }) => event);
const hook = () =>
  resultOf(
    service.bot(bot, 'setWebhook', {
      ...{ url: `https://127.0.0.1:${receiver.port}/hook`, certificate: certificate.cert },
      drop_pending_updates: true,
    }),
  );
async function openPoll(front: number) {
  await resultOf(service.bot(bot, 'getUpdates', { offset: -1 }, front));
  const [last] = await resultOf(service.bot(bot, 'getUpdates', {}, front));
  const offset = (last?.update_id ?? 0) + 1;
  const poll = service.bot(bot, 'getUpdates', { offset, timeout: 50 }, front);
  const redis = openAnywhere(service.redis);
  const state = makeKeys(Number(service.env.PARTITIONS ?? 64)).queueState(bot.id);
  // Waits until the queue is empty, which shows that the poll has begun and has confirmed all earlier updates.
  await expect.poll(() => redis.hget(state, 'bytes')).toBe('0');
  redis.disconnect();
  return { poll };
}

describe('tokens are revoked', () => {
  test.each([
    ['deleted', () => own('DELETE')],
    ['suspended', () => service.app(operator, 'POST', `/api/admin/bots/${bot.id}/suspension`)],
    ['replaced', () => own('POST', '/regenerate_token')],
  ])('the open poll of a bot that was %s ends on another node', async (_, end) => {
    const { poll } = await openPoll(1);
    await resultOf(end());
    expect(await poll).toMatchObject(refusal(401, 'Unauthorized'));
  });

  test('renaming a bot does not end its open poll', async () => {
    const { poll } = await openPoll(1);
    await resultOf(service.bot(bot, 'setMyName', { name: 'Other' }));
    await resultOf(say('heard'));
    expect((await resultOf(poll)).map((u: { message: { text: string } }) => u.message.text)).toEqual([
      'heard',
    ]);
  });
});

describe('bots are deleted', () => {
  test('a deleted bot is unknown on every node, and its messages remain', async () => {
    const group = await service.newGroup(owner, 'g', [bot]);
    await resultOf(service.bot(bot, 'sendMessage', { chat_id: ann.id, text: 'stays' }));
    await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, text: 'stays too' }));
    expect(await resultOf(own('DELETE'))).toBe(true);
    for (const front of [0, 1]) {
      expect((await service.bot(bot, 'getMe', {}, front)).status).toBe(401);
      expect(await say('x', front)).toMatchObject(refusal(404, 'Not Found: bot not found'));
    }
    for (const rest of ['', '/token', '/audit', '/webhook/secret'])
      expect(await own('GET', rest)).toMatchObject(refusal(404, 'Not Found: bot not found'));
    expect(await own('DELETE')).toMatchObject(refusal(404, 'Not Found: bot not found'));
    expect(await itemsOf(service.app(owner, 'GET', '/api/me/bots'))).toEqual([]);
    for (const [verb, rest] of [
      ['GET', ''],
      ['POST', '/start'],
      ['POST', '/block'],
    ] as const)
      expect(
        await service.app(ann, verb, `/api/bots/${bot.username}${rest}`, verb === 'POST' ? {} : undefined),
      ).toMatchObject(refusal(404, 'Not Found: bot not found'));
    const texts = async (by: TestUser, chat: number) =>
      (await itemsOf(service.app(by, 'GET', `/api/chats/${chat}/messages`))).map(
        ({ text }: { text?: string }) => text,
      );
    expect(await texts(ann, bot.id)).toEqual(['stays', '/start']);
    expect(await texts(owner, group)).toContain('stays too');
    const [chat] = (await resultOf(service.app(ann, 'GET', '/api/chats'))).items;
    expect(chat).toMatchObject({ id: bot.id, type: 'private', first_name: 'Deleted bot' });
    expect(chat.username).toBeUndefined();
    const members = (await resultOf(service.app(owner, 'GET', `/api/chats/${group}/members`))).items;
    expect(members.map(({ user }: { user: { id: number } }) => user.id)).toEqual([owner.id]);
    await resultOf(service.app(owner, 'POST', `/api/chats/${group}/messages`, { text: 'alone' }));
  });

  test('the pending updates of a deleted bot are removed', async () => {
    await hook();
    await resultOf(say('before'));
    await expect.poll(() => received).toEqual(['before']);
    await resultOf(own('DELETE'));
    expect((await say('after')).status).toBe(404);
    const redis = openAnywhere(service.redis);
    const keys = makeKeys(Number(service.env.PARTITIONS ?? 64));
    expect(await redis.exists(keys.queue(bot.id))).toBe(0);
    expect(await redis.pttl(keys.queueState(bot.id))).toBeGreaterThan(0);
    expect(await redis.hget(keys.queueState(bot.id), 'hook')).toBeNull();
    redis.disconnect();
    expect(received).toEqual(['before']);
  });

  test('only the owner can delete a bot', async () => {
    expect(await own('DELETE', '', ann)).toMatchObject(refusal(403, 'Forbidden: not the owner of the bot'));
    await resultOf(own('DELETE'));
    const again = await service.app(ann, 'POST', '/api/me/bots', { username: bot.username, name: 'Again' });
    expect(again).toMatchObject(refusal(400, 'Bad Request: username is already taken'));
  });
});

describe('bots are suspended', () => {
  const suspend = (verb: 'POST' | 'DELETE', id = bot.id) =>
    service.app(operator, verb, `/api/admin/bots/${id}/suspension`);

  test('a suspended bot cannot call methods on any node, but its updates are kept', async () => {
    await hook();
    await resultOf(say('one'));
    await expect.poll(() => received).toEqual(['one']);
    expect(await resultOf(suspend('POST'))).toBe(true);
    expect(await resultOf(suspend('POST'))).toBe(true);
    for (const front of [0, 1]) expect((await service.bot(bot, 'getMe', {}, front)).status).toBe(401);
    for (const text of ['two', 'three']) await resultOf(say(text));
    const redis = openAnywhere(service.redis);
    const keys = makeKeys(Number(service.env.PARTITIONS ?? 64));
    expect(await redis.hget(keys.queueState(bot.id), 'hook')).toBeNull();
    expect(await redis.xlen(keys.queue(bot.id))).toBe(2);
    redis.disconnect();
    expect(received).toEqual(['one']);
    expect(await resultOf(suspend('DELETE'))).toBe(true);
    await expect.poll(() => received).toEqual(['one', 'two', 'three']);
    for (const front of [0, 1]) expect((await service.bot(bot, 'getMe', {}, front)).status).toBe(200);
    expect((await events()).slice(0, 2)).toEqual(['unsuspended', 'suspended']);
  });

  test('only operators can suspend a bot', async () => {
    expect(await suspend('POST', 999_999)).toMatchObject(refusal(404, 'Not Found: bot not found'));
    const path = `/api/admin/bots/${bot.id}/suspension`;
    expect(await service.app(owner, 'POST', path)).toMatchObject(refusal(401, 'Unauthorized'));
  });
});

test("a suspended person is refused on every node, but the person's bots keep working", async () => {
  const path = `/api/admin/users/${owner.id}/suspension`;
  const me = (front: number) => service.app(owner, 'GET', '/api/me', undefined, front);
  for (const front of [0, 1]) expect((await me(front)).status).toBe(200);
  const handed = await service.newBot(ann, 'handed');
  expect(await resultOf(service.app(operator, 'POST', path))).toBe(true);
  for (const front of [0, 1]) expect(await me(front)).toMatchObject(refusal(401, 'Unauthorized'));
  const body = { username: owner.username, confirm: true };
  expect(await service.app(ann, 'POST', `/api/me/bots/${handed.id}/transfer`, body)).toMatchObject(
    refusal(400, 'Bad Request: the new owner is suspended'),
  );
  expect((await service.bot(bot, 'getMe')).status).toBe(200);
  expect(await resultOf(service.app(operator, 'DELETE', path))).toBe(true);
  for (const front of [0, 1]) expect((await me(front)).status).toBe(200);
  expect(await service.app(operator, 'POST', `/api/admin/users/${bot.id}/suspension`)).toMatchObject(
    refusal(404, 'Not Found: user not found'),
  );
});

longTest(
  'operators suspend bots and people from the command line, by id or username',
  async () => {
    const env = { ...service.env, PATH: process.env.PATH };
    /** Returns the output of the command. Removes log lines, which the command writes if Redis is slow. */
    const petrel = async (...args: string[]) =>
      (await promisify(execFile)(process.execPath, [main, ...args], { env })).stdout.replace(/^\{.*\n/gm, '');
    const [suspended, refused] = await Promise.allSettled([
      petrel('bots', 'suspend', `@${bot.username}`),
      petrel('users', 'suspend', String(bot.id)),
    ]);
    expect(suspended).toMatchObject({ value: `bot ${bot.id} is suspended\n` });
    const failure = { code: 1, stdout: expect.stringContaining(`there is no user ${bot.id}`) };
    expect(refused).toMatchObject({ reason: failure });
    expect((await service.bot(bot, 'getMe')).status).toBe(401);
    expect(
      await Promise.all([
        petrel('bots', 'unsuspend', String(bot.id)),
        petrel('users', 'suspend', owner.username),
      ]),
    ).toEqual([`bot ${bot.id} is active again\n`, `user ${owner.id} is suspended\n`]);
    expect((await service.bot(bot, 'getMe')).status).toBe(200);
    expect((await service.app(owner, 'GET', '/api/me')).status).toBe(401);
  },
  60_000,
);

test('nobody can take a reserved username until an operator releases the username', async () => {
  const names = '/api/admin/reserved_usernames';
  const username = `Kept_${bot.id}_bot`;
  const reserve = (name: string) => service.app(operator, 'POST', names, { username: name });
  const create = () => service.app(owner, 'POST', '/api/me/bots', { username, name: 'Kept' });
  expect(await resultOf(reserve(username))).toBe(true);
  expect(await resultOf(reserve(username))).toBe(true);
  expect(await reserve(owner.username)).toMatchObject(refusal(400, 'Bad Request: username is already taken'));
  expect(await create()).toMatchObject(refusal(400, 'Bad Request: username is already taken'));
  expect((await service.app(ann, 'GET', `/api/bots/${username}`)).status).toBe(404);
  await resultOf(reserve(`also_${bot.id}`));
  const listed: string[] = [];
  for (let query = '?limit=1'; query !== ''; ) {
    const { items, next_cursor } = await resultOf(service.app(operator, 'GET', `${names}${query}`));
    listed.push(...items);
    query = next_cursor === undefined ? '' : `?cursor=${next_cursor}`;
  }
  // Checks only the names of this test, because other test files reserve names on the same service.
  expect(listed.filter((name) => name.includes(`_${bot.id}`))).toEqual([
    `also_${bot.id}`,
    username.toLowerCase(),
  ]);
  expect(await resultOf(service.app(operator, 'DELETE', `${names}/${username}`))).toBe(true);
  expect(await service.app(operator, 'DELETE', `${names}/${username}`)).toMatchObject(
    refusal(404, 'Not Found: username is not reserved'),
  );
  expect((await create()).status).toBe(200);
});

test('only operators see the update counts of each bot', async () => {
  const path = `/api/admin/bots/${bot.id}/figures`;
  await resultOf(service.app(ann, 'POST', `/api/chats/${bot.id}/messages`, { text: 'waits' }));
  const figures = await resultOf(service.app(operator, 'GET', path));
  expect(figures).toEqual({
    ...{ id: bot.id, username: bot.username, pending_update_count: 2 },
    ...{ delivered_count: 0, failed_count: 0, dead_count: 0, dead_letter_count: 0 },
  });
  const { url } = receiver as unknown as { url?: string };
  const hook = { url: url ?? `https://127.0.0.1:${receiver.port}/`, certificate: certificate.cert };
  await resultOf(service.bot(bot, 'setWebhook', hook));
  await expect
    .poll(async () => resultOf(service.app(operator, 'GET', path)))
    .toMatchObject({
      pending_update_count: 0,
      delivered_count: 2,
      webhook_host: `127.0.0.1:${receiver.port}`,
    });
  expect((await service.app(ann, 'GET', path)).status).toBe(401);
  expect((await service.app(operator, 'GET', '/api/admin/bots/999999999/figures')).status).toBe(404);
});
