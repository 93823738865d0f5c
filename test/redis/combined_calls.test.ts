/**
 * Tests script calls that share one run of their script, on a real Redis: replies, refusals, faults, limits and
 * crashes.
 */
import { readdir, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startRedis } from '../../src/dev/redis.js';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { pack, packMessageTail } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, makeKeys } from '../../src/store/core/keys.js';
import { toUserKeys } from '../../src/store/core/script_keys.js';
import { temporaryFolder } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

const keys = makeKeys(4);
const bot = 100_001;
const partition = keys.partitions.of(bot);
const chats = Array.from({ length: 40 }, (_, i) => directChat(bot, 5 + i));
const chat = chats[0] as ChatRef;
const [meta, journal] = [keys.meta(partition), keys.journal(partition)];

let dir: string;
let redis: Awaited<ReturnType<typeof startRedis>>;
let connection: RedisConnection;
let client: Redis;
let runner: ScriptRunner;

async function open() {
  redis = await startRedis({ dir, appendfsync: 'always', detached: false });
  connection = new RedisConnection({ url: redis.url, name: 'test' });
  client = new Redis(redis.url);
  client.on('error', () => undefined);
  await connection.ready(ready_ms_max);
  runner = new Runner({
    connection,
    reconnectMsMax: 1_000,
    async recover(_, run) {
      await client.hset(meta, { run, hw: 100_000 });
      await client.hsetnx(meta, 'ver', limits.versions_per_incarnation);
    },
  });
}

async function close() {
  await connection.close();
  client.disconnect();
  await redis.stop();
}

const seedChat = (ref: ChatRef) =>
  client.hset(keys.chat(ref), {
    s: 0,
    i: 1,
    v: 0,
    c: 0,
    p: pack({ id: ref.user, n: 'A' }),
    b: '',
    pi: 1,
    t: 'direct',
  });

beforeEach(async () => {
  dir = temporaryFolder();
  await open();
  await Promise.all(chats.map(seedChat));
  // Makes three calls before each test. They open the partition, and load the script for single calls and the script
  // for combined runs.
  await send('first', chats[39]);
  await Promise.all([send('second', chats[39]), send('third', chats[39])]);
  await client.config('RESETSTAT');
});
afterEach(async () => {
  await close();
  await rm(dir, { recursive: true, force: true });
});

const tailOf = (text: string) =>
  packMessageTail({ sender: bot, kind: 1, flags: 0, content: { text }, markup: null, origin: {} });

interface Sent {
  readonly texts?: readonly string[];
  readonly replyTo?: string;
  readonly keep?: string;
}

const send = (
  request: string,
  to: ChatRef = chat,
  { texts = ['text'], replyTo = '', keep = 'r' }: Sent = {},
) =>
  runner.call('messages/send_to_user', partition, toUserKeys(keys, to, request), {
    ...{ chat: chatText(to), tails: texts.map(tailOf), reply_to: replyTo, token: 't', keep },
  });

/** Returns how many scripts Redis ran since the start of the test. */
async function scriptsRun(): Promise<number> {
  const stats = await client.info('commandstats');
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
}

async function appendOnlyFile(): Promise<string> {
  const folder = join(dir, 'appendonlydir');
  const name = (await readdir(folder)).find((file) => file.endsWith('.incr.aof'));
  return join(folder, String(name));
}

const fileBytes = async () => (await stat(await appendOnlyFile())).size;

const record = (ref: ChatRef, id: number) => client.getBuffer(keys.message(ref, id));

test('calls on one partition in one event loop turn share a script run, and each call gets its own reply', async () => {
  const sent = await Promise.all([send('a'), send('b', chats[1]), send('c'), send('d', chats[2])]);
  expect(sent.map((each) => each.status === 'ok' && each.first)).toEqual([1, 1, 2, 1]);
  expect(sent.map((each) => each.status === 'ok' && each.peer)).toEqual(
    [chats[0], chats[1], chats[0], chats[2]].map((ref) => pack({ id: ref?.user, n: 'A' })),
  );
  expect(await scriptsRun()).toBe(1);
  const journaled = (await client.xrange(journal, '-', '+')).slice(3).map(([, fields]) => fields[1]);
  expect(journaled).toEqual(
    [
      [chat, 1],
      [chats[1], 1],
      [chat, 2],
      [chats[2], 1],
    ].map(([ref, id]) => `msg:${chatText(ref as ChatRef)}:${id}`),
  );
});

test('a combined run leaves the same versions and byte counts as single calls', async () => {
  await Promise.all([send('a'), send('b', chats[1], { texts: ['x', 'longer'] }), send('c', chats[2])]);
  await send('d');
  const entries = await client.xrange(journal, '-', '+');
  const sizes = await Promise.all(
    (await client.xrangeBuffer(journal, '-', '+')).map(
      ([, fields]) => (fields[1] as Buffer).length + (fields[3] as Buffer).length,
    ),
  );
  let before = 0;
  for (const [i, [id]] of entries.entries()) {
    expect(id).toBe(`${limits.versions_per_incarnation + i + 1}-${before}`);
    before += sizes[i] as number;
  }
  expect(await client.hmget(meta, 'ver', 'jw')).toEqual([
    `${limits.versions_per_incarnation + entries.length}`,
    `${before}`,
  ]);
});

test('if only one call is made in an event loop turn, it is sent alone, in the same turn', async () => {
  const sending = send('a');
  await new Promise(setImmediate);
  expect(connection.client.commandQueue.length).toBe(1);
  expect(await sending).toMatchObject({ status: 'ok', first: 1 });
  expect(await client.info('commandstats')).toMatch(/cmdstat_evalsha:calls=1,/);
});

test('in a combined run, a refused call changes nothing, and the other calls are applied', async () => {
  const unknown = directChat(bot, 999);
  await client.hset(keys.chat(chats[3] as ChatRef), 't', 'blocked');
  const before = await client.dump(keys.chat(chats[3] as ChatRef));
  const sent = await Promise.all([
    ...[send('a'), send('b', unknown), send('c', chat, { replyTo: '77' }), send('d', chats[3])],
    send('e', chat, { replyTo: '1' }),
  ]);
  expect(await scriptsRun()).toBe(1);
  expect(sent.map(({ status }) => status)).toEqual([
    'ok',
    'chat_missing',
    'reply_not_found',
    'blocked',
    'ok',
  ]);
  expect(sent[4]).toMatchObject({ first: 2, reply: await record(chat, 1) });
  const kept = await Promise.all((await client.keys('*}:req:*')).map((key) => client.get(key)));
  expect(kept.flatMap((answers) => answers?.match(/^\d\d (?=.*\n)/gm) ?? []).sort()).toEqual([
    // The list includes the answers to the two calls that `beforeEach` sent in one run.
    ...['10 ', '10 ', '11 ', '14 '],
  ]);
  expect(await client.exists(keys.chat(unknown))).toBe(0);
  expect(await client.dump(keys.chat(chats[3] as ChatRef))).toBe(before);
});

test('two calls with one request id in a combined run are applied once and get the same answer', async () => {
  const [one, other, third] = await Promise.all([send('once.same.1'), send('once.same.1'), send('other')]);
  expect(await scriptsRun()).toBe(1);
  expect(other).toEqual(one);
  expect([one, third]).toMatchObject([{ first: 1 }, { first: 2 }]);
  expect(await client.xlen(journal)).toBe(5);
});

test('in a combined run, a call that also stores a reply keyboard does not disturb the versions of the other calls', async () => {
  const sent = await Promise.all([send('a'), send('b', chats[1], { keep: 'rk' }), send('c', chats[2])]);
  expect(await scriptsRun()).toBe(1);
  expect(sent.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  const versions = (await client.xrange(journal, '-', '+')).slice(3).map(([id]) => Number(id.split('-')[0]));
  expect(versions).toEqual([4, 5, 6, 7].map((n) => limits.versions_per_incarnation + n));
  expect(await client.hget(keys.chat(chats[1] as ChatRef), 'kb')).toBe('1');
  expect(await client.hget(meta, 'ver')).toBe(String(limits.versions_per_incarnation + 7));
});

test('an error in one call leaves the other calls of the combined run intact', async () => {
  await client.set(keys.message(chats[1] as ChatRef, 1), 'no record');
  await client.hset(keys.chat(chats[1] as ChatRef), 's', 'no number');
  const [one, two, three] = await Promise.allSettled([send('a'), send('b', chats[1]), send('c')]);
  expect(await scriptsRun()).toBe(1);
  expect([one, three]).toMatchObject([{ value: { first: 1 } }, { value: { first: 2 } }]);
  expect(two).toMatchObject({ status: 'rejected' });
  const { message } = (two as PromiseRejectedResult).reason as Error;
  expect(message).toMatch(/^messages\/send_to_user: .*lua\/lib\/\w+\.lua:\d+: attempt to/);
  expect(message).not.toContain('text');
  expect(await send('d')).toMatchObject({ status: 'ok', first: 3 });
});

test('a combined run contains a limited number of calls, messages and bytes', async () => {
  const runsOf = async (work: () => Array<Promise<unknown>>) => {
    await client.config('RESETSTAT');
    await Promise.all(work());
    return scriptsRun();
  };
  const many =
    (count: number, sent: Sent = {}) =>
    () =>
      Array.from({ length: count }, (_, i) =>
        send(`${count} ${JSON.stringify(sent).length} ${i}`, chats[i], sent),
      );
  expect(await runsOf(many(16))).toBe(1);
  expect(await runsOf(many(17))).toBe(2);
  // An album counts as one call per message.
  expect(await runsOf(many(4, { texts: ['1', '2', '3', '4', '5', '6', '7', '8'] }))).toBe(2);
  // If a single call exceeds a limit, the call is sent alone.
  expect(await runsOf(many(2, { texts: Array.from({ length: 20 }, (_, i) => `${i}`) }))).toBe(2);
  const third = 'x'.repeat(limits.combined_calls_bytes_max / 3);
  expect(await runsOf(many(2, { texts: [third] }))).toBe(1);
  expect(await runsOf(many(3, { texts: [third] }))).toBe(2);
});

test('calls of different scripts or partitions do not share a run', async () => {
  const other = keys.partitions.of(bot + 1);
  expect(other).not.toBe(partition);
  const recall = (p: number) =>
    runner.call('idempotency/recall', p, { request: keys.request(p, 'none') }, {});
  await recall(partition);
  await client.config('RESETSTAT');
  await Promise.all([send('a'), recall(partition), recall(other)]);
  expect(await scriptsRun()).toBe(3);
});

test('a combined run on a closed partition recovers the partition and applies every call once', async () => {
  await client.hset(meta, 'run', 'another');
  const sent = await Promise.all([send('a'), send('b'), send('c', chats[1])]);
  expect(sent.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  expect(await client.hget(keys.chat(chat), 's')).toBe('2');
  expect(await client.hget(keys.chat(chats[1] as ChatRef), 's')).toBe('1');
});

test('if Redis has lost the script of a combined run, the runner sends the whole script again', async () => {
  await client.script('FLUSH');
  const sent = await Promise.all([send('a'), send('b')]);
  expect(sent).toMatchObject([{ first: 1 }, { first: 2 }]);
  await client.config('RESETSTAT');
  await Promise.all([send('c'), send('d')]);
  expect(await client.info('commandstats')).not.toMatch(/cmdstat_eval:/);
});

test('if the reply to a combined run is lost, its calls are retried one by one, and each is applied once', async () => {
  const sending = Promise.all([send('a'), send('b'), send('c', chats[1])]);
  await new Promise(setImmediate);
  connection.client.stream.destroy();
  expect(await sending).toMatchObject([{ first: 1 }, { first: 2 }, { first: 1 }]);
  expect(await client.xlen(journal)).toBe(6);
});

test('if the memory of Redis fills up during a combined run, the run completes and the next run is refused', async () => {
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]);
  // Redis stores the text of each message three times: in the record, in the journal and with the request id.
  const sendAll = (round: number) =>
    Promise.allSettled(
      chats.slice(0, 8).map((ref, i) => send(`once.${round}.${i}`, ref, { texts: ['x'.repeat(7_000)] })),
    );
  let filled = false;
  for (let round = 0; round < 40 && !filled; round++) {
    const [before, max] = [await client.xlen(journal), (await used()) + 20_000 * round];
    await client.config('SET', 'maxmemory', max);
    const outcomes = new Set((await sendAll(round)).map(({ status }) => status));
    expect(outcomes.size).toBe(1);
    const applied = outcomes.has('fulfilled');
    expect(await client.xlen(journal)).toBe(before + (applied ? 8 : 0));
    expect(await client.exists(keys.request(partition, `once.${round}.0`))).toBe(applied ? 1 : 0);
    filled = applied && (await used()) > max;
  }
  expect(filled).toBe(true);
  const refused = { reason: { kind: 'too_many_requests', retryAfter: 1 } };
  expect(await sendAll(99)).toMatchObject(Array(8).fill(refused));
  await client.config('SET', 'maxmemory', '0');
});

test('a combined run of the maximum number of calls takes Redis less than 2 ms', async () => {
  await client.config('SET', 'slowlog-log-slower-than', '0');
  const took: number[] = [];
  for (let round = 0; round < 10; round++) {
    await client.call('SLOWLOG', 'RESET');
    await Promise.all(Array.from({ length: 16 }, (_, i) => send(`t${round}.${i}`, chats[i])));
    const entries = (await client.call('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
    const runs = entries.filter(([, , , [name]]) => name === 'evalsha').map(([, , us]) => us);
    expect(runs).toHaveLength(1);
    took.push(...runs);
  }
  expect(Math.min(...took)).toBeLessThan(2_000);
});

test('if the append-only file ends within a combined run, Redis drops the whole run', async () => {
  await Promise.all([send('a'), send('b', chats[1])]);
  const size = await fileBytes();
  await Promise.all([send('c'), send('d', chats[1]), send('e', chats[2])]);
  const whole = await fileBytes();
  await close();
  // The append-only file now ends inside the last call of the second run.
  await truncate(await appendOnlyFile(), whole - 60);
  expect(whole - size).toBeGreaterThan(600);
  await open();
  expect(await client.exists(...['c', 'd', 'e'].map((id) => keys.request(partition, id)))).toBe(0);
  await checkWhole(
    new Map([
      ['a', [chat, 1]],
      ['b', [chats[1] as ChatRef, 1]],
    ]),
  );
});

/**
 * Returns how many answers Redis stores under request ids. A key that several calls of a run share has one line for
 * each answer.
 */
async function answersKept(): Promise<number> {
  const found = await client.keys('*}:req:*');
  const values = await Promise.all(found.map((key) => client.get(key)));
  return values.reduce((sum, value) => sum + (value?.endsWith('\n') ? value.split('\n').length - 1 : 1), 0);
}

/** Throws unless every message of a chat is complete: sequence number, record, journal entry and request id. */
async function checkWhole(acknowledged: ReadonlyMap<string, readonly [ChatRef, number]>) {
  const entries = (await client.xrange(journal, '-', '+')).map(([, fields]) => fields[1] as string);
  const records = (await client.keys('*}:msg:*')).map((key) => key.slice(key.indexOf('}:') + 2));
  expect(records.sort()).toEqual([...entries].sort());
  expect(new Set(entries).size).toBe(entries.length);
  for (const ref of chats) {
    const ids = entries.filter((entity) => entity.startsWith(`msg:${chatText(ref)}:`)).length;
    expect(await client.hget(keys.chat(ref), 's')).toBe(String(ids));
  }
  expect(await answersKept()).toBe(entries.length);
  for (const [ref, id] of acknowledged.values()) expect(await record(ref, id)).not.toBeNull();
}

test('after Redis is killed at any moment, every acknowledged call is stored, and every other call is stored completely or not at all', async () => {
  for (let round = 0; round < 4; round++) {
    const acknowledged = new Map<string, readonly [ChatRef, number]>();
    let count = 0;
    let dead = false;
    const flood = async () => {
      while (!dead) {
        const calls = Array.from({ length: 30 }, async () => {
          const ref = chats[count % chats.length] as ChatRef;
          const request = `k${round}.${count++}`;
          const answer = await send(request, ref);
          if (answer.status === 'ok') acknowledged.set(request, [ref, answer.first]);
        });
        await Promise.allSettled(calls);
      }
    };
    const flooding = flood();
    await expect.poll(() => acknowledged.size).toBeGreaterThan(100 + round * 37);
    process.kill(redis.pid, 'SIGKILL');
    dead = true;
    await connection.close();
    await flooding;
    client.disconnect();
    await open();
    await checkWhole(acknowledged);
    await client.flushall();
    await Promise.all(chats.map(seedChat));
  }
});
