// A flusher in a separate process, for tests that kill it. Arguments: folder of the program, URL of Redis, URL of
// Postgres.
const [folder, redisUrl, postgresUrl] = process.argv.slice(2);
const load = (path) => import(`${folder}/dist/${path}.js`);
const { RedisConnection } = await load('redis/connection');
const { Runner } = await load('redis/scripts/scripts');
const { createPool } = await load('postgres/pool');
const { oneShard } = await load('postgres/shards');
const { asDatabase } = await load('postgres/sql');
const { makeKeys } = await load('store/core/keys');
const { createFlusher } = await load('journal/flusher');

const connection = new RedisConnection({ url: redisUrl, name: 'flush' });
await connection.ready(30_000);
const runner = new Runner({ connection, recover: () => Promise.reject(new Error('not expected')) });
const pool = createPool({ url: postgresUrl, max: 2, name: 'flush' });
const shards = oneShard(pool, asDatabase(pool), 4);
createFlusher({ connection, runner, shards, keys: makeKeys(4), hotTtlMs: 3_600_000, intervalMs: 5 }).start();
process.stdout.write('started\n');
