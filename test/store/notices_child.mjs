// Sends due notices, and dies after sending a message and before recording it. Arguments: program folder, URLs of Redis
// and Postgres, bot, shard URLs.
const [folder, redisUrl, postgresUrl, bot, ...shardUrls] = process.argv.slice(2);
const load = (path) => import(`${folder}/dist/${path}.js`);
const { RedisConnection } = await load('redis/connection');
const { Runner } = await load('redis/scripts/scripts');
const { createPool } = await load('postgres/pool');
const { asDatabase } = await load('postgres/sql');
const { oneShard } = await load('postgres/shards');
const { makeKeys } = await load('store/core/keys');
const { createSecrets } = await load('store/core/secrets');
const { createStore } = await load('store/store');

const connection = new RedisConnection({ url: redisUrl, name: 'child' });
await connection.ready(30_000);
const runner = new Runner({ connection, recover: () => Promise.reject(new Error('not expected')) });
const pool = createPool({ url: postgresUrl, max: 4, name: 'child' });
const db = asDatabase(pool);
const shards = (shardUrls.length > 0 ? shardUrls : [postgresUrl]).map((url, id) => ({
  id,
  db: asDatabase(createPool({ url, max: 2, name: 'child' })),
}));
const of = (partition) => shards[partition % shards.length];
const store = createStore({
  db,
  shards: { ...oneShard(pool, db, 4), of, at: (partition) => of(partition).db },
  scripts: {
    isFull: (partition) => runner.isFull(partition),
    async call(name, ...rest) {
      const result = await runner.call(name, ...rest);
      if (name === 'messages/send_to_user' && result.status === 'ok') process.kill(process.pid, 'SIGKILL');
      return result;
    },
  },
  hints: { listen: async () => () => undefined, close: () => undefined },
  keys: makeKeys(4),
  secrets: createSecrets(['p'.repeat(32)], [{ id: 'k', key: Buffer.alloc(32) }]),
  hotTtlMs: 3_600_000,
  reactorsListed: 100,
  onError: () => undefined,
});
await store.notices.sendDue(
  async () => JSON.parse(bot),
  () => ({ content: { text: 'told' }, markup: null }),
);
// Exits explicitly, because open connections would otherwise keep the process alive.
process.exit(1);
