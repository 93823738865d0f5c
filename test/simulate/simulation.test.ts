/** Tests that simulated installations violate no rule, and that a seed determines a run. */
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPool, statement } from '../../src/postgres/pool.js';
import { readScripts } from '../../src/redis/scripts/contract.js';
import { type FreshRedis, freshRedis, migratedDatabase } from '../support/servers.js';
import { longTest } from '../support/tiers.js';
import { SharedRedis, simulatedScripts } from './redis.js';
import { simulate } from './simulation.js';

const lua = fileURLToPath(new URL('../../lua', import.meta.url));
let server: FreshRedis;
let client: Redis;
let redis: SharedRedis;

beforeAll(async () => {
  server = await freshRedis();
  client = new Redis(server.url, { protocol: 2, disableClientInfo: true });
  redis = new SharedRedis(client, simulatedScripts(readScripts(lua)));
});
afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

test('a seed determines every step of a run', async () => {
  const [first, second] = [
    await simulate({ seed: 3, steps: 1_500, redis }),
    await simulate({ seed: 3, steps: 1_500, redis }),
  ];
  expect(first.faults.length).toBeGreaterThan(3);
  expect(second.trace).toEqual(first.trace);
  expect([second.steps, second.sent, second.faults]).toEqual([first.steps, first.sent, first.faults]);
});

longTest('simultaneous runs do not affect each other', async () => {
  const seeds = [7, 8, 9];
  const run = (seed: number, place: number) => simulate({ seed, steps: 300, redis, place });
  const together = await Promise.all(seeds.map(run));
  for (const [i, seed] of seeds.entries()) {
    const alone = await run(seed, 0);
    expect(together[i]?.trace).toEqual(alone.trace);
    expect(together[i]?.steps).toBe(alone.steps);
  }
});

longTest('ten simulated installations lose, repeat and reorder nothing', async () => {
  let sent = 0;
  for (let seed = 21; seed <= 30; seed++) {
    const report = await simulate({ seed, steps: 800, redis });
    expect(report.violation, `npm run simulate -- --seed ${seed} --steps 800`).toBeNull();
    sent += report.sent;
  }
  expect(sent).toBeGreaterThan(20);
});

const tables = {
  messages: 'select chat_id, user_id, message_id, version, record from messages order by 1, 2, 3',
  sequences:
    'select chat_id, user_id, last_message_id, version, incarnation from chat_sequences order by 1, 2',
  partitions: 'select partition, incarnation, flushed_version from partitions order by 1',
  chat_pins: 'select chat_id, user_id, version, record from chat_pins order by 1, 2',
  posts: 'select partition, number, version, record from posts order by 1, 2',
  post_reactions: `select partition, number, user_id, emoji, version, record from post_reactions
    order by 1, 2, 3, 4`,
  post_tallies: 'select partition, number, emoji, version, record from post_tallies order by 1, 2, 3',
};
const plain = (value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : value);
const emptied =
  'messages, chat_sequences, partitions, chat_pins, posts, post_sequences, post_reactions, post_tallies';

test('the simulated Postgres refuses the same transactions and stores the same rows as a real PostgreSQL', async () => {
  const database = await migratedDatabase();
  const pool = createPool({ url: database.url, max: 1, name: 'test' });
  try {
    let [refused, reactions, pins] = [0, 0, 0];
    for (const seed of [3, 6, 7, 9, 11]) {
      const report = await simulate({ seed, steps: 1_500, redis });
      expect(report.violation).toBeNull();
      await pool.query(statement('test_empty', `truncate ${emptied}`));
      for (const { calls, rows, refused: code } of report.transactions) {
        const answer = await pool.batch(calls).catch((error: { code?: string }) => error.code);
        if (code !== undefined) refused++;
        expect(answer).toEqual(code ?? rows);
      }
      const { tables: stored } = report;
      const found = async (name: keyof typeof tables) =>
        (await pool.query(statement(`test_${name}`, tables[name]))).rows.map((row) =>
          Object.values(row).map(plain),
        );
      const sorted = <T extends { readonly key: readonly number[] }>(rows: Iterable<T>) =>
        [...rows].sort((a, b) => a.key.map((own, i) => own - (b.key[i] as number)).find((n) => n !== 0) ?? 0);
      for (const name of ['messages', 'chat_pins', 'posts', 'post_reactions', 'post_tallies'] as const)
        expect(await found(name), name).toEqual(
          sorted(stored.of(name).values()).map(({ key, version, record }) => [
            ...key,
            version,
            plain(record),
          ]),
        );
      reactions += stored.of('post_reactions').size;
      pins += stored.of('chat_pins').size;
      expect(await found('sequences')).toEqual(
        sorted(stored.sequencesOf('chat_sequences').values()).map(({ key, last, version, incarnation }) => [
          ...key,
          last,
          version,
          incarnation,
        ]),
      );
      expect(await found('partitions')).toEqual(
        [...stored.partitions.values()]
          .sort((a, b) => a.partition - b.partition)
          .map(({ partition, incarnation, flushed_version }) => [partition, incarnation, flushed_version]),
      );
    }
    expect(Math.min(refused, reactions, pins)).toBeGreaterThan(0);
  } finally {
    await pool.close();
    await database.drop();
  }
});
