/**
 * Tests on a real Redis that a request is applied only once, even if an answer is lost, an attempt arrives late, Redis
 * restarts, or the journal is trimmed.
 */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startRedis } from '../../src/dev/redis.js';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { Runner } from '../../src/redis/scripts/scripts.js';
import { pack, packMessageTail } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, makeKeys } from '../../src/store/core/keys.js';
import { directKeys, toUserKeys, withMessage } from '../../src/store/core/script_keys.js';
import { temporaryFolder } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

const keys = makeKeys(4);
const bot = 100_001;
const partition = keys.partitions.of(bot);
const chats = Array.from({ length: 200 }, (_, i) => directChat(bot, 5 + i));
const chat = chats[0] as ChatRef;
const [meta, journal] = [keys.meta(partition), keys.journal(partition)];

/**
 * Starts a proxy between the runner and Redis. `lose` cuts the connection after Redis has answered a command that
 * contains the given text, so that the answer is lost. `delay` cuts the connection and holds back the command that
 * contains the given text. `arrive` then sends this command to Redis. `gate` delays new connections.
 */
async function startProxy(redisUrl: string) {
  const port = Number(new URL(redisUrl).port);
  const sockets = new Set<Socket>();
  let losing: string | null = null;
  let delaying: string | null = null;
  let late: { readonly upstream: Socket; readonly bytes: Buffer } | null = null;
  let opened: Promise<unknown> = Promise.resolve();
  const server = createServer({ pauseOnConnect: true }, async (client) => {
    sockets.add(client.on('error', () => undefined));
    await opened;
    const upstream = connect(port, '127.0.0.1');
    sockets.add(upstream.on('error', () => undefined));
    let lost = false;
    client.on('data', (bytes) => {
      if (delaying !== null && bytes.includes(delaying)) {
        delaying = null;
        late = { upstream, bytes };
        client.destroy();
        return;
      }
      if (losing !== null && bytes.includes(losing)) {
        losing = null;
        lost = true;
      }
      upstream.write(bytes);
    });
    client.on('close', () => late?.upstream !== upstream && upstream.end());
    upstream.on('data', (bytes) => (lost ? client.destroy() : client.write(bytes)));
    upstream.on('close', () => client.destroy());
    client.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(redisUrl);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    lose(text: string) {
      losing = text;
    },
    delay(text: string) {
      delaying = text;
    },
    gate(until: Promise<unknown>) {
      opened = until;
    },
    /** Sends the delayed command to Redis, and returns the reply. */
    async arrive(): Promise<string> {
      if (late === null) throw new Error('no command was delayed');
      const { upstream, bytes } = late;
      const reply = once(upstream, 'data');
      upstream.write(bytes);
      return String((await reply)[0]);
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

let dir: string;
let redis: Awaited<ReturnType<typeof startRedis>>;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let client: Redis;
let connection: RedisConnection;
let runner: Runner;

async function open() {
  redis = await startRedis({ dir, appendfsync: 'always', detached: false });
  proxy = await startProxy(redis.url);
  client = new Redis(redis.url);
  client.on('error', () => undefined);
  connection = new RedisConnection({ url: proxy.url, name: 'test' });
  await connection.ready(ready_ms_max);
  runner = newRunner(connection);
}

const newRunner = (to: RedisConnection) =>
  new Runner({
    connection: to,
    reconnectMsMax: 2_000,
    async recover(_, run) {
      const version = Number(await client.hget(meta, 'ver')) + limits.versions_per_incarnation;
      await client.hset(meta, { run, hw: 100_000, ver: version });
    },
  });

async function close() {
  await connection.close();
  await proxy.close();
  client.disconnect();
  await redis.stop();
}

const seedChat = (ref: ChatRef) =>
  client.hset(keys.chat(ref), {
    ...{ s: 0, i: 1, v: 0, c: 0, p: pack({ id: ref.user, n: 'A' }), b: '', pi: 1, t: 'direct' },
  });

beforeEach(async () => {
  dir = temporaryFolder();
  await open();
  await client.hset(meta, {
    run: connection.runId() as string,
    ...{ ver: limits.versions_per_incarnation, hw: 100_000 },
  });
  await client.hset(keys.queueState(bot), { seq: 1, inc: 1, bytes: 0, mask: 63 });
  await Promise.all(chats.map(seedChat));
  // Makes three calls before each test. They load the script for single calls and the script for combined runs, because
  // Redis would refuse a late command whose script it does not know.
  const idle = chats[190] as ChatRef;
  await send('once.warm.1', idle);
  await Promise.all([send('once.warm.2', idle), send('once.warm.3', idle)]);
  await client.xtrim(journal, 'MAXLEN', 0);
  await client.hset(keys.chat(idle), 's', 0);
});
afterEach(async () => {
  await close();
  await rm(dir, { recursive: true, force: true });
});

const tailOf = (text: string, kind = 1) =>
  packMessageTail({ sender: bot, kind, flags: 0, content: { text }, markup: null, origin: {} });

const send = (request: string, to: ChatRef = chat, text = 'text', by = runner) =>
  by.call('messages/send_to_user', partition, toUserKeys(keys, to, request), {
    ...{ chat: chatText(to), tails: [tailOf(text)], reply_to: '', token: 't', keep: 'r' },
  });

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

/** Sends a message: alone, or in a combined run with another message. */
const forms = {
  alone: (request: string, text: string) => [send(request, chat, text)],
  'in a run': (request: string, text: string) => [send(request, chat, text), send(`${request}2`, chats[1])],
};
const formNames = Object.keys(forms) as Array<keyof typeof forms>;

/**
 * Returns the ids in the request keys, except ids that begin with `once.`. Such ids belong to requests that other
 * processes may repeat.
 */
const requests = async () =>
  (await client.keys('*}:req:*'))
    .map((key) => key.slice(key.indexOf('}:req:') + 6))
    .filter((id) => !id.startsWith('once.'));
const sequence = (ref = chat) => client.hget(keys.chat(ref), 's');

test('the calls of a combined run share one key for their requests, and a single call has a separate key', async () => {
  await send('a');
  await Promise.all([send('b'), send('c', chats[1]), send('once.d.1', chats[2]), send('e', chats[3])]);
  const shared = (await requests()).filter((id) => id !== 'a');
  expect(shared).toHaveLength(1);
  const key = keys.request(partition, shared[0] as string);
  const answers = ['10 2', '11 1', '13 1'].map((start) => `${start} \\d{10} 0 1\n`).join('');
  expect(await client.get(key)).toMatch(new RegExp(`^${answers}$`));
  const ttl = await client.pttl(key);
  expect(ttl).toBeGreaterThan(limits.request_id_ttl_ms - 10_000);
  expect(ttl).toBeLessThanOrEqual(limits.request_id_ttl_ms);
});

test('the answer to a refused call is not stored, and a combined run of refused calls leaves no key', async () => {
  await client.hset(keys.chat(chats[1] as ChatRef), 't', 'blocked');
  const refused = [send('a', chats[1]), send('b', chats[1])];
  expect(await Promise.all(refused)).toMatchObject([{ status: 'blocked' }, { status: 'blocked' }]);
  expect(await requests()).toEqual([]);
  await Promise.all([send('c', chats[1]), send('d')]);
  const [shared] = await requests();
  expect(await client.get(keys.request(partition, shared as string))).toMatch(/^11 1 \d{10} 0 1\n$/);
});

test.each(['alone', 'in a run'])(
  'a call that was refused in a combined run is applied when the call is repeated %s',
  async (how) => {
    await client.hset(keys.chat(chat), 'pi', 2);
    const [refused, applied] = await Promise.all([send('a'), send('b', chats[1])]);
    expect([refused, applied]).toMatchObject([{ status: 'chat_missing' }, { status: 'ok', first: 1 }]);
    await client.hset(keys.chat(chat), { pi: 1, s: 40 });
    const again = [send('a'), ...(how === 'alone' ? [] : [send('c', chats[1])])];
    expect((await Promise.all(again))[0]).toMatchObject({ status: 'ok', first: 41 });
    expect(await sequence()).toBe('41');
  },
);

test('a request that other processes may repeat is applied once, even if two fronts send it', async () => {
  const other = newRunner(connection);
  const sent = await Promise.all([
    ...[send('once.x.1'), send('a', chats[1]), send('once.x.1', chat, 'text', other)],
    send('b', chats[2], 'text', other),
  ]);
  expect(sent[2]).toEqual(sent[0]);
  expect(sent).toMatchObject(sent.map(() => ({ status: 'ok', first: 1 })));
  // Each front sent a separate run, and each run has a separate key.
  expect(await requests()).toHaveLength(2);
});

describe.each(formNames)('a message that is sent %s', (form) => {
  test('a message is stored once if the answer to its call is lost', async () => {
    proxy.lose('marked');
    const sent = await Promise.all(forms[form]('a', 'marked'));
    expect(sent).toMatchObject(sent.map(() => ({ status: 'ok', first: 1 })));
    expect(await client.xlen(journal)).toBe(sent.length);
    expect(await send('b')).toMatchObject({ first: 2 });
  });

  test('a message is stored once if the first attempt arrives after the second', async () => {
    proxy.delay('marked');
    const sent = await Promise.all(forms[form]('a', 'marked'));
    expect(sent).toMatchObject(sent.map(() => ({ status: 'ok', first: 1 })));
    const before = await client.hgetall(meta);
    expect(await proxy.arrive()).toContain(form === 'alone' ? 'ok' : 'the calls of this run were repeated');
    expect(await client.hgetall(meta)).toEqual(before);
    expect(await client.xlen(journal)).toBe(sent.length);
    expect(await sequence()).toBe('1');
  });

  test('a message is stored once if the flusher wrote its journal entry before the call is repeated', async () => {
    proxy.lose('marked');
    const pending = Promise.all(forms[form]('a', 'marked'));
    await expect.poll(() => client.xlen(journal)).toBeGreaterThan(0);
    await client.xtrim(journal, 'MAXLEN', 0);
    expect((await pending)[0]).toMatchObject({ status: 'ok', first: 1 });
    expect(await sequence()).toBe('1');
  });

  test('a message is stored once if Redis is killed after the call and restarts', async () => {
    proxy.lose('marked');
    const { port } = new URL(redis.url);
    const pending = Promise.all(forms[form]('a', 'marked'));
    await expect.poll(() => client.xlen(journal)).toBeGreaterThan(0);
    process.kill(redis.pid, 'SIGKILL');
    await redis.stop();
    redis = await startRedis({ dir, port: Number(port), appendfsync: 'always', detached: false });
    // The restart raised the incarnation of the partition. The scripts therefore refuse the outdated copy of the chat.
    expect((await pending)[0]?.status).toMatch(/^(ok|chat_missing)$/);
    const inc = Math.floor(Number(await client.hget(meta, 'ver')) / limits.versions_per_incarnation);
    for (const ref of chats) await client.hset(keys.chat(ref), 'pi', inc);
    expect(await sequence()).toBe('1');
  });
});

test.each(formNames)(
  'a request sent %s is applied once if its answer is lost and a repeat is refused',
  async (form) => {
    let reconnect = () => {};
    proxy.gate(
      new Promise<void>((resolve) => {
        reconnect = resolve;
      }),
    );
    proxy.lose('marked');
    const [sending, ...others] = forms[form]('a', 'marked');
    await expect.poll(() => sequence()).toBe('1');
    // Makes the copy of the chat outdated, as after a failover. The script therefore refuses the second attempt.
    await client.hset(keys.chat(chat), 'pi', 2);
    reconnect();
    expect(await sending).toMatchObject({ status: 'chat_missing' });
    expect(await Promise.all(others)).toMatchObject(others.map(() => ({ status: 'ok', first: 1 })));
    await client.hset(keys.chat(chat), 'pi', 1);
    // The store loads the chat and then sends the request again, together with other calls.
    const again = await Promise.all([send('c', chats[2]), send('a', chat, 'marked'), send('d', chats[3])]);
    expect(again).toMatchObject(again.map(() => ({ status: 'ok', first: 1 })));
    expect(await sequence()).toBe('1');
  },
);

test('each pin of a combined run is applied once, even if the reply is lost or the run arrives late', async () => {
  await Promise.all([send('a'), send('b')]);
  await Promise.all([pin('warm', 1), pin('warm2', 2)]);
  proxy.lose(`msg:${chatText(chat)}:1`);
  expect(await Promise.all([pin('p', 1), pin('q', 2)])).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
  expect(await client.hmget(keys.chat(chat), 's', 'pin')).toEqual(['6', '2']);
  proxy.delay(`msg:${chatText(chat)}:1`);
  expect(await Promise.all([pin('r', 1), pin('s', 2)])).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
  const before = await client.hgetall(meta);
  const reply = await proxy.arrive();
  expect(reply.match(/the calls of this run were repeated/g)).toHaveLength(2);
  expect(await client.hgetall(meta)).toEqual(before);
  expect(await client.hmget(keys.chat(chat), 's', 'pin')).toEqual(['8', '2']);
});

test('a combined run that arrives late is refused if any of its calls was already retried successfully', async () => {
  proxy.delay('marked');
  await client.hset(keys.chat(chats[1] as ChatRef), 't', 'blocked');
  const sent = await Promise.all([send('a', chat, 'marked'), send('b', chats[1])]);
  expect(sent).toMatchObject([{ status: 'ok', first: 1 }, { status: 'blocked' }]);
  await client.hset(keys.chat(chats[1] as ChatRef), 't', 'direct');
  await proxy.arrive();
  expect([await sequence(), await sequence(chats[1])]).toEqual(['1', '0']);
});
