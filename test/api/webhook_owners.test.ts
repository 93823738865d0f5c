import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { makeCertificate } from '../support/certificates.js';
import { openAnywhere } from '../support/cluster.js';
import { ageQueue } from '../support/queues.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

interface Shown {
  readonly updateId: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let service: Service;
let owner: TestUser;
let other: TestUser;
let bot: TestBot;
let receiver: Receiver;
let shown: Shown[] = [];
/** Returns the status, the body and the headers with which the receiver answers an update. */
let answer: (update: Shown) => readonly [status: number, body: string, headers?: Record<string, string>] =
  () => [200, ''];

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  other = await service.newUser('oscar');
  receiver = await startReceiver(certificate, (request, response, body) => {
    const update = JSON.parse(body.toString());
    const { headers } = request;
    const one = { updateId: update.update_id, text: update.message.text, headers, body: body.toString() };
    shown.push(one);
    const [status, text, more] = answer(one);
    response.writeHead(status, more).end(text);
  });
});
afterAll(async () => {
  await receiver.close();
});
beforeEach(async () => {
  shown = [];
  answer = () => [200, ''];
  bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
});

const secretPath = 'path-of-a-secret';
const hook = () =>
  resultOf(
    service.bot(bot, 'setWebhook', {
      url: `https://127.0.0.1:${receiver.port}/${secretPath}`,
      certificate: certificate.cert,
      secret_token: 'told-to-nobody',
    }),
  );
const own = (verb: string, rest: string, body?: unknown, user: TestUser = owner) =>
  service.app(user, verb, `/api/me/bots/${bot.id}/webhook/${rest}`, body);
const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
/**
 * Waits until the receiver has got deliveries with these texts. The time limit is high, because some deliveries are
 * retries.
 */
const arrived = (...texts: string[]) =>
  expect.poll(() => shown.map(({ text }) => text), { timeout: 40_000 }).toEqual(texts);
const attempts = async (query = '') => (await resultOf(own('GET', `deliveries${query}`))).items;
const letters = async () => (await resultOf(own('GET', 'dead_letters'))).items;

const age = () => ageQueue(service, bot.id);

async function die(...texts: string[]): Promise<number[]> {
  for (const text of texts) await say(text);
  await age();
  await hook();
  await expect.poll(async () => (await letters()).length).toBe(texts.length);
  return (await letters()).map(({ update_id }: { update_id: number }) => update_id);
}

test('webhook endpoints refuse callers who do not own the bot', async () => {
  const calls = [
    ['GET', 'secret'],
    ['POST', 'secret/rotate'],
    ['GET', 'deliveries'],
    ['GET', 'dead_letters'],
    ['DELETE', 'dead_letters'],
    ['POST', 'replay'],
    ['POST', 'ping'],
  ] as const;
  for (const [verb, rest] of calls) {
    const body = verb === 'POST' ? { dead_letters: true } : undefined;
    expect(await own(verb, rest, body, other)).toMatchObject({
      status: 403,
      body: { description: 'Forbidden: not the owner of the bot' },
    });
    const unknown = await service.app(owner, verb, `/api/me/bots/999999999/webhook/${rest}`, body);
    expect(unknown).toMatchObject({ status: 404, body: { description: 'Not Found: bot not found' } });
    expect(await own(verb, rest, body, { ...owner, token: 'none' })).toMatchObject({ status: 401 });
  }
});

test('for a day after the signing secret is rotated, deliveries are signed with both secrets', async () => {
  const { secret, ...rest } = await resultOf(own('GET', 'secret'));
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(rest).toEqual({});
  expect(await resultOf(own('GET', 'secret'))).toEqual({ secret });
  await hook();
  expect(await resultOf(own('GET', 'secret'))).toEqual({ secret });
  await say('one');
  await arrived('one');
  // The worker already uses the first secret, so the delivery of "two" shows that the worker learns of the new secret.
  const rotated = await resultOf(own('POST', 'secret/rotate'));
  expect(rotated.secret).not.toBe(secret);
  expect(Math.abs(rotated.previous_valid_until - Date.now() / 1_000 - 86_400)).toBeLessThan(60);
  expect(await resultOf(own('GET', 'secret'))).toEqual(rotated);
  await say('two');
  await arrived('one', 'two');
  const [first, second] = shown as [Shown, Shown];
  const verify = (update: Shown, key: string) =>
    new Webhook(key).verify(update.body, update.headers as Record<string, string>);
  expect(String(first.headers['webhook-signature']).split(' ')).toHaveLength(1);
  expect(verify(first, secret)).toMatchObject({ update_id: first.updateId });
  expect(() => verify(first, rotated.secret)).toThrow();
  expect(String(second.headers['webhook-signature']).split(' ')).toHaveLength(2);
  for (const key of [secret, rotated.secret])
    expect(verify(second, key)).toMatchObject({ update_id: second.updateId });
});

test('rotating the signing secret of a failing webhook keeps its last error and its next retry time', async () => {
  answer = () => [502, '', { 'retry-after': '600' }];
  await hook();
  await say('one');
  const info = () => resultOf(service.bot(bot, 'getWebhookInfo'));
  await expect.poll(async () => (await info()).last_error_message).toMatch(/502/);
  const redis = openAnywhere(service.redis);
  const retries = makeKeys(Number(service.env.PARTITIONS ?? 64)).retries(bot.id);
  const next = () => redis.zrange(retries, '0', '-1', 'WITHSCORES');
  const before = [await info(), await next()];
  expect(Number(before[1][1]) - Date.now()).toBeGreaterThan(300_000);
  await resultOf(own('POST', 'secret/rotate'));
  expect([await info(), await next()]).toEqual(before);
  redis.disconnect();
});

test("owners see the receiver's answer to each delivery attempt, but no secrets", async () => {
  const { secret } = await resultOf(own('GET', 'secret'));
  const told = `no ${bot.token} ${encodeURIComponent(bot.token)} ${secret} told-to-nobody /${secretPath} \\/${secretPath} \u0000 `;
  let failures = 3;
  answer = () => (failures-- > 0 ? [502, told + 'ä'.repeat(2_000)] : [200, 'fine']);
  await hook();
  await say('one');
  await arrived('one', 'one', 'one', 'one');
  await expect.poll(async () => (await attempts()).length).toBe(4);
  const [last, ...failed] = await attempts();
  const updateId = shown[0]?.updateId;
  expect(last).toMatchObject({ update_id: updateId, delivered: true, status: 200, answer: 'fine', tries: 4 });
  expect(last).toMatchObject({ error: null, next_try_date: null });
  expect(failed.map(({ tries }: { tries: number }) => tries)).toEqual([3, 2, 1]);
  for (const each of failed) {
    expect(each).toMatchObject({
      delivered: false,
      status: 502,
      error: 'Wrong response from the webhook: 502 Bad Gateway',
    });
    expect(each.next_try_date - each.date).toBeGreaterThanOrEqual(0);
    expect(each.next_try_date - each.date).toBeLessThan(10);
    expect(each.latency_ms).toBeLessThan(60_000);
    expect(each.answer).toMatch(/^no \d+:\*{35} \d+%3A\*{35} \*{50} \*{14} \*{17} \*+ \ufffd ä+$/);
    expect(Buffer.byteLength(each.answer)).toBeGreaterThan(1_020);
    expect(Buffer.byteLength(each.answer)).toBeLessThanOrEqual(1_024);
  }
  expect(await attempts('?status=delivered')).toEqual([last]);
  expect(await attempts('?status=failed')).toEqual(failed);
  expect(await attempts('?status=502')).toEqual(failed);
  expect(await attempts('?status=404')).toEqual([]);
  expect(await attempts(`?update_id=${updateId}`)).toHaveLength(4);
  expect(await attempts('?update_id=1')).toEqual([]);
  const page = await resultOf(own('GET', 'deliveries?limit=3'));
  expect(page.counts).toEqual({ delivered: 1, failed: 3, dead: 0, unkept: 0 });
  const rest = await resultOf(own('GET', `deliveries?limit=3&cursor=${page.next_cursor}`));
  expect([...page.items, ...rest.items]).toEqual([last, ...failed]);
  expect(rest.next_cursor).toBeUndefined();
  expect(await own('GET', 'deliveries?status=bad')).toMatchObject({ status: 400 });
  expect(await own('GET', 'deliveries?cursor=x')).toMatchObject({ status: 400 });
});

test('owners can list dead letters, and a replayed dead letter keeps its update_id', async () => {
  const ids = await die('one', 'two', 'three');
  expect(shown).toEqual([]);
  const items = await letters();
  expect(items.map(({ update }: { update: { message: { text: string } } }) => update.message.text)).toEqual([
    'one',
    'two',
    'three',
  ]);
  expect(items[0]).toMatchObject({
    reason: 'expired',
    update: { update_id: ids[0], message: { from: { id: owner.id } } },
  });
  expect(Math.abs(items[0].date - Date.now() / 1_000)).toBeLessThan(60);
  const first = await resultOf(own('GET', 'dead_letters?limit=2'));
  expect(first.items).toEqual(items.slice(0, 2));
  expect((await resultOf(own('GET', `dead_letters?limit=2&cursor=${first.next_cursor}`))).items).toEqual(
    items.slice(2),
  );
  expect(await resultOf(own('POST', 'replay', { from_update_id: ids[1], to_update_id: ids[1] }))).toEqual({
    queued: 1,
  });
  await arrived('two');
  expect(await resultOf(own('POST', 'replay', { dead_letters: true }))).toEqual({ queued: 2 });
  await arrived('two', 'one', 'three');
  expect(shown.map(({ updateId }) => updateId)).toEqual([ids[1], ids[0], ids[2]]);
  expect(shown[0]?.headers['webhook-id']).toBe(`${bot.id}-${ids[1]}`);
  expect(await letters()).toEqual([]);
  expect(await resultOf(own('POST', 'replay', { dead_letters: true }))).toEqual({ queued: 0 });
  await say('four');
  await arrived('two', 'one', 'three', 'four');
  expect(shown[3]?.updateId).toBeGreaterThan(Math.max(...ids));
  await expect
    .poll(async () => (await resultOf(service.bot(bot, 'getWebhookInfo'))).pending_update_count)
    .toBe(0);
});

test('if a replayed update fails again, it becomes a dead letter with the same id', async () => {
  const [id] = await die('one');
  answer = () => [500, ''];
  await resultOf(own('POST', 'replay', { dead_letters: true }));
  await expect.poll(() => shown.length).toBeGreaterThan(0);
  await resultOf(service.bot(bot, 'deleteWebhook'));
  await age();
  await hook();
  await expect.poll(async () => (await letters()).length).toBe(1);
  expect(await letters()).toMatchObject([{ update_id: id, update: { update_id: id } }]);
});

test('after a switch to polling, an owner can replay delivered updates, and the updates get new ids', async () => {
  await hook();
  for (const text of ['one', 'two', 'three']) await say(text);
  await arrived('one', 'two', 'three');
  const ids = shown.map(({ updateId }) => updateId);
  await expect.poll(async () => (await attempts()).length).toBe(3);
  const range = { from_update_id: ids[1], to_update_id: ids[2] };
  expect(await resultOf(own('POST', 'replay', { ...range, dead_letters: true }))).toEqual({ queued: 0 });
  expect(await resultOf(own('POST', 'replay', range))).toEqual({ queued: 2 });
  await arrived('one', 'two', 'three', 'two', 'three');
  expect(shown.slice(3).map(({ updateId }) => updateId)).toEqual(ids.slice(1));
  await resultOf(service.bot(bot, 'deleteWebhook'));
  expect(await resultOf(own('POST', 'replay', range))).toEqual({ queued: 2 });
  await expect.poll(async () => (await resultOf(service.bot(bot, 'getUpdates'))).length).toBe(2);
  const polled = await resultOf(service.bot(bot, 'getUpdates'));
  expect(polled.map(({ message }: { message: { text: string } }) => message.text)).toEqual(['two', 'three']);
  expect(polled[0].update_id).toBeGreaterThan(ids[2] as number);
  for (const wrong of [
    {},
    { from_update_id: 1 },
    { from_update_id: 2, to_update_id: 1 },
    { dead_letters: false },
  ])
    expect(await own('POST', 'replay', wrong)).toMatchObject({ status: 400 });
});

test('discarded dead letters cannot be replayed', async () => {
  await die('one', 'two');
  expect(await resultOf(own('DELETE', 'dead_letters'))).toEqual({ discarded: 2 });
  expect(await letters()).toEqual([]);
  expect(await resultOf(own('DELETE', 'dead_letters'))).toEqual({ discarded: 0 });
  expect(await resultOf(own('POST', 'replay', { dead_letters: true }))).toEqual({ queued: 0 });
  await expect.poll(async () => (await attempts('?status=failed')).length).toBe(2);
  expect(await attempts('?status=failed')).toMatchObject([
    { dead: 'expired', status: null, error: 'The update is too old', answer: '' },
    { dead: 'expired' },
  ]);
});

describe('operators manage webhooks with the command `petrel webhooks`', () => {
  const run = promisify(execFile);
  const petrel = (...args: string[]) =>
    run(process.execPath, [main, 'webhooks', ...args], { env: { ...service.env, PATH: process.env.PATH } });

  longTest(
    '`petrel webhooks` lists and shows webhooks, replays dead letters and discards them',
    async () => {
      const ids = await die('one', 'two', 'three');
      answer = () => [503, ''];
      const listed = await petrel('list');
      const host = `127.0.0.1:${receiver.port}`;
      expect(listed.stdout).toMatch(
        new RegExp(`^${bot.id}  @${bot.username}  ${host}  0 pending  3 dead$`, 'm'),
      );
      answer = () => [200, ''];
      const one = await petrel('replay', bot.username, '--from', `${ids[0]}`, '--to', `${ids[0]}`);
      expect(one.stdout).toBe('1 queued\n');
      await arrived('one');
      await expect.poll(async () => (await attempts('?status=delivered')).length).toBe(1);
      const shownText = (await petrel('show', `@${bot.username}`)).stdout;
      expect(shownText).toMatch(/^attempts {5}1 delivered, 0 failed, 3 given up$/m);
      expect(shownText).toMatch(/^dead letters 2$/m);
      expect(shownText).toMatch(new RegExp(`  ${ids[0]}  try 1  delivered with 200  \\d+ ms$`, 'm'));
      for (const secret of [secretPath, 'told-to-nobody', 'whsec_', bot.token])
        expect(listed.stdout + shownText).not.toContain(secret);
      const rest = await petrel('replay', `${bot.id}`, '--dead-letters');
      expect(rest.stdout).toBe('2 queued\n');
      await arrived('one', 'two', 'three');
      expect((await petrel('discard', `${bot.id}`)).stdout).toBe('0 discarded\n');
    },
    180_000,
  );

  longTest(
    '`petrel webhooks` reports unknown bots and missing options',
    async () => {
      await expect(petrel('show', 'nobody_at_all')).rejects.toMatchObject({
        ...{ code: 1, stdout: expect.stringContaining('there is no bot nobody_at_all') },
      });
      await expect(petrel('replay', `${bot.id}`)).rejects.toMatchObject({
        stdout: expect.stringContaining('--from and --to, or --dead-letters'),
      });
    },
    120_000,
  );
});
