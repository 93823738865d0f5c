import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { dieAt, call as keyedCall, outwait as outwaitOn } from '../support/keyed.js';
import {
  makeDirect,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  within,
} from '../support/store.js';

let cluster: TestCluster;
let one: TestNode;
let two: TestNode;
let user: Person;
let bot: Person;

beforeAll(async () => {
  cluster = await startCluster();
  [one, two] = [await cluster.node(), await cluster.node()];
  await Promise.all([one.store.auth.start(), two.store.auth.start()]);
  ({ user, bot } = await makeDirect(one));
});
afterAll(() => cluster?.close());

const call = (node: TestNode, method: string, params: object, key: string) =>
  keyedCall(node, bot, method, params, key);
const outwait = () => outwaitOn(one);

const newest = async () => (await one.store.chats.find({ id: bot.id, user: user.id }))?.newest;
const journal = () => one.connection.client.xlen(cluster.keys.journal(cluster.keys.partitions.of(bot.id)));

test.each([
  ['sendMessage', 'messages/send_to_user', 'before'],
  ['sendMessage', 'messages/send_to_user', 'after'],
  ['sendMessage', 'idempotency/settle', 'before'],
  ['sendMessage', 'idempotency/settle', 'after'],
] as const)(
  '%s: if a node died at %s, %s the script ran, the next run sends exactly once',
  async (method, script, when) => {
    const key = `${script} ${when}`;
    const params = { chat_id: user.id, text: key };
    const before = (await newest()) as number;
    const state = dieAt(one, script, when);
    const dying = call(one, method, params, key);
    await expect.poll(() => state.died).toBe(true);
    expect(await within(100, dying)).toBe('late');
    one.hooks.call = (_, run) => run();
    if (when === 'before' || script !== 'idempotency/settle') {
      const waiting = await call(two, method, params, key);
      expect([waiting.status, JSON.parse(waiting.body).parameters]).toEqual([429, { retry_after: 1 }]);
    }
    await outwait();
    const answer = await call(two, method, params, key);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body).result).toMatchObject({ message_id: before + 1, text: key });
    expect(await newest()).toBe(before + 1);
    expect(await call(one, method, params, key)).toEqual(answer);
  },
);

test('a repeated edit or deletion is not applied a second time, even an hour after the first call', async () => {
  const send = await call(one, 'sendMessage', { chat_id: user.id, text: 'a' }, '');
  const { message_id } = JSON.parse(send.body).result;
  for (const [method, params] of [
    ['editMessageText', { chat_id: user.id, message_id, text: 'b' }],
    ['deleteMessage', { chat_id: user.id, message_id }],
  ] as const) {
    const state = dieAt(one, 'idempotency/settle', 'before');
    const dying = call(one, method, params, method);
    await expect.poll(() => state.died).toBe(true);
    expect(await within(100, dying)).toBe('late');
    one.hooks.call = (_, run) => run();
    const entries = await journal();
    for (const key of await one.connection.client.keys('*:req:once.*'))
      expect(await one.connection.client.pttl(key)).toBeGreaterThan(limits.idempotency_ttl_ms - 60_000);
    await outwait();
    expect((await call(two, method, params, method)).status).toBe(200);
    expect(await journal()).toBe(entries);
  }
});

test('if a call fails with an internal error, its idempotency key is released', async () => {
  one.hooks.call = async (name, run) => {
    if (name === 'messages/send_to_user') throw new Error('broken');
    return run();
  };
  const params = { chat_id: user.id, text: 'fault' };
  await expect(call(one, 'sendMessage', params, 'fault')).rejects.toThrow('broken');
  one.hooks.call = (_, run) => run();
  expect((await call(two, 'sendMessage', params, 'fault')).status).toBe(200);
});

test('a call without an idempotency key runs no extra scripts', async () => {
  const names: string[] = [];
  one.hooks.call = (name, run) => {
    names.push(name);
    return run();
  };
  await call(one, 'sendMessage', { chat_id: user.id, text: 'plain' }, '');
  await call(one, 'sendMessage', { chat_id: user.id, text: 'keyed' }, 'keyed');
  expect(names.filter((name) => !name.startsWith('auth/'))).toEqual([
    'messages/send_to_user',
    ...['idempotency/claim', 'messages/send_to_user', 'idempotency/settle'],
  ]);
  one.hooks.call = (_, run) => run();
});
