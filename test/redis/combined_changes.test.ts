/** Tests edits, pins and reactions that share one run of their script: order, refusals, retries and limits. */
import { rm } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startRedis } from '../../src/dev/redis.js';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner } from '../../src/redis/scripts/scripts.js';
import { pack, packMessageTail, unpackMessage } from '../../src/store/core/codec.js';
import { chatText, directChat, makeKeys, sharedChat } from '../../src/store/core/keys.js';
import {
  directKeys,
  postKeys,
  sharedKeys,
  toUserKeys,
  withMessage,
} from '../../src/store/core/script_keys.js';
import { temporaryFolder } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

const keys = makeKeys(4);
const bot = 100_001;
const partition = keys.partitions.of(bot);
const chat = directChat(bot, 5);
const channel = sharedChat(
  -Array.from({ length: 40 }, (_, i) => 100_000 + i).find((id) => keys.partitions.of(-id) === partition)!,
);
const [meta, journal] = [keys.meta(partition), keys.journal(partition)];
const dir = temporaryFolder();

let redis: Awaited<ReturnType<typeof startRedis>>;
let connection: RedisConnection;
let client: Redis;
let runner: Runner;

beforeAll(async () => {
  redis = await startRedis({ dir, detached: false });
  connection = new RedisConnection({ url: redis.url, name: 'test' });
  client = new Redis(redis.url);
  await connection.ready(ready_ms_max);
  runner = new Runner({
    connection,
    reconnectMsMax: 1_000,
    recover: () => Promise.reject(new Error('the partition is open')),
  });
});
afterAll(async () => {
  await connection.close();
  client.disconnect();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

beforeEach(async () => {
  await client.flushall();
  const record = { s: 0, i: 1, v: 0, c: 0, p: pack({ id: 5, n: 'A' }), b: `${bot}`, pi: 1 };
  await client.hset(meta, {
    run: connection.runId() as string,
    ...{ ver: limits.versions_per_incarnation, hw: 1_000, hwb: 1_000_000 },
  });
  await client.hset(keys.chat(chat), { ...record, t: 'direct' });
  await client.hset(keys.chat(channel), { ...record, t: 'channel' });
  await client.hset(keys.queueState(bot), { seq: 1, inc: 1, bytes: 0, mask: 63 });
  await client.set(keys.member(channel.id, bot), pack([9, 1, 'creator', {}, false]));
  for (const id of [1, 2, 3]) expect(await send(`first ${id}`)).toMatchObject({ status: 'ok', first: id });
  await client.config('RESETSTAT');
});

const tailOf = (text: string, kind = 1) =>
  packMessageTail({ sender: bot, kind, flags: 0, content: { text }, markup: null, origin: {} });

const send = (request: string) =>
  runner.call('messages/send_to_user', partition, toUserKeys(keys, chat, request), {
    ...{ chat: chatText(chat), tails: [tailOf('text')], reply_to: '', token: 't', keep: '' },
  });

const edit = (request: string, id: number, text: string) =>
  runner.call(
    'messages/edit_direct',
    partition,
    {
      ...withMessage(keys, directKeys(keys, chat, request), chat, id),
      ...{ pending: keys.pendingEdits(partition), edits_due: keys.editsDue(partition) },
    },
    {
      edit: pack([chatText(chat), `${id}`, `${bot}`, 'text', false]),
      ...{ content: pack({ text }), markup: Buffer.alloc(0), from: '', token: 't' },
    },
  );

const pin = (request: string, id: number) =>
  runner.call(
    'messages/pin_direct',
    partition,
    withMessage(keys, directKeys(keys, chat, request), chat, id),
    {
      pin: pack([chatText(chat), `${id}`, `${bot}`]),
      ...{ tail: tailOf('pinned', 2), from: pack({ id: bot }), notify: '', token: 't' },
    },
  );

async function newPost(): Promise<number> {
  const at = sharedKeys(keys, channel, 'post', bot);
  const sent = await runner.call('messages/send_shared', partition, at, {
    ...{ chat: chatText(channel), sender: `${bot}`, tails: [tailOf('post')], reply_to: '', keep: '' },
    ...{ token: 't', from: pack({ id: bot }), partition: `${partition}` },
  });
  await client.config('RESETSTAT');
  return sent.status === 'ok' ? sent.post : 0;
}

const react = (request: string, post: number, user: number, what = 'set') =>
  runner.call(
    'posts/react',
    partition,
    {
      ...postKeys(keys, post),
      user_ticket: keys.ticket(`${keys.acted(post)}${user}`),
      request: keys.request(partition, request),
    },
    {
      reaction: pack([
        ...[`${post}`, `${partition}`, `${Math.floor(post / limits.partitions_max)}`, what, '👍', `${user}`],
      ]),
      ...{ external: Buffer.alloc(16, user), known: '-', token: 't' },
    },
  );

const statuses = (replies: ReadonlyArray<{ status: string }>) => replies.map(({ status }) => status);

const textOf = async (id: number) =>
  unpackMessage((await client.getBuffer(keys.message(chat, id))) as Buffer).content;

/** Returns how many scripts Redis ran since the start of the test. */
async function scriptsRun(): Promise<number> {
  const stats = await client.info('commandstats');
  const calls = [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+),.*?failed_calls=(\d+)/gm)];
  return calls.reduce((sum, [, n, failed]) => sum + Number(n) - Number(failed), 0);
}

/** Returns the entities in the journal. Throws if there is a gap in the versions or a wrong byte count. */
async function journaled(): Promise<string[]> {
  const entries = await client.xrangeBuffer(journal, '-', '+');
  let before = 0;
  let version: number = limits.versions_per_incarnation;
  for (const [id, fields] of entries) {
    expect(id.toString()).toBe(`${++version}-${before}`);
    for (let i = 1; i < fields.length; i += 2) before += (fields[i] as Buffer).length;
  }
  expect(await client.hmget(meta, 'ver', 'jw')).toEqual([`${version}`, `${before}`]);
  return entries.map(([, fields]) => String(fields[1]));
}
const msg = (id: number) => `msg:${chatText(chat)}:${id}`;

test('edits in a combined run are applied in order, and a refused edit changes nothing', async () => {
  const replies = await Promise.all([
    ...[edit('a', 1, 'one'), edit('b', 1, 'again'), edit('c', 9, 'none'), edit('d', 3, 'text')],
    edit('e', 2, 'two'),
  ]);
  expect(await scriptsRun()).toBe(1);
  expect(statuses(replies)).toEqual(['ok', 'too_often', 'not_found', 'not_modified', 'ok']);
  expect([await textOf(1), await textOf(2), await textOf(3)]).toEqual([
    { text: 'one' },
    { text: 'two' },
    { text: 'text' },
  ]);
  expect((await journaled()).slice(3)).toEqual([msg(1), msg(2)]);
  const kept = await Promise.all((await client.keys('*}:req:*')).map((key) => client.get(key)));
  expect(kept.flatMap((answers) => answers?.match(/^\d\d (?=.*\n)/gm) ?? []).sort()).toEqual(['10 ', '14 ']);
});

test('two edits with one request id in a combined run are applied once and get the same answer', async () => {
  const replies = await Promise.all([
    edit('once.a.1', 1, 'one'),
    edit('once.a.1', 1, 'one'),
    edit('b', 2, 'two'),
  ]);
  expect(await scriptsRun()).toBe(1);
  expect(statuses(replies)).toEqual(['ok', 'ok', 'ok']);
  expect(replies[1]).toEqual(replies[0]);
  expect((await journaled()).slice(3)).toEqual([msg(1), msg(2)]);
});

test('pins in a combined run replace each other in order, and each pin has its service message', async () => {
  const replies = await Promise.all([
    ...[pin('a', 1), pin('once.b.1', 2), pin('once.b.1', 2), pin('c', 2), pin('d', 4), pin('e', 3)],
  ]);
  expect(await scriptsRun()).toBe(1);
  // Message 4 is the service message of the first pin.
  expect(statuses(replies)).toEqual(['ok', 'ok', 'ok', 'ok', 'service', 'ok']);
  expect(await client.hmget(keys.chat(chat), 'pin', 's')).toEqual(['3', '6']);
  const marks = `pin:${chatText(chat)}`;
  expect((await journaled()).slice(3)).toEqual([msg(4), marks, msg(5), marks, msg(6), marks]);
  expect(await client.xlen(keys.queue(bot))).toBe(3);
});

test('reactions in a combined run are counted in order, and two reactions with one request id count once', async () => {
  const post = await newPost();
  const replies = await Promise.all([
    ...[
      react('a', post, 11),
      react('once.b.1', post, 12),
      react('once.b.1', post, 12),
      react('c', post, 11, 'remove'),
    ],
    ...[react('d', post + limits.partitions_max, 11), react('e', post, 13)],
  ]);
  expect(await scriptsRun()).toBe(1);
  expect(statuses(replies)).toEqual(['ok', 'ok', 'ok', 'ok', 'post_missing', 'ok']);
  expect(replies.map((each) => each.status === 'ok' && each.changed)).toEqual([
    ...[true, true, false, true, false, true],
  ]);
  expect(await client.hmget(keys.post(post), 'u', 'n:👍')).toEqual(['2', '2']);
  expect((await journaled()).slice(5).map((each) => each.split(':')[0])).toEqual([
    ...['react', 'tally', 'react', 'tally', 'react', 'tally', 'react', 'tally'],
  ]);
});

test('while the journal is full, a combined run applies each removal of a reaction and refuses each new reaction', async () => {
  const post = await newPost();
  for (const user of [11, 12]) await react(`before ${user}`, post, user);
  await client.hset(meta, 'hw', await client.xlen(journal));
  await client.config('RESETSTAT');
  const replies = await Promise.allSettled([
    ...[react('a', post, 21), react('b', post, 11, 'remove'), react('c', post, 22)],
    ...[react('d', post, 12, 'remove'), react('e', post, 23)],
  ]);
  expect(await scriptsRun()).toBe(1);
  expect(replies.map(({ status }) => status)).toEqual([
    ...['rejected', 'fulfilled', 'rejected', 'fulfilled', 'rejected'],
  ]);
  expect(replies[2]).toMatchObject({ reason: { kind: 'too_many_requests' } });
  expect(await client.hget(keys.post(post), 'u')).toBe('0');
  await journaled();
});

test('each edit, pin or reaction in a combined run is applied once, even if the reply to the run is lost', async () => {
  const post = await newPost();
  const loseAnswer = async (calls: ReadonlyArray<Promise<{ status: string }>>) => {
    await new Promise(setImmediate);
    connection.client.stream.destroy();
    expect(statuses(await Promise.all(calls))).toEqual(['ok', 'ok']);
  };
  await loseAnswer([edit('a', 1, 'one'), edit('b', 2, 'two')]);
  await loseAnswer([pin('c', 1), pin('d', 2)]);
  await loseAnswer([react('e', post, 11), react('f', post, 12)]);
  expect(await client.hmget(keys.chat(chat), 'pin', 's')).toEqual(['2', '5']);
  expect(await client.hget(keys.post(post), 'u')).toBe('2');
  expect((await journaled()).length).toBe(5 + 2 + 4 + 4);
});

test('the longest combined run of edits, pins or reactions takes Redis less than 2 ms', async () => {
  await client.config('SET', 'slowlog-log-slower-than', '0');
  const post = await newPost();
  for (let i = 4; i < 4 + 5 * 14; i++) await send(`more ${i}`);
  const took = { edits: [] as number[], pins: [] as number[], reactions: [] as number[] };
  const measure = async (into: number[], calls: () => Array<Promise<{ status: string }>>) => {
    await client.call('SLOWLOG', 'RESET');
    expect(new Set(statuses(await Promise.all(calls())))).toEqual(new Set(['ok']));
    const entries = (await client.call('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
    const runs = entries.filter(([, , , [name]]) => name === 'evalsha').map(([, , us]) => us);
    expect(runs).toHaveLength(1);
    into.push(...runs);
  };
  const many = <T>(count: number, call: (i: number) => T) => Array.from({ length: count }, (_, i) => call(i));
  await Promise.all([edit('load 1', 1, 'a'), edit('load 2', 2, 'a')]);
  await Promise.all([pin('load 3', 1), pin('load 4', 2)]);
  await Promise.all([react('load 5', post, 5_000), react('load 6', post, 5_001)]);
  for (let round = 0; round < 5; round++) {
    await measure(took.pins, () => many(8, (i) => pin(`p${round}.${i}`, 1 + (i % 3))));
    await measure(took.reactions, () => many(8, (i) => react(`r${round}.${i}`, post, 100 + round * 8 + i)));
    // Each message can be edited only once a second. Each round therefore edits messages that no earlier round edited.
    await measure(took.edits, () => many(14, (i) => edit(`e${round}.${i}`, 4 + round * 14 + i, 'edited')));
  }
  for (const runs of Object.values(took)) expect(Math.min(...runs)).toBeLessThan(2_000);
});
