import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isShareOf } from '../../src/journal/leases.js';
import type { FlushStep } from '../../src/journal/pipeline.js';
import { limits } from '../../src/limits.js';
import { statement } from '../../src/postgres/pool.js';
import { migratedDatabase } from '../support/servers.js';
import {
  chatOf,
  eventually,
  gate,
  hotTtlMs,
  journalEmpty,
  messageRows,
  type Node,
  openNode,
  partitionOf,
  putEntry,
  putMessage,
  type RedisServer,
  startRedis,
  texts,
} from './support.js';

let redis: RedisServer;
let node: Node;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.remove();
});
beforeEach(async () => {
  node = await openNode(redis.url, (await migratedDatabase()).url);
  await node.connection.client.flushall();
  await node.recovery.openAll([0, 1, 2, 3], node.connection.runId() as string);
});
afterEach(() => node.close());

const chat = chatOf(100_001);
const at = (name: FlushStep, place: { wait(): Promise<void> }) => (step: FlushStep) =>
  step === name ? place.wait() : undefined;
const sequences = statement(
  'test_sequences',
  'select chat_id, user_id, last_message_id, version from chat_sequences order by 1, 2',
);
const watermarks = statement(
  'test_watermarks',
  'select partition, flushed_version, flushed_at from partitions where flushed_version > 0 order by 1',
);

describe('the flusher writes journals to Postgres', () => {
  it('the flusher shortens the time to live of a message only if the bot of the message is over its byte limit', async () => {
    const { client } = node.connection;
    const [noisy, calm] = [chat, chatOf(100_002)];
    const large = 'x'.repeat(10_000);
    for (let id = 1; id <= 20; id++) await putMessage(node, { ...noisy, user: 5 + (id % 3) }, id, large);
    for (let id = 1; id <= 5; id++) await putMessage(node, calm, id, large);
    const gone = await putMessage(node, noisy, 21);
    const flusher = node.flusher({ hotBytesPerBot: 100_000 });
    flusher.start();
    await eventually('journal empty', () => journalEmpty(node));
    await flusher.stop({ drain: true });
    const left = (of: typeof chat, id: number) => client.pttl(node.keys.message(of, id));
    const noisyLeft = await Promise.all(
      Array.from({ length: 20 }, (_, i) => left({ ...noisy, user: 5 + ((i + 1) % 3) }, i + 1)),
    );
    expect(Math.min(...noisyLeft)).toBeGreaterThan(0);
    // Nine messages with their headers fit into the limit of 100,000 bytes. The other messages get a shorter time to
    // live.
    expect(noisyLeft.filter((ms) => ms > limits.redis_full_ttl_ms)).toHaveLength(9);
    for (let id = 1; id <= 5; id++) expect(await left(calm, id)).toBeGreaterThan(hotTtlMs - 60_000);
    expect(gone).toBeGreaterThan(0);
    expect(await left(noisy, 21)).toBeGreaterThan(hotTtlMs - 60_000);
    expect((await messageRows(node.pool)).length).toBe(26);
  });

  it('the flusher writes the newest version of each entity, then empties the journal', async () => {
    await putMessage(node, chat, 1, 'first');
    await putMessage(node, chat, 2, 'second');
    const edited = await putMessage(node, chat, 1, 'first, edited');
    const deleted = await putMessage(node, chat, 2);
    const channel = { id: -200_003, user: 0 };
    const posted = await putMessage(node, channel, 9, 'post');
    const dead = await putEntry(
      node,
      partitionOf(node, chat),
      'dead:100001:77',
      Buffer.from([0x93, 1, 2, 3]),
    );
    node.flusher().start();
    await eventually('journal empty', () => journalEmpty(node));

    const rows = await messageRows(node.pool);
    expect(rows.map((r) => [r.chat_id, r.user_id, r.message_id, r.version, r.deleted_at !== null])).toEqual([
      [-200_003, 0, 9, posted, false],
      [100_001, 5, 1, edited, false],
      [100_001, 5, 2, deleted, true],
    ]);
    expect(texts(rows)).toEqual(['post', 'first, edited', null]);
    expect((await node.pool.query(sequences)).rows).toEqual([
      { chat_id: -200_003, user_id: 0, last_message_id: 9, version: posted },
      { chat_id: 100_001, user_id: 5, last_message_id: 2, version: deleted },
    ]);
    const { rows: deadRows } = await node.pool.query(
      statement('test_dead', 'select bot_id, update_id, version, record from dead_updates'),
    );
    expect(deadRows).toEqual([
      { bot_id: 100_001, update_id: 77, version: dead, record: Buffer.from([0x93, 1, 2, 3]) },
    ]);
    const expected = [
      [partitionOf(node, chat), dead],
      [partitionOf(node, channel), posted],
    ].sort((a, b) => (a[0] as number) - (b[0] as number));
    const marks = (await node.pool.query(watermarks)).rows;
    expect(marks.map((row) => [row.partition, row.flushed_version])).toEqual(expected);
    expect(marks.every((row) => row.flushed_at instanceof Date)).toBe(true);
  });

  it('the flusher sets no time to live on a record that has changed since the flusher read it', async () => {
    const other = chatOf(100_001, 6);
    const { client } = node.connection;
    await putMessage(node, chat, 1, 'stays as it is');
    await putMessage(node, chat, 2, 'is edited between read and settle');
    await putMessage(node, chat, 4);
    await putMessage(node, other, 1, 'alone');
    const place = gate();
    const flusher = node.flusher({ onStep: at('committed', place) });
    flusher.start();
    await place.reached;
    await putMessage(node, chat, 2, 'edited');
    // Stops the flusher before a second batch, which would set the time to live of the edited message too.
    const stopped = flusher.stop();
    place.open();
    await stopped;

    const { keys } = node;
    const ttl = (key: string) => client.pttl(key);
    for (const key of [keys.message(chat, 1), keys.message(other, 1), keys.chat(other)]) {
      expect(await ttl(key)).toBeGreaterThan(hotTtlMs - 60_000);
      expect(await ttl(key)).toBeLessThanOrEqual(hotTtlMs);
    }
    // Redis keeps the tombstone of a deleted message as long as other hot data. If Postgres is restored to a time
    // before the deletion, Redis still knows that the message was deleted.
    expect(await ttl(keys.message(chat, 4))).toBeGreaterThan(60_000);
    expect(await ttl(keys.message(chat, 2))).toBe(-1);
    expect(await ttl(keys.chat(chat))).toBe(-1);
    expect(await client.xlen(keys.journal(partitionOf(node, chat)))).toBe(1);
  });

  it('the flusher drains many partitions in full batches and counts entries and rows', async () => {
    const sent: Array<Promise<number>> = [];
    for (let i = 0; i < 6_000; i++)
      sent.push(putMessage(node, chatOf(100_000 + (i % 50)), 1 + Math.floor(i / 50), `m${i}`));
    await Promise.all(sent);
    const flusher = node.flusher();
    flusher.start();
    await flusher.stop({ drain: true });
    expect(await journalEmpty(node)).toBe(true);
    expect(await node.connection.client.hlen(node.keys.flushers())).toBe(0);
    expect(await node.connection.client.exists(node.keys.flushLease(0))).toBe(0);
    expect(flusher.stats()).toMatchObject({ entries: 6_000, rows: 6_000, quarantined: 0, failures: 0 });
    expect(flusher.stats().batches).toBeLessThan(20);
    expect(await messageRows(node.pool)).toHaveLength(6_000);
  });

  it('the flusher reports the lag and the journal lengths of its partitions', async () => {
    const place = gate();
    const flusher = node.flusher({ onStep: at('read', place) });
    await putMessage(node, chat, 1, 'x');
    flusher.start();
    await place.reached;
    await new Promise((resolve) => setTimeout(resolve, 300));
    // A timer may fire a fraction of a millisecond early.
    expect(flusher.stats().lagMs).toBeGreaterThan(290);
    place.open();
    await eventually('journal empty', () => journalEmpty(node));
    await eventually('caught up', () => flusher.stats().lagMs < 200);
    expect(flusher.stats().lengths.get(partitionOf(node, chat))).toBe(0);
  });
});

describe('an idle flusher', () => {
  async function waitingIds(): Promise<string[]> {
    const list = String(await node.connection.client.client('LIST'));
    return list
      .split('\n')
      .flatMap((line) => (/\bcmd=xread\b/.test(line) ? [/id=(\d+)/.exec(line)?.[1] ?? ''] : []));
  }

  it('an idle flusher waits for an entry instead of polling', async () => {
    const flusher = node.flusher();
    flusher.start();
    await eventually('it waits', async () => (await waitingIds()).length === 1);
    await putMessage(node, chat, 1, 'wakes it up');
    await eventually('journal empty', () => journalEmpty(node));
    await eventually('the flusher waits again', async () => (await waitingIds()).length === 1);
    await node.connection.client.client('KILL', 'ID', Number((await waitingIds())[0]));
    await putMessage(node, chat, 2, 'after the cut');
    await eventually('journal empty', () => journalEmpty(node));
    expect(texts(await messageRows(node.pool))).toEqual(['wakes it up', 'after the cut']);
    await flusher.stop();
    await eventually('nothing waits', async () => (await waitingIds()).length === 0);
  });
});

describe('two flushers can work on one partition', () => {
  /**
   * Pauses a flusher at a step. Deletes its registration and its leases, so that another flusher can take over the
   * partitions.
   */
  async function holdAt(step: FlushStep) {
    const place = gate();
    const held = node.flusher({ id: 'held', onStep: at(step, place) });
    held.start();
    await place.reached;
    await node.connection.client.hdel(node.keys.flushers(), 'held');
    for (let p = 0; p < 4; p++) await node.connection.client.del(node.keys.flushLease(p));
    return { place, held };
  }

  /**
   * Returns a flusher id. A flusher with this id gets the partition if it shares all partitions with the flusher
   * `rival`.
   */
  function idThatGets(partition: number, rival: string): string {
    for (let n = 0; ; n++) if (isShareOf(`other ${n}`, [rival, `other ${n}`], partition)) return `other ${n}`;
  }

  it.each(['read', 'committed'] as const)(
    'if one of two flushers pauses at "%s" while the other one works, the newer rows stay in Postgres',
    async (step) => {
      await putMessage(node, chat, 1, 'old');
      await putMessage(node, chat, 2, 'to be deleted');
      await putMessage(node, chat, 3, 'untouched');
      const { place, held } = await holdAt(step);
      const edited = await putMessage(node, chat, 1, 'new');
      const deleted = await putMessage(node, chat, 2);
      // The other flusher must get the partition even if the paused flusher registers again.
      const id = idThatGets(partitionOf(node, chat), 'held');
      const other = node.flusher({ id });
      other.start();
      await eventually('the other flusher emptied the journal', () => journalEmpty(node));
      const before = await messageRows(node.pool);
      const late = await putMessage(node, chat, 4, 'after the other');
      await other.stop();
      const length = await node.connection.client.xlen(node.keys.journal(partitionOf(node, chat)));

      const stopped = held.stop();
      place.open();
      await stopped;
      expect(held.stats()).toMatchObject({ batches: 1, failures: 0 });
      const rows = await messageRows(node.pool);
      expect(rows.slice(0, 3)).toEqual(before.slice(0, 3));
      expect(texts(rows.slice(0, 3))).toEqual(['new', null, 'untouched']);
      expect(rows.slice(0, 2).map((r) => r.version)).toEqual([edited, deleted]);
      // The flusher that was paused trims only entries that it has read. The entry that was added later may therefore
      // still be in the journal.
      if (length === 1) {
        const [[id] = []] = await node.connection.client.xrange(
          node.keys.journal(partitionOf(node, chat)),
          '-',
          '+',
        );
        expect(id).toBe(`${late}-0`);
      } else expect(rows[3]?.version).toBe(late);
    },
  );

  it('a flusher takes over all partitions when the other flusher stops', async () => {
    const first = node.flusher({ id: 'a' });
    const second = node.flusher({ id: 'b' });
    const { client } = node.connection;
    const holders = async () => Promise.all([0, 1, 2, 3].map((p) => client.get(node.keys.flushLease(p))));
    first.start();
    await eventually('the first flusher holds all partitions', async () => first.stats().partitions === 4);
    expect(await holders()).toEqual([null, null, null, null]);
    second.start();
    await eventually('both flushers hold partitions', async () => new Set(await holders()).size === 2);
    await first.stop();
    await eventually(
      'the second flusher holds all partitions',
      async () => second.stats().partitions === 4,
      6_000,
    );
  });
});

describe('writing an old batch again replaces no newer record', () => {
  it('writing an old batch again does not restore messages that were deleted meanwhile', async () => {
    const { client } = node.connection;
    const journal = node.keys.journal(partitionOf(node, chat));
    await putMessage(node, chat, 1, 'gone soon');
    await putMessage(node, chat, 2, 'edited soon');
    const old = await client.xrangeBuffer(journal, '-', '+');
    await putMessage(node, chat, 2, 'edited');
    await putMessage(node, chat, 1);
    node.flusher().start();
    await eventually('journal empty', () => journalEmpty(node));
    const rows = await messageRows(node.pool);
    const kept = (await node.pool.query(sequences)).rows;
    const marks = (await node.pool.query(watermarks)).rows.map((row) => row.flushed_version);
    expect(texts(rows)).toEqual([null, 'edited']);

    // Deletes the stream before it adds the old batch again, because a stream accepts no ids below its last id.
    const again = client.multi().del(journal);
    for (const [id, fields] of old) again.xadd(journal, id, ...fields);
    expect((await again.xlen(journal).exec())?.at(-1)).toEqual([null, 2]);
    await eventually('replayed', () => journalEmpty(node));
    expect(await messageRows(node.pool)).toEqual(rows);
    expect((await node.pool.query(sequences)).rows).toEqual(kept);
    expect((await node.pool.query(watermarks)).rows.map((row) => row.flushed_version)).toEqual(marks);
  });
});
