/**
 * Tests replays of dead letters when a process dies during a replay. Also tests that delivery attempts are recorded
 * after Postgres was unavailable for a while.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { beginningOf, shownAnswer } from '../../src/delivery/outbound/redact.js';
import type { Outcome } from '../../src/delivery/outcome.js';
import { Recorder } from '../../src/delivery/recorder.js';
import { purgeTombstones } from '../../src/journal/purge.js';
import { limits } from '../../src/limits.js';
import { packUpdate, unpackUpdate } from '../../src/store/updates/update_record.js';
import type { Delivery } from '../../src/store/webhooks/deliveries.js';
import { allDead } from '../../src/store/webhooks/replays.js';
import {
  makeDirect,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster.close());

const settings = {
  ...{ url: 'https://203.0.113.9/x', secretToken: null, certificate: null },
  ...{ maxConnections: 40, address: '203.0.113.9' },
};

async function bury(...texts: string[]) {
  const { user, bot, chat } = await makeDirect(node);
  const { store } = node;
  await store.webhooks.set(bot.id, settings, { drop: true, mask: null });
  for (const words of texts) await store.messages.send(chat, user.sender, text(words));
  const lease = await store.deliveries.lease(bot.id, 100);
  if (typeof lease === 'string') throw new Error(lease);
  const ids = lease.fresh.map(({ id }) => id);
  expect(await store.deliveries.deadLetter(bot.id, lease.fence, 'expired', ids)).toBe(true);
  await cluster.flush();
  await store.webhooks.remove(bot.id, false);
  await node.connection.client.hdel(cluster.keys.queueState(bot.id), 'leased');
  return { bot, deliveries: lease.fresh };
}

const waiting = async (bot: number) => (await node.store.queues.info(bot)).pending;
const inQueue = async (bot: Parameters<typeof poll>[1]) => shown(await poll(node, bot));

test('if a node dies before a replay reaches the queue, the sweep queues the updates once', async () => {
  const { bot } = await bury('one', 'two');
  const { replays, sweep } = node.store;
  const { call } = node.hooks;
  node.hooks.call = (name, run) => (name === 'webhooks/replay' ? Promise.reject(new Error('dead')) : run());
  await expect(replays.replay(bot.id, allDead)).rejects.toThrow('dead');
  // The row in webhook_replays does not say whether the node died before or after it queued the updates.
  node.hooks.call = call;
  expect(await replays.countDead(bot.id)).toBe(0);
  expect(await waiting(bot.id)).toBe(0);
  const [note] = await node.written.query<{ id: number }>('select id from webhook_replays');
  const twice = await cluster.node();
  twice.hooks.call = async (name, run) => {
    const result = await run();
    if (name === 'webhooks/replay') throw new Error('dead');
    return result;
  };
  await expect(twice.store.replays.finish(bot.id, note?.id ?? 0)).rejects.toThrow('dead');
  expect(await waiting(bot.id)).toBe(2);
  sweep.start();
  await expect.poll(async () => (await node.written.query('select 1 from webhook_replays')).length).toBe(0);
  await sweep.stop();
  expect(await inQueue(bot)).toEqual(['one', 'two']);
});

test('two concurrent replays queue each dead letter only once', async () => {
  const { bot } = await bury(...Array.from({ length: 7 }, (_, n) => `${n}`));
  const other = await cluster.node();
  const counts = await Promise.all([
    node.store.replays.replay(bot.id, allDead),
    other.store.replays.replay(bot.id, allDead),
  ]);
  expect(counts.reduce((sum, { queued }) => sum + queued, 0)).toBe(7);
  expect(await inQueue(bot)).toEqual(['0', '1', '2', '3', '4', '5', '6']);
});

test('writing a journal batch again does not restore dead letters that were replayed or discarded', async () => {
  for (const take of ['replay', 'discard'] as const) {
    const { bot } = await bury('one');
    const [row] = await node.written.query<{ version: number; record: Buffer; update_id: number }>(
      'select version, record, update_id from dead_updates where bot_id = $1',
      [bot.id],
    );
    if (!row) throw new Error('no dead letter');
    if (take === 'replay') await node.store.replays.replay(bot.id, allDead);
    else expect(await node.store.replays.discard(bot.id)).toBe(1);
    const journal = cluster.keys.journal(cluster.keys.partitions.of(bot.id));
    const { client } = node.connection;
    await client.del(journal);
    await client.xadd(
      journal,
      ...[`${row.version}-0`, 'k', `dead:${bot.id}:${row.update_id}`, 'i', row.record],
    );
    await cluster.flush();
    expect(await node.store.replays.countDead(bot.id)).toBe(0);
  }
});

test('packing and unpacking an update keeps every byte', () => {
  const fields = [0, 5, 31, 32, 255, 256, 65_535, 65_536].flatMap((length, i) => [
    Buffer.from(`n${i}`),
    Buffer.alloc(length, 0xfe),
  ]);
  const read = unpackUpdate(packUpdate(fields));
  expect(Object.keys(read)).toHaveLength(8);
  for (let i = 0; i < 8; i++) expect(read[`n${i}`]?.equals(fields[2 * i + 1] as Buffer)).toBe(true);
  for (const bad of ['', 'hello', '\x92\xa1a\xa5b']) {
    expect(() => unpackUpdate(Buffer.from(bad, 'latin1'))).toThrow();
  }
});

const answered = (status: number): Outcome => ({
  kind: 'answered',
  ...{ status, retryAfterMs: undefined, body: Buffer.alloc(0), truncated: false },
  ...{ latencyMs: 3, address: '127.0.0.1' },
});
const facts = { owner: 1, tries: 1, nextAtMs: null, secrets: [] };

test('only the latest successful deliveries are stored, but every successful delivery is counted', async () => {
  const { bot, deliveries } = await bury('one');
  let away = true;
  const reported: unknown[] = [];
  const recorder = new Recorder({
    append: (...given) => (away ? Promise.reject(new Error('away')) : node.store.attempts.append(...given)),
    onRefused: (attempt) => reported.push(attempt),
    onError: (error) => reported.push(error),
  });
  recorder.start();
  const many = 3 * limits.delivery_successes_kept;
  const note = (n: number, status: number) => {
    const delivery = deliveries[0] as Delivery;
    const one = { ...delivery, entry: { ...delivery.entry, shownId: n } };
    recorder.note(bot.id, one, answered(status), null, facts);
  };
  for (let n = 1; n <= many; n++) note(n, 200);
  await expect.poll(() => reported.length).toBeGreaterThan(0);
  for (let n = many + 1; n <= many + 10; n++) note(n, 200);
  for (let n = 0; n < limits.delivery_attempts_waiting_max; n++) note(n, 500);
  expect(recorder.waiting()).toBe(limits.delivery_attempts_waiting_max);
  away = false;
  await recorder.stop();
  expect(recorder.waiting()).toBe(0);
  const failures = limits.delivery_attempts_waiting_max;
  expect(await node.store.attempts.counts(bot.id)).toEqual({
    ...{ delivered: many + 10, failed: failures, dead: 0 },
    unkept: limits.delivery_successes_kept,
  });
  const kept = await node.written.query<{ update_id: number }>(
    'select update_id from delivery_attempts where bot_id = $1 and delivered order by id',
    [bot.id],
  );
  expect(kept.map(({ update_id }) => update_id)).toEqual(
    Array.from(
      { length: limits.delivery_successes_kept },
      (_, i) => many + 11 - limits.delivery_successes_kept + i,
    ),
  );
});

test('a delivery attempt that Postgres refuses does not block other attempts', async () => {
  const { bot, deliveries } = await bury('one');
  const { bot: other } = await bury('two');
  const refused: unknown[] = [];
  const recorder = new Recorder({
    append: node.store.attempts.append,
    onRefused: (attempt) => refused.push(attempt),
    onError: (error) => expect.unreachable(String(error)),
  });
  const note = (to: number, n: number, outcome: Outcome) => {
    const delivery = deliveries[0] as Delivery;
    const one = { ...delivery, entry: { ...delivery.entry, shownId: n } };
    recorder.note(to, one, outcome, null, facts);
  };
  // Latencies can be fractions of a millisecond, because the deliveries of the management bot run inside the process.
  note(bot.id, 1, { ...answered(200), latencyMs: 1.5 });
  const failed = (message: string): Outcome => ({
    ...{ kind: 'failed', reason: 'closed', message, latencyMs: 0.4 },
  });
  note(bot.id, 2, failed('no text for Postgres: \u0000'));
  for (let n = 3; n <= 7; n++) note(other.id, n, n % 2 === 0 ? answered(200) : failed('away'));
  await recorder.stop();
  expect(refused).toEqual([
    { bot: bot.id, updateId: 2, reason: expect.stringContaining('invalid byte sequence') },
  ]);
  expect([recorder.waiting(), recorder.refused()]).toEqual([0, 1]);
  const rows = async ({ id }: { id: number }) =>
    (await node.store.attempts.list(id, all, limits.id_max, 100))
      .map(({ update_id, latency_ms }) => [...[update_id, latency_ms]])
      .sort(([a = 0], [b = 0]) => a - b);
  expect(await rows(bot)).toEqual([[1, 2]]);
  expect(await rows(other)).toEqual([3, 4, 5, 6, 7].map((n) => [n, n % 2 === 0 ? 3 : 0]));
  expect(await node.store.attempts.counts(bot.id)).toEqual({ delivered: 1, failed: 1, dead: 0, unkept: 1 });
  const counts = { delivered: 2, failed: 3, dead: 0, unkept: 0 };
  expect(await node.store.attempts.counts(other.id)).toEqual(counts);
});
const all = { ofOwner: false, updateId: null, delivered: null, status: null };

test('delivery attempts and dead letters are purged when they exceed their maximum age or number', async () => {
  const { bot } = await bury('one', 'two');
  const { db, pool, id } = node.shards.of(node.keys.partitions.of(bot.id));
  const add = (count: number, days: number, delivered: boolean) =>
    db.query(
      `insert into delivery_attempts (bot_id, update_id, at, delivered, latency_ms, answer, tries)
       select $1, n, now() - $3::int * interval '1 day', $4, 1, '', 1 from generate_series(1, $2::int) n`,
      [bot.id, count, days, delivered],
    );
  await add(20, 8, false);
  await add(limits.delivery_failures_kept + 30, 1, false);
  await add(5, 6, true);
  await db.query('insert into delivery_counts (bot_id, failed) values ($1, $2)', [
    bot.id,
    limits.delivery_failures_kept + 50,
  ]);
  await db.query(
    "update dead_updates set created_at = now() - interval '8 days' where bot_id = $1 and update_id = (select min(update_id) from dead_updates where bot_id = $1)",
    [bot.id],
  );
  await db.query("delete from installation where name = 'tombstones_purged_at'");
  await purgeTombstones(pool, 365, undefined, { control: id === 0, sharded: true });
  const [left] = await db.query<{ failed: number; good: number; oldest: number }>(
    `select count(*) filter (where not delivered) as failed, count(*) filter (where delivered) as good,
            min(update_id) filter (where not delivered) as oldest from delivery_attempts where bot_id = $1`,
    [bot.id],
  );
  expect(left).toEqual({ failed: limits.delivery_failures_kept, good: 5, oldest: 31 });
  expect(await node.store.replays.countDead(bot.id)).toBe(1);
});

test('a secret in a recorded answer is masked even if the answer is cut off within the secret', () => {
  const secrets = ['https://example.com/hook/abcdefghij?key=1', 's3cret'];
  for (let before = 900; before < 1_030; before++) {
    for (const leak of [
      ...secrets,
      '/hook/abcdefghij',
      'https:\\/\\/example.com\\/hook\\/abcdefghij?key=1',
    ]) {
      const body = Buffer.from(`${'.'.repeat(before)}${leak} and more`);
      const masked = `${'.'.repeat(before)}${'*'.repeat(leak.length)} and more`;
      expect(shownAnswer(beginningOf(body), secrets)).toBe(
        masked.slice(0, limits.delivery_answer_kept_bytes),
      );
    }
  }
  expect(shownAnswer(beginningOf(Buffer.from([0xff, 0, 0x41])), [])).toBe('\ufffd\ufffdA');
});
