/** Tests script calls on slots that move or have moved. Also tests which clusters a node refuses at its start. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkRedis } from '../../src/redis/check.js';
import { RedisCluster } from '../../src/redis/cluster.js';
import { Runner, type ScriptRunner } from '../../src/redis/scripts/scripts.js';
import { readRedirection, readSlots } from '../../src/redis/slots.js';
import { pack, packMessageTail } from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, makeKeys } from '../../src/store/core/keys.js';
import { toUserKeys } from '../../src/store/core/script_keys.js';
import { type FreshCluster, freshCluster } from '../support/cluster.js';
import { ready_ms_max } from '../support/times.js';

const keys = makeKeys(64);
const slots = keys.partitions.slots;

let cluster: FreshCluster;
let connection: RedisCluster;
let runner: ScriptRunner;
const recovered: string[] = [];

beforeAll(async () => {
  cluster = await freshCluster();
  connection = new RedisCluster({ seeds: [cluster.url], name: 'test', slots });
  await connection.ready(ready_ms_max);
  runner = new Runner({
    connection,
    async recover(partition, run) {
      recovered.push(`${partition} ${run}`);
      // Asks the cluster for the owner of the slot, because the connection's slot map may be older than the move of the
      // slot.
      const owner = await cluster.ownerOf(slots[partition] as number);
      await clientAt(owner).hset(keys.meta(partition), { run, hw: 10 });
      await clientAt(owner).hsetnx(keys.meta(partition), 'ver', 1);
    },
    reconnectMsMax: 1_000,
  });
});
afterAll(async () => {
  await connection?.close();
  await cluster?.stop();
});

const clientAt = (index: number) => (cluster.nodes[index] as FreshCluster['nodes'][number]).client;
const nodeAt = (partition: number) =>
  cluster.nodes.findIndex(({ url }) => url === connection.at(partition)?.url);
const lease = (partition: number, owner: string) =>
  runner.call('journal/lease', partition, { lease: keys.flushLease(partition) }, { owner, ms: 60_000 });
const renew = (partition: number) =>
  runner.call(
    'auth/renew',
    partition,
    {
      meta: keys.meta(partition),
      nodes: keys.authNodes().replace(keys.partitions.tag(0), keys.partitions.tag(partition)),
      revoked: keys.authRevoked().replace(keys.partitions.tag(0), keys.partitions.tag(partition)),
    },
    { node: 'n', known: 0, acked: 0, lease_ms: 1_000 },
  );

test('a client finds every master of a cluster if it knows one server', async () => {
  expect(new Set(connection.nodes().map(({ url }) => url))).toEqual(new Set(cluster.cluster));
  for (const [partition, slot] of slots.entries())
    expect(nodeAt(partition)).toBe(await cluster.ownerOf(slot));
});

test('a script call contains the run id of the server that runs the script', async () => {
  for (const partition of [0, 31, 63]) {
    await renew(partition);
    const own = connection.at(partition)?.runId();
    expect(recovered.at(-1)).toBe(`${partition} ${own}`);
    expect(await clientAt(nodeAt(partition)).hget(keys.meta(partition), 'run')).toBe(own);
  }
  expect(new Set(recovered.map((each) => each.split(' ')[1])).size).toBe(3);
});

test('after the error MOVED, a call runs once on the new master', async () => {
  const partition = 5;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  await cluster.beginMove(slot, from, to);
  await cluster.endMove(slot, to);
  expect(nodeAt(partition)).toBe(from);
  expect(await lease(partition, 'me')).toEqual({ status: 'ok' });
  expect(await clientAt(to).get(keys.flushLease(partition))).toBe('me');
  expect(nodeAt(partition)).toBe(to);
});

test('after the error ASK, a call runs on the new owner of the slot', async () => {
  const partition = 7;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  await clientAt(to).script('FLUSH');
  await cluster.beginMove(slot, from, to);
  expect(await lease(partition, 'first')).toEqual({ status: 'ok' });
  expect(await lease(partition, 'second')).toEqual({ status: 'taken' });
  expect(await clientAt(from).call('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(0);
  expect(await clientAt(to).call('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(1);
  expect(nodeAt(partition)).toBe(from);
  await cluster.endMove(slot, to);
  expect(await lease(partition, 'third')).toEqual({ status: 'taken' });
});

test('after the error TRYAGAIN, a call on several keys of a moving slot fails as unavailable and changes nothing', async () => {
  const partition = 9;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  await clientAt(from).hset(keys.meta(partition), 'run', 'r');
  await cluster.beginMove(slot, from, (from + 1) % 3);
  const began = performance.now();
  await expect(renew(partition)).rejects.toMatchObject({ kind: 'unavailable', retryAfter: 1 });
  // A repeatable call waits for the end of the slot move before it fails.
  expect(performance.now() - began).toBeGreaterThan(900);
  await clientAt(from).call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  await clientAt((from + 1) % 3).call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  expect(await clientAt(from).hgetall(keys.meta(partition))).toEqual({ run: 'r' });
  await renew(partition);
});

test('after the error TRYAGAIN, a repeatable call waits until the new master has all keys of the call', async () => {
  const partition = 11;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  await clientAt(from).hset(keys.meta(partition), 'run', 'r');
  await cluster.beginMove(slot, from, to);
  let ended = false;
  const waiting = renew(partition).finally(() => {
    ended = true;
  });
  const other = keys.partitions.slots.findIndex((_, p) => p !== partition && nodeAt(p) === from);
  for (let i = 0; i < 20; i++) await renew(other);
  expect(ended).toBe(false);
  while (!(await cluster.moveKeys(slot, from, to, 10))) await Promise.resolve();
  await cluster.endMove(slot, to);
  expect(await waiting).toMatchObject({ status: 'ok' });
  expect(nodeAt(partition)).toBe(to);
});

/** A partition, a bot in this partition, and the bot's chats with three users. */
function chatsIn(partition: number) {
  let bot = 100_001;
  while (keys.partitions.of(bot) !== partition) bot++;
  const chats = [5, 6, 7].map((user) => directChat(bot, user));
  const tail = packMessageTail({
    ...{ sender: bot, kind: 1, flags: 0, content: { text: 'text' }, markup: null, origin: {} },
  });
  const send = (chat: ChatRef, request: string) =>
    runner.call('messages/send_to_user', partition, toUserKeys(keys, chat, request), {
      ...{ chat: chatText(chat), tails: [tail], reply_to: '', token: 't', keep: 'r' },
    });
  return { chats, sendAll: (prefix: string) => Promise.all(chats.map((chat, i) => send(chat, prefix + i))) };
}

const seedChat = (at: number, chat: ChatRef) =>
  clientAt(at).hset(keys.chat(chat), {
    ...{ s: 0, i: 0, v: 0, c: 0, p: pack({ id: chat.user, n: 'A' }), b: '', pi: 0, t: 'direct' },
  });

test('after the error MOVED, each call of a combined run is applied once on the new master', async () => {
  const partition = 13;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  const { chats, sendAll } = chatsIn(partition);
  for (const chat of chats) await seedChat(from, chat);
  expect(await sendAll('a')).toMatchObject(chats.map(() => ({ status: 'ok', first: 1 })));
  await cluster.beginMove(slot, from, to);
  while (!(await cluster.moveKeys(slot, from, to, 100))) await Promise.resolve();
  await cluster.endMove(slot, to);
  expect(nodeAt(partition)).toBe(from);
  expect(await sendAll('b')).toMatchObject(chats.map(() => ({ status: 'ok', first: 2 })));
  expect(nodeAt(partition)).toBe(to);
  expect(await clientAt(to).xlen(keys.journal(partition))).toBe(6);
});

test('after the error TRYAGAIN, the calls of a combined run wait for the slot move, and each call is applied once', async () => {
  const partition = 15;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  const { chats, sendAll } = chatsIn(partition);
  for (const chat of chats) await seedChat(from, chat);
  await sendAll('a');
  await cluster.beginMove(slot, from, to);
  expect(await cluster.moveKeys(slot, from, to, 5)).toBe(false);
  const pending = sendAll('b');
  await sleep(100);
  while (!(await cluster.moveKeys(slot, from, to, 100))) await Promise.resolve();
  await cluster.endMove(slot, to);
  expect(await pending).toMatchObject(chats.map(() => ({ status: 'ok', first: 2 })));
  expect(await clientAt(to).xlen(keys.journal(partition))).toBe(6);
});

test('after the error ASK, the calls of a combined run wait for the end of the slot move, and the new owner applies each call once', async () => {
  const partition = 17;
  const [slot, from] = [slots[partition] as number, nodeAt(partition)];
  const to = (from + 1) % 3;
  const { chats, sendAll } = chatsIn(partition);
  for (const chat of chats) await seedChat(from, chat);
  await sendAll('a');
  await cluster.beginMove(slot, from, to);
  while (!(await cluster.moveKeys(slot, from, to, 100))) await Promise.resolve();
  await Promise.all([from, to].map((node) => clientAt(node).config('RESETSTAT')));
  const keysAt = (node: number) => clientAt(node).call('CLUSTER', 'COUNTKEYSINSLOT', slot);
  const present = await keysAt(to);
  const pending = sendAll('b');
  const refused = async (node: number, error: string) =>
    new RegExp(`errorstat_${error}:count=(\\d+)`).exec(await clientAt(node).info('errorstats'))?.[1];
  // The old owner has no keys in the slot. The new owner refuses calls with new keys until the move has ended.
  await expect.poll(() => refused(to, 'TRYAGAIN')).toBeDefined();
  expect(Number(await refused(from, 'ASK'))).toBeGreaterThan(0);
  expect(await keysAt(to)).toBe(present);
  await cluster.endMove(slot, to);
  expect(await pending).toMatchObject(chats.map(() => ({ status: 'ok', first: 2 })));
  expect(await clientAt(to).xlen(keys.journal(partition))).toBe(6);
  expect(await keysAt(from)).toBe(0);
});

test('a start is refused if a master may evict keys, or if the settings name the wrong kind of Redis', async () => {
  expect((await checkRedis([cluster.url])).warnings).toEqual([]);
  await expect(checkRedis(cluster.url)).rejects.toThrow(/REDIS_CLUSTER/);
  await clientAt(2).config('SET', 'maxmemory-policy', 'allkeys-lru');
  await expect(checkRedis([cluster.url])).rejects.toThrow(
    `:${cluster.nodes[2]?.port} cannot be used: its maxmemory`,
  );
  await clientAt(2).config('SET', 'maxmemory-policy', 'noeviction');
  await clientAt(1).config('SET', 'cluster-require-full-coverage', 'yes');
  expect((await checkRedis([cluster.url])).warnings).toEqual([expect.stringMatching(/full-coverage no/)]);
  await clientAt(1).config('SET', 'cluster-require-full-coverage', 'no');
});

test('if a master of a cluster is down, a start fails and the error names the master', async () => {
  const [dead, living] = [cluster.nodes[2], cluster.nodes[0]] as const;
  await dead?.kill();
  const check = checkRedis([dead?.url as string, living?.url as string], 2_000);
  await expect(check).rejects.toThrow(`:${dead?.port} cannot be used`);
  await dead?.start();
  await checkRedis(['redis://:x@127.0.0.1:1', living?.url as string], 2_000);
});

test('an address that a Redis server announces is used with the configured password and protocol', () => {
  const from = 'rediss://u:p@one.example:7000';
  const at = (text: string) => readRedirection(text, from);
  expect(at('MOVED 3999 10.0.0.1:6381')).toEqual({
    ...{ kind: 'MOVED', slot: 3999, url: 'rediss://u:p@10.0.0.1:6381' },
  });
  expect(at('ASK 1 :6381')?.url).toBe('rediss://u:p@one.example:6381');
  expect(at('MOVED 1 ?:6381')?.url).toBe('rediss://u:p@one.example:6381');
  expect(at('MOVED 1 ::1:6381')?.url).toBe('rediss://u:p@[::1]:6381');
  expect(at('CLUSTERDOWN The cluster is down')).toBeNull();
  expect(readSlots([[0, 5, [null, 7001]]], from)).toEqual([
    { start: 0, end: 5, url: 'rediss://u:p@one.example:7001' },
  ]);
});
