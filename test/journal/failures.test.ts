import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { purgeTombstones } from '../../src/journal/purge.js';
import { isUnavailable, statement } from '../../src/postgres/pool.js';
import { messageKinds, unpackMessage } from '../../src/store/core/codec.js';
import { parseChat } from '../../src/store/core/keys.js';
import { longTest } from '../support/tiers.js';
import {
  buildProgram,
  chatOf,
  eventually,
  journalEmpty,
  messageRows,
  type Node,
  openNode,
  type PostgresServer,
  partitionOf,
  putEntry,
  putMessage,
  type RedisServer,
  startPostgres,
  startRedis,
  texts,
} from './support.js';

let redis: RedisServer;
let postgres: PostgresServer;
let node: Node;
let url: string;
let databases = 0;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
});
afterAll(async () => {
  await Promise.all([redis?.remove(), postgres?.remove()]);
});
beforeEach(async () => {
  url = await postgres.database(`failures_${++databases}`);
  node = await openNode(redis.url, url);
  await node.connection.client.flushall();
  await node.recovery.openAll([0, 1, 2, 3], node.connection.runId() as string);
});
afterEach(() => node.close());

const chat = chatOf(100_001);
const quarantine = statement(
  'test_quarantine',
  'select partition, version, entity, image, reason from quarantine order by 2',
);

async function compareStores(): Promise<number> {
  const { client } = node.connection;
  const rows = new Map(
    (await messageRows(node.pool)).map((row) => [
      node.keys.message({ id: row.chat_id, user: row.user_id }, row.message_id),
      row,
    ]),
  );
  const keys = await client.keys('*:msg:*');
  expect([...rows.keys()].sort()).toEqual(keys.sort());
  for (const key of keys) {
    const hot = (await client.getBuffer(key)) as Buffer;
    const { version, kind } = unpackMessage(hot);
    const row = rows.get(key);
    expect(row?.version, key).toBe(version);
    if (kind === messageKinds.deleted) expect(row?.record, key).toBeNull();
    else expect(row?.record?.equals(hot), key).toBe(true);
  }
  const { rows: sequences } = await node.pool.query<{ text: string; last: number; version: number }>(
    statement(
      'test_chat_sequences',
      `select chat_id || case user_id when 0 then '' else '.' || user_id end as text, last_message_id as last, version
       from chat_sequences`,
    ),
  );
  expect(sequences).toHaveLength((await client.keys('*:chat:*')).length);
  for (const { text, last, version } of sequences) {
    const [s, v] = await client.hmget(node.keys.chat(parseChat(text)), 's', 'v');
    expect([Number(s), Number(v)], text).toEqual([last, version]);
  }
  return rows.size;
}

const countRows = async (): Promise<number> => {
  const count = statement('test_count', 'select count(*)::int as n from messages');
  return (await node.pool.query<{ n: number }>(count)).rows[0]?.n ?? 0;
};

/**
 * Sends messages until `stopped` returns true, but at least 2,000 and at most `max` messages. In Redis, the field `s`
 * of a chat contains the number of its last message.
 */
async function writeUntil(stopped: () => boolean, max: number): Promise<number> {
  let changes = 0;
  const sent = new Map<number, number>();
  while ((!stopped() || changes < 2_000) && changes < max) {
    const burst: Array<Promise<number>> = [];
    for (let i = 0; i < 40; i++) {
      const bot = 100_000 + (changes % 24);
      const last = sent.get(bot) ?? 0;
      sent.set(bot, last + 1);
      burst.push(putMessage(node, chatOf(bot), last + 1, `message ${changes}`));
      changes++;
    }
    await Promise.all(burst);
    await sleep(25);
  }
  return changes;
}

/**
 * Edits or deletes older messages first, and edits the last message of each chat at the end. The fields `s` and `v` of
 * a chat then both describe its last message.
 */
async function editAndDelete(perBot: number): Promise<void> {
  for (let bot = 100_000; bot < 100_024; bot++) {
    const last = Number(await node.connection.client.hget(node.keys.chat(chatOf(bot)), 's'));
    for (let i = 1; i < Math.min(perBot, last); i++) {
      await putMessage(node, chatOf(bot), i, i % 3 === 0 ? undefined : `edited ${i}`);
    }
    await putMessage(node, chatOf(bot), last, 'edited last');
  }
}

describe('a killed flusher', () => {
  longTest(
    'a killed flusher loses and duplicates no rows',
    {
      timeout: 300_000,
    },
    async () => {
      const program = await buildProgram();
      let child: ChildProcess | undefined;
      const start = async () => {
        const file = fileURLToPath(new URL('./flusher_child.mjs', import.meta.url));
        child = spawn(process.execPath, [file, program.folder, redis.url, url], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
      };
      const kill = async () => {
        const ended = once(child as ChildProcess, 'exit');
        child?.kill('SIGKILL');
        await ended;
      };
      try {
        let over = false;
        const writing = writeUntil(() => over, 60_000);
        for (let kills = 0; kills < 6; kills++) {
          await start();
          // Removes the lease and the heartbeat of the dead flusher. Otherwise the next flusher would wait until they
          // expire.
          await node.connection.client.del(...[0, 1, 2, 3].map((p) => node.keys.flushLease(p)));
          await node.connection.client.del(node.keys.flushers());
          const before = await countRows();
          await eventually('the flusher works', async () => (await countRows()) > before);
          await sleep(Math.random() * 200);
          await kill();
        }
        over = true;
        const changes = await writing;
        await editAndDelete(30);
        node.flusher().start();
        await eventually('journal empty', () => journalEmpty(node));
        expect(await compareStores()).toBe(changes);
      } finally {
        if (child?.exitCode === null && child.signalCode === null) await kill();
        program.remove();
      }
    },
  );
});

describe('when Postgres fails', () => {
  it('after an outage of Postgres, the flusher writes everything in the journal', {
    timeout: 60_000,
  }, async () => {
    const errors: Error[] = [];
    const flusher = node.flusher({ onError: (error) => errors.push(error) });
    flusher.start();
    await putMessage(node, chat, 1, 'before');
    await eventually('journal empty', () => journalEmpty(node));
    await postgres.stop();
    try {
      for (let i = 2; i <= 200; i++) await putMessage(node, chat, i, `while away ${i}`);
      await eventually('failures', () => flusher.stats().failures >= 2);
      expect(errors.every(isUnavailable)).toBe(true);
      expect(await node.connection.client.xlen(node.keys.journal(partitionOf(node, chat)))).toBe(199);
      expect(await node.connection.client.pttl(node.keys.message(chat, 150))).toBe(-1);
    } finally {
      await postgres.start();
    }
    await eventually('journal empty', () => journalEmpty(node));
    expect(await compareStores()).toBe(200);
  });

  it('a flusher that is writing its last batches can stop in time even while Postgres is down', {
    timeout: 60_000,
  }, async () => {
    const flusher = node.flusher();
    flusher.start();
    await postgres.stop();
    try {
      await putMessage(node, chat, 1, 'kept');
      const start = performance.now();
      await flusher.stop({ drain: true, msMax: 1_000 });
      expect(performance.now() - start).toBeLessThan(10_000);
      expect(await journalEmpty(node)).toBe(false);
    } finally {
      await postgres.start();
    }
  });

  it('if Postgres aborts a batch because of a deadlock, a second attempt writes the batch', async () => {
    await putMessage(node, chat, 1, 'one');
    await putMessage(node, chat, 2, 'two');
    const first = node.flusher();
    first.start();
    await first.stop({ drain: true });

    const other = new pg.Client({ connectionString: url });
    await other.connect();
    await other.query("set deadlock_timeout = '20s'");
    await other.query('begin');
    await other.query('update messages set deleted_at = null where message_id = 2');
    await putMessage(node, chat, 1, 'one, edited');
    await putMessage(node, chat, 2, 'two, edited');
    // Creates both entries before the flusher starts, so that they form one batch.
    node.flusher().start();
    const waiting = statement(
      'test_waiting',
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    await eventually('flusher waits', async () => (await node.pool.query(waiting)).count === 1);
    expect(node.pool.retries()).toBe(0);
    // The other session holds row 2 and requests row 1. The other session checks for deadlocks only after 20 s, so
    // Postgres aborts the flusher's transaction.
    await other.query('update messages set deleted_at = null where message_id = 1');
    await eventually('ended', () => node.pool.retries() >= 1);
    await other.query('commit');
    await other.end();
    await eventually('journal empty', () => journalEmpty(node));
    expect(texts(await messageRows(node.pool))).toEqual(['one, edited', 'two, edited']);
  });
});

describe('entries are quarantined', () => {
  it('entries that Postgres refuses are quarantined, and all other entries are written', async () => {
    await node.pool.query(
      statement(
        'test_check',
        `alter table messages add constraint refused check (message_id <> 13 and message_id <> 40)`,
      ),
    );
    for (let i = 1; i <= 60; i++) await putMessage(node, chat, i, `m${i}`);
    const partition = partitionOf(node, chat);
    const odd = await putEntry(node, partition, 'msg:12.x:7', Buffer.from('odd'));
    const huge = await putEntry(node, partition, 'msg:12.5:99999999999999999999', Buffer.from('huge'));
    const unknown = await putEntry(node, partition, 'comet:\0:1', Buffer.from('later'));
    const { client } = node.connection;
    const shapeless = await client.hincrby(node.keys.meta(partition), 'ver', 1);
    await client.xadd(node.keys.journal(partition), `${shapeless}-0`, 'what', 'is this');

    const seen: string[] = [];
    const flusher = node.flusher({ onQuarantine: (entry) => seen.push(entry.entity) });
    flusher.start();
    await eventually('journal empty', () => journalEmpty(node));
    const rows = await messageRows(node.pool);
    expect(rows.map((r) => r.message_id)).toEqual(
      Array.from({ length: 60 }, (_, i) => i + 1).filter((i) => i !== 13 && i !== 40),
    );
    const kept = (await node.pool.query(quarantine)).rows;
    expect(kept.map((row) => row.entity)).toEqual([
      'msg:100001.5:13',
      'msg:100001.5:40',
      'msg:12.x:7',
      'msg:12.5:99999999999999999999',
      'comet:\ufffd:1',
      '',
    ]);
    expect(kept.slice(2).map((row) => row.version)).toEqual([odd, huge, unknown, shapeless]);
    expect(String(kept[0]?.reason)).toMatch(/refused/);
    expect(kept[0]?.image).toEqual(await client.getBuffer(node.keys.message(chat, 13)));
    expect(seen).toHaveLength(6);
    await eventually('counted', () => flusher.stats().quarantined === 6);
    // Entities that are not in Postgres must not expire in Redis.
    expect(await client.pttl(node.keys.message(chat, 13))).toBe(-1);
    expect(await client.pttl(node.keys.message(chat, 14))).toBeGreaterThan(0);
  });

  it('an error that is not caused by an entry quarantines no entry', async () => {
    await node.pool.query(statement('test_drop', 'alter table messages rename to elsewhere'));
    await putMessage(node, chat, 1, 'waits');
    const errors: Error[] = [];
    const flusher = node.flusher({ onError: (error) => errors.push(error) });
    flusher.start();
    await eventually('failures', () => flusher.stats().failures >= 2);
    expect(errors[0]?.message).toMatch(/messages/);
    await node.pool.query(statement('test_undrop', 'alter table elsewhere rename to messages'));
    await eventually('journal empty', () => journalEmpty(node));
    expect(texts(await messageRows(node.pool))).toEqual(['waits']);
    expect((await node.pool.query(quarantine)).count).toBe(0);
  });
});

describe('a purge deletes expired rows', () => {
  const backdate = (ids: string, hours: number) =>
    node.pool.query(
      statement(
        `test_backdate_${hours}`,
        `update messages set deleted_at = now() - interval '${hours} hours' where message_id in (${ids})`,
      ),
    );
  const rest = statement('test_rest', "delete from installation where name = 'tombstones_purged_at'");

  it('a purge deletes expired tombstones, at most once per minute', async () => {
    for (let i = 1; i <= 4; i++) await putMessage(node, chat, i, i === 4 ? 'alive' : undefined);
    const flusher = node.flusher();
    flusher.start();
    await flusher.stop({ drain: true });
    await backdate('1', 25);
    await backdate('2', 23);
    await node.pool.query(rest);
    expect(await purgeTombstones(node.pool)).toBe(1);
    expect((await messageRows(node.pool)).map((r) => r.message_id)).toEqual([2, 3, 4]);
    await backdate('2', 26);
    expect(await purgeTombstones(node.pool)).toBe(0);
    await node.pool.query(
      statement(
        'test_minute',
        "update installation set value = (now() - interval '61 seconds')::text where name = 'tombstones_purged_at'",
      ),
    );
    expect(await purgeTombstones(node.pool)).toBe(1);
    expect((await messageRows(node.pool)).map((r) => r.message_id)).toEqual([3, 4]);
  });

  it('one purge can delete many chunks of rows', async () => {
    await node.pool.query(
      statement(
        'test_many',
        `insert into messages select 1, 2, n, n, current_date - n % 40, null, now() - interval '2 days'
           from generate_series(1, 2500) n`,
      ),
    );
    expect(await purgeTombstones(node.pool)).toBe(2_500);
  });
});
