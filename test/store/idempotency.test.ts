/** Runs of one call under an idempotency key, stopped and taken over at each step between nodes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDispatch, type DispatchOptions } from '../../src/api/dispatch.js';
import type { ApiRequest } from '../../src/api/request.js';
import { limits } from '../../src/limits.js';
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

/** No call of these tests names a file. */
const noFiles = {} as DispatchOptions['files'];

/** The reply of a node to a call of the bot; rejects with what the handler throws. */
function call(
  node: TestNode,
  method: string,
  params: object,
  key: string,
): Promise<{ status: number; body: string }> {
  const handler = createDispatch({
    store: node.store,
    files: noFiles,
    receivers: {} as DispatchOptions['receivers'],
    adminToken: undefined,
    own: {},
  });
  return new Promise((resolve, reject) => {
    const request: ApiRequest = {
      ...{ method: 'POST', path: `/bot${bot.token}/${method}`, query: '', contentType: 'application/json' },
      ...{
        authorization: '',
        lastEventId: '',
        idempotencyKey: key,
        ...{ range: '', ifRange: '', ifNoneMatch: '' },
        remoteAddress: '127.0.0.1',
        aborted: false,
      },
      body: Buffer.from(JSON.stringify(params)),
      onAbort: () => undefined,
      reply: (status, body) => resolve({ status, body: body.toString() }),
      replyWith: () => reject(new Error('no JSON')),
      replyStream: () => reject(new Error('no JSON')),
      openStream: () => {
        throw new Error('no stream');
      },
    };
    Promise.resolve(handler(request)).catch(reject);
  });
}

const never = new Promise<never>(() => undefined);
const heldKeys = () => one.connection.client.keys('*:idempotency:*');

/** Lets the holds of dead nodes end, as time would. */
async function outwait(): Promise<void> {
  for (const key of await heldKeys())
    if (await one.connection.client.hexists(key, 'u')) await one.connection.client.hset(key, 'u', 0);
}

const newest = async () => (await one.store.chats.find({ id: bot.id, user: user.id }))?.newest;
const journal = () => one.connection.client.xlen(cluster.keys.journal(cluster.keys.partitions.of(bot.id)));

/** Makes a node stop for good at a script, before or after it ran; true once it has. */
function dieAt(node: TestNode, script: string, when: 'before' | 'after') {
  const state = { died: false };
  node.hooks.call = async (name, run) => {
    if (name !== script) return run();
    if (when === 'after') await run();
    state.died = true;
    return never;
  };
  return state;
}

test.each([
  ['sendMessage', 'messages/send_direct', 'before'],
  ['sendMessage', 'messages/send_direct', 'after'],
  ['sendMessage', 'idempotency/settle', 'before'],
  ['sendMessage', 'idempotency/settle', 'after'],
] as const)(
  '%s of a node that died at %s, %s it ran: the next run sends once',
  async (method, script, when) => {
    const key = `${script} ${when}`;
    const params = { chat_id: user.id, text: key };
    const before = (await newest()) as number;
    const state = dieAt(one, script, when);
    expect(await within(500, call(one, method, params, key))).toBe('late');
    expect(state.died).toBe(true);
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

test('an edit and a deletion that were applied are not applied again, an hour later either', async () => {
  const send = await call(one, 'sendMessage', { chat_id: user.id, text: 'a' }, '');
  const { message_id } = JSON.parse(send.body).result;
  for (const [method, params] of [
    ['editMessageText', { chat_id: user.id, message_id, text: 'b' }],
    ['deleteMessage', { chat_id: user.id, message_id }],
  ] as const) {
    dieAt(one, 'idempotency/settle', 'before');
    expect(await within(300, call(one, method, params, method))).toBe('late');
    one.hooks.call = (_, run) => run();
    const entries = await journal();
    for (const key of await one.connection.client.keys('*:req:once.*'))
      expect(await one.connection.client.pttl(key)).toBeGreaterThan(limits.idempotency_ttl_ms - 60_000);
    await outwait();
    expect((await call(two, method, params, method)).status).toBe(200);
    expect(await journal()).toBe(entries);
  }
});

test('a fault gives the key back', async () => {
  one.hooks.call = async (name, run) => {
    if (name === 'messages/send_direct') throw new Error('broken');
    return run();
  };
  const params = { chat_id: user.id, text: 'fault' };
  await expect(call(one, 'sendMessage', params, 'fault')).rejects.toThrow('broken');
  one.hooks.call = (_, run) => run();
  expect((await call(two, 'sendMessage', params, 'fault')).status).toBe(200);
});

test('a call without a key asks for nothing more', async () => {
  const names: string[] = [];
  one.hooks.call = (name, run) => {
    names.push(name);
    return run();
  };
  await call(one, 'sendMessage', { chat_id: user.id, text: 'plain' }, '');
  await call(one, 'sendMessage', { chat_id: user.id, text: 'keyed' }, 'keyed');
  expect(names.filter((name) => !name.startsWith('auth/'))).toEqual([
    'messages/send_direct',
    ...['idempotency/claim', 'messages/send_direct', 'idempotency/settle'],
  ]);
  one.hooks.call = (_, run) => run();
});
