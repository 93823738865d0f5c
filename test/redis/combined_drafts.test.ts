/**
 * Tests changes of drafts that share one run of their script. Also tests which data about drafts survive a restart of
 * Redis.
 */
import { rm } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startRedis } from '../../src/dev/redis.js';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { pack } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, makeKeys } from '../../src/store/core/keys.js';
import { directKeys, shownDraftKeys } from '../../src/store/core/script_keys.js';
import { temporaryFolder } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

const keys = makeKeys(4);
const bot = 100_001;
const partition = keys.partitions.of(bot);
const meta = keys.meta(partition);
const chats = [5, 6, 7].map((user) => directChat(bot, user));
const [one, other, third] = chats as [ChatRef, ChatRef, ChatRef];

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
    async recover(recovered, run) {
      await client.hset(keys.meta(recovered), { run, hw: 100_000 });
      await client.hsetnx(keys.meta(recovered), 'ver', limits.versions_per_incarnation);
    },
  });
}

async function close() {
  await connection.close();
  client.disconnect();
  await redis.stop();
}

const show = (chat: ChatRef, text: string, id = '1') =>
  runner.call('chats/show_draft', keys.partitions.of(chat.id), shownDraftKeys(keys, chat), {
    ...{ token: 'T', id, flags: 's', content: `{"text":"${text}"}` },
  });
const stop = (chat: ChatRef) =>
  runner.call(
    'updates/stop_draft',
    partition,
    { draft: keys.draft(chat), ...directKeys(keys, chat, `stop${chat.user}`) },
    { token: 'T', chat: chatText(chat), id: '1', from: 'f' },
  );
const textOf = (chat: ChatRef) => client.hget(keys.draft(chat), 'c');
const fileBytes = async () => Number(/^aof_current_size:(\d+)/m.exec(await client.info('persistence'))?.[1]);

/** Returns how many scripts Redis ran since the counters were reset. */
async function scriptsRun(): Promise<number> {
  const stats = await client.info('commandstats');
  const calls = [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)];
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}

beforeEach(async () => {
  dir = temporaryFolder();
  await open();
  for (const chat of chats) {
    const profile = pack({ id: chat.user, n: 'A' });
    await client.hset(keys.chat(chat), { s: 7, i: 1, v: 0, c: 0, p: profile, b: '', pi: 1, t: 'direct' });
  }
  await client.hset(keys.queueState(bot), {
    seq: 41,
    inc: 1,
    bytes: 0,
    mask: 16_383,
    wi: 1,
    wv: 5,
    wp: 'all',
  });
  // Makes three calls before each test. They open the partition, and load the script for single calls and the script
  // for combined runs.
  await show(third, 'first');
  await Promise.all([show(third, 'second'), show(third, 'third')]);
  await client.config('RESETSTAT');
});
afterEach(async () => {
  await close();
  await rm(dir, { recursive: true, force: true });
});

test('changes of drafts in one event loop turn share a script run, and each change has its own reply', async () => {
  const hints: string[] = [];
  const subscriber = new Redis(redis.url);
  await subscriber.ssubscribe(keys.chatChannel(one));
  subscriber.on('smessage', (_, hint) => hints.push(hint));
  await client.hset(keys.chat(other), 't', 'blocked');
  const unknown = directChat(bot, 999);
  const answers = await Promise.all([
    ...[show(one, 'a'), show(other, 'b'), show(unknown, 'c'), show(one, 'd')],
    show(one, 'e', '2'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(['ok', 'blocked', 'chat_missing', 'ok', 'ok']);
  expect(await scriptsRun()).toBe(1);
  await subscriber.ping();
  expect(hints).toEqual([
    'draft 1 7 -s {"text":"a"}',
    'draft 1 7 -s {"text":"d"}',
    'draft 2 7 -s {"text":"e"}',
  ]);
  expect(await textOf(one)).toBe('{"text":"e"}');
  expect(await client.exists(keys.draft(other), keys.draft(unknown))).toBe(0);
  subscriber.disconnect();
});

test('changes of drafts in several partitions share a script run, and only the calls on a closed partition are retried', async () => {
  const bots = [bot, bot + 1, bot + 2];
  expect(new Set(bots.map(keys.partitions.of)).size).toBe(3);
  const drafts = bots.flatMap((id) => [directChat(id, 5), directChat(id, 6)]);
  for (const chat of drafts) await client.hset(keys.chat(chat), { s: 7, pi: 1, t: 'direct' });
  // The first call in each partition opens the partition.
  for (const chat of drafts) await show(chat, 'first');
  await client.config('RESETSTAT');
  const showAll = () => Promise.all(drafts.map((chat) => show(chat, 'next', '2')));
  expect(new Set((await showAll()).map(({ status }) => status))).toEqual(new Set(['ok']));
  expect(await scriptsRun()).toBe(1);

  await client.hset(keys.meta(keys.partitions.of(bot + 1)), 'run', 'another');
  await client.config('RESETSTAT');
  expect(new Set((await showAll()).map(({ status }) => status))).toEqual(new Set(['ok']));
  expect(await scriptsRun()).toBe(3);
  expect(await Promise.all(drafts.map(textOf))).toEqual(drafts.map(() => '{"text":"next"}'));
});

test('if the reply to a combined run is lost, the runner retries each draft separately', async () => {
  const showing = Promise.all([show(one, 'a'), show(other, 'b')]);
  await new Promise(setImmediate);
  connection.client.stream.destroy();
  expect(await showing).toEqual([{ status: 'ok' }, { status: 'ok' }]);
  expect([await textOf(one), await textOf(other)]).toEqual(['{"text":"a"}', '{"text":"b"}']);
});

test('a combined run on a closed partition recovers the partition and shows every change', async () => {
  await client.hset(meta, 'run', 'another');
  expect(await Promise.all([show(one, 'a'), show(other, 'b')])).toEqual([{ status: 'ok' }, { status: 'ok' }]);
  expect([await textOf(one), await textOf(other)]).toEqual(['{"text":"a"}', '{"text":"b"}']);
});

test('a draft adds nothing to the append-only file, but a stopped draft is still stopped after a restart', async () => {
  const before = await fileBytes();
  await Promise.all([show(one, 'a'), show(other, 'b')]);
  expect(await fileBytes()).toBe(before);
  // Moves the time of the draft ten minutes ahead, so that the draft does not expire during the test.
  await client.hset(keys.draft(one), 't', Date.now() + 600_000);
  expect(await stop(one)).toMatchObject({ status: 'ok' });
  const stopped = await client.hgetall(keys.draft(one));
  const until = await client.pexpiretime(keys.draft(one));
  expect(stopped).toMatchObject({ i: '1', s: '7', f: 's', c: '', x: '1' });
  await close();
  await open();
  expect(await client.hgetall(keys.draft(one))).toEqual(stopped);
  expect(await client.pexpiretime(keys.draft(one))).toBe(until);
  expect(await client.exists(keys.draft(other))).toBe(0);
  await show(one, 'c');
  expect(await textOf(one)).toBe('');
});

test('if a stopped draft is changed, the stop is stored again for the full time to live, and survives a restart', async () => {
  await show(one, 'a');
  await stop(one);
  // Moves the time of the last store into the past, so that the next change stores the draft again.
  await client.hset(keys.draft(one), 't', Date.now() - limits.draft_store_interval_ms - 1);
  await client.pexpire(keys.draft(one), 20_000);
  await show(one, 'b');
  await close();
  await open();
  expect(await client.hget(keys.draft(one), 'x')).toBe('1');
  expect(await client.pttl(keys.draft(one))).toBeGreaterThan(20_000);
});
