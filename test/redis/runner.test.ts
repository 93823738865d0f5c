/** Tests faults during a script call, on a real Redis. A proxy cuts and pauses the connection. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { createMemoryWatch } from '../../src/redis/memory.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { pack, packMessageTail } from '../../src/store/core/codec.js';
import { directChat, makeKeys } from '../../src/store/core/keys.js';
import { type FreshRedis, freshRedis } from '../support/servers.js';
import { fastest, ready_ms_max } from '../support/times.js';

/**
 * Starts a proxy between the client and Redis. `cut` ends the connection after the proxy has forwarded a command that
 * contains the given text.
 */
async function startProxy(port: number) {
  const sockets = new Set<Socket>();
  let cutOn: string | null = null;
  let down = false;
  const server = createServer((client) => {
    if (down) return client.destroy();
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    client.on('close', () => upstream.end());
    upstream.on('close', () => client.destroy());
    let cutting = false;
    client.on('data', (chunk) => {
      if (cutOn !== null && chunk.includes(cutOn)) {
        cutOn = null;
        cutting = true;
      }
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      // Redis has applied the command, but the answer is lost.
      if (cutting) client.destroy();
      else client.write(chunk);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    cut(text: string) {
      cutOn = text;
    },
    refuse(value: boolean) {
      down = value;
      if (value) for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const keys = makeKeys(4);
const chat = directChat(100_001, 5);
const partition = keys.partitions.of(chat.id);
let redis: FreshRedis;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let connection: RedisConnection;
let straight: RedisConnection;
let runner: ScriptRunner;
let recovered: string[];
let recover: (run: string) => Promise<unknown>;

beforeEach(async () => {
  redis = await freshRedis();
  proxy = await startProxy(redis.port);
  const url = new URL(redis.url);
  url.port = String(proxy.port);
  connection = new RedisConnection({ url: url.href, name: 'test' });
  straight = new RedisConnection({ url: redis.url, name: 'straight' });
  await Promise.all([connection.ready(ready_ms_max), straight.ready(ready_ms_max)]);
  recovered = [];
  recover = (run) =>
    straight.client.hset(keys.meta(partition), { run, ver: limits.versions_per_incarnation, hw: 10 });
  runner = new Runner({
    connection,
    async recover(at, run) {
      recovered.push(`${at} ${run}`);
      await recover(run);
    },
    reconnectMsMax: 1_500,
  });
  await straight.client.hset(keys.chat(chat), {
    s: 0,
    i: 1,
    v: 0,
    c: 0,
    p: pack({ id: 5, n: 'A' }),
    b: '',
    pi: 1,
  });
});
afterEach(async () => {
  await Promise.all([connection.close(), straight.close()]);
  await proxy.close();
  await redis.stop();
});

const tail = packMessageTail({
  sender: 5,
  kind: 1,
  flags: 0,
  content: { text: 'x'.repeat(100) },
  markup: null,
  origin: {},
});
const send = (request: string) => sendBy(runner, request);
const sendBy = (through: ScriptRunner, request: string) =>
  through.call(
    'messages/send_to_user',
    partition,
    {
      ...{ meta: keys.meta(partition), journal: keys.journal(partition), chat: keys.chat(chat) },
      ...{ request: keys.request(partition, request), message: keys.messages(chat) },
      ...{ changes: keys.changes(chat), channel: keys.chatChannel(chat) },
    },
    { chat: '100001.5', tails: [tail], reply_to: '', token: 't', keep: 'r' },
  );
const due = keys.webhooksDue(partition);
/** Makes a call that changes data, frees memory and has no request id. */
const sweep = () =>
  runner.call('webhooks/sweep', partition, { due, state: keys.queueStateRoot(partition) }, { limit: 10 });
const journalLength = () => straight.client.xlen(keys.journal(partition));
const tooMany = { kind: 'too_many_requests', retryAfter: 1 };
const unavailable = { kind: 'unavailable', retryAfter: 1 };

test('if a partition was never opened, a call recovers the partition once and succeeds', async () => {
  expect(await send('r1')).toMatchObject({ status: 'ok', first: 1 });
  expect(recovered).toEqual([`${partition} ${connection.runId()}`]);
  expect(await send('r2')).toMatchObject({ status: 'ok', first: 2 });
  expect(recovered).toHaveLength(1);
});

test('if a partition stays closed, a call on the partition fails as unavailable', async () => {
  recover = async () => undefined;
  await expect(send('r1')).rejects.toMatchObject(unavailable);
  expect(recovered).toHaveLength(3);
  expect(await journalLength()).toBe(0);
});

test('recovery errors are returned to the caller', async () => {
  recover = () => Promise.reject(new Error('Postgres is away'));
  await expect(send('r1')).rejects.toThrow('Postgres is away');
});

test('if Redis no longer has a script, the script is sent again in full', async () => {
  await send('r1');
  await straight.client.script('FLUSH');
  expect(await send('r2')).toMatchObject({ first: 2 });
  const stats = await straight.client.info('commandstats');
  const evals = Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1]);
  await send('r3');
  const after = await straight.client.info('commandstats');
  expect(Number(/cmdstat_eval:calls=(\d+)/.exec(after)?.[1])).toBe(evals);
});

test('a call gets 429 while the journal of its partition is full', async () => {
  for (let i = 0; i < 10; i++) await send(`r${i}`);
  await expect(send('one more')).rejects.toMatchObject(tooMany);
  expect(await journalLength()).toBe(10);
});

test('a call with a request id is retried after a cut connection and applied once', async () => {
  await send('r1');
  proxy.cut('req:r2');
  expect(await send('r2')).toMatchObject({ status: 'ok', first: 2 });
  expect(await journalLength()).toBe(2);
  expect(await straight.client.hget(keys.chat(chat), 's')).toBe('2');
});

test('each attempt of a call has a new ticket token, so a retry cannot restore a ticket that was already used', async () => {
  await send('r1');
  const read = (bot: number, token: string) => {
    const record = keys.bot(bot);
    const at = { meta: keys.meta(partition), record, ticket: keys.ticket(record) };
    return runner.call('control/read', partition, at, { token, ttl_ms: 1_000 });
  };
  // The first call loads the script into Redis.
  await read(chat.id + keys.partitions.count, 'other');
  const sent = vi.spyOn(connection, 'send');
  proxy.cut('first-token');
  expect(await read(chat.id, 'first-token')).toMatchObject({ status: 'missing', ticket: '1 first-token' });
  expect(sent.mock.calls.map(([{ args }]) => args.includes('first-token'))).toEqual([true, false]);
});

test('a call without a request id reports an unknown outcome after a cut connection', async () => {
  await sweep();
  await straight.client.zadd(due, 1, chat.id);
  proxy.cut('webhooks_due');
  await expect(sweep()).rejects.toMatchObject(unavailable);
  expect(await straight.client.zcard(due)).toBe(0);
});

test('while Redis is unavailable, repeatable calls wait for a limited time and are then refused', async () => {
  await send('r1');
  proxy.refuse(true);
  await once(connection.client, 'close');
  const began = performance.now();
  const took = await fastest(1_000, () => expect(sweep()).rejects.toMatchObject(unavailable));
  expect(took).toBeLessThan(1_000);
  await expect(send('r2')).rejects.toMatchObject(unavailable);
  const waited = performance.now() - began;
  expect(waited).toBeGreaterThan(1_400);
  expect(waited).toBeLessThan(10_000);
  const pending = send('r3');
  proxy.refuse(false);
  expect(await pending).toMatchObject({ status: 'ok', first: 2 });
});

test('if Redis stops answering, pending calls fail before the connection is closed', async () => {
  // Sends two calls together, which loads the script for combined runs into Redis.
  await Promise.all([send('r0'), send('r1')]);
  process.kill(redis.pid, 'SIGSTOP');
  const { client } = connection;
  let gaveUp = false;
  client.once('close', () => {
    gaveUp = true;
  });
  try {
    await expect(Promise.allSettled([send('r2'), send('r3'), sweep()])).resolves.toMatchObject(
      Array.from({ length: 3 }, () => ({ status: 'rejected', reason: unavailable })),
    );
    expect(gaveUp).toBe(false);
    // Redis counts as unavailable: no command is sent to it, and calls that cannot be retried fail immediately.
    expect(connection.runId()).toBeNull();
    const owed = client.commandQueue.length;
    await expect(sweep()).rejects.toMatchObject(unavailable);
    expect(client.commandQueue.length).toBe(owed);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await connection.ready(ready_ms_max);
  // Redis has run the commands that it received before it was stopped. It therefore recognises the request id.
  expect(await send('r2')).toMatchObject({ status: 'ok', first: 3 });
  expect(await send('r4')).toMatchObject({ status: 'ok', first: 5 });
  expect(gaveUp).toBe(false);
});

test('a slow Redis that still answers does not count as unavailable', async () => {
  await send('r1');
  // The script takes some tenths of a second. It counts steps instead of reading the time, because TIME does not change
  // during a script from Redis 7.2 on.
  const slow = 'local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i end return 1';
  const busyMs = async (steps: number) => {
    const since = performance.now();
    await connection.client.eval(slow, 0, steps);
    return performance.now() - since;
  };
  let slowed = true;
  const slowing = (async () => {
    // Adjusts the number of steps until the script takes 200 ms, because the speed of the machine varies.
    for (let i = 0, steps = 4_000_000; i < 8; i++) steps = Math.round((steps * 200) / (await busyMs(steps)));
    slowed = false;
  })();
  let sent = 1;
  while (slowed) expect(await send(`r${++sent}`)).toMatchObject({ status: 'ok', first: sent });
  await slowing;
  expect(sent).toBeGreaterThan(2);
});

test('a call fails as unavailable if Redis accepts the connection but never answers', async () => {
  const mute = createServer(() => undefined);
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const { port } = mute.address() as { port: number };
  const at = new RedisConnection({ url: `redis://127.0.0.1:${port}`, name: 'mute' });
  const calls = new Runner({ connection: at, recover: async () => undefined, reconnectMsMax: 300 });
  const key = { request: keys.request(partition, 'r') };
  await expect(calls.call('idempotency/recall', partition, key, {})).rejects.toMatchObject(unavailable);
  await at.close();
  mute.close();
});

test('calls that add data to a nearly full Redis are refused until memory is free again', async () => {
  const memory = createMemoryWatch({ connection: straight });
  const watched = new Runner({ connection: straight, recover: async () => undefined, memory });
  await send('r1');
  const used = Number(/^used_memory:(\d+)/m.exec(await straight.client.info('memory'))?.[1]);
  const setTo = async (percent: number) => {
    await straight.client.config('SET', 'maxmemory', `${Math.round((used * 100) / percent)}`);
    await memory.check();
  };
  await setTo(limits.redis_full_percent - 5);
  expect(watched.isFull(partition)).toBe(false);
  await setTo(limits.redis_full_percent + 3);
  expect(watched.isFull(partition)).toBe(true);
  await expect(sendBy(watched, 'r2')).rejects.toMatchObject(tooMany);
  expect(await straight.client.exists(keys.request(partition, 'r2'))).toBe(0);
  await setTo(limits.redis_roomy_percent - 5);
  expect(await sendBy(watched, 'r2')).toMatchObject({ status: 'ok', first: 2 });
  // If `maxmemory` is not set in Redis, a setting of Petrel is the limit.
  await straight.client.config('SET', 'maxmemory', '0');
  await memory.check();
  expect(watched.isFull(partition)).toBe(false);
  const bounded = createMemoryWatch({ connection: straight, bytesMax: used });
  await bounded.check();
  expect(bounded.anyFull()).toBe(true);
});

test('calls to a full Redis get 429 and change nothing', async () => {
  await send('r1');
  const before = await straight.client.hgetall(keys.meta(partition));
  await straight.client.config('SET', 'maxmemory', '1');
  await expect(send('r2')).rejects.toMatchObject(tooMany);
  await expect(sweep()).resolves.toEqual({ status: 'ok', wake: [], unserved: [], more: false });
  await straight.client.config('SET', 'maxmemory', '0');
  expect(await straight.client.hgetall(keys.meta(partition))).toEqual(before);
  expect(await journalLength()).toBe(1);
  expect(await straight.client.exists(keys.request(partition, 'r2'))).toBe(0);
});

test('a Redis that refuses writes because it lacks replicas counts as unavailable', async () => {
  await send('r1');
  await straight.client.config('SET', 'min-replicas-to-write', '1');
  await expect(send('r2')).rejects.toMatchObject(unavailable);
});

test("an error in a script names the script and the line in the script's file", async () => {
  await send('r1');
  await straight.client.set(keys.journal(partition), 'not a stream');
  const fault = await send('r2').catch((error: Error) => error);
  expect(fault).toBeInstanceOf(Error);
  expect((fault as Error).message).toMatch(
    /^messages\/send_to_user \(lua\/lib\/partition\.lua:\d+\): .*WRONGTYPE/,
  );
  expect((fault as Error).message).not.toContain('xxx');
});

test('the runner throws for an unknown script name', async () => {
  await expect(runner.call('no/such' as never, 0, {} as never, {} as never)).rejects.toThrow('no script');
  // Does not measure the first call, because it also sends the script.
  for (const request of ['r1', 'r2']) await send(request);
  const { counts, sumMs } = runner.times.of('messages/send_to_user');
  expect(counts.reduce((a, b) => a + b)).toBe(1);
  expect(sumMs).toBeGreaterThan(0);
});
