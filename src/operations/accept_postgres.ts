/**
 * Makes nodes accept a Postgres server that they refuse because another server has replaced it (task
 * `accept-postgres`). Nodes then treat the accepted server like a server that lost transactions.
 */
import { type Config, redisOf, requireSettings } from '../config/config.js';
import type { Logger } from '../obs/log.js';
import { loadServerState } from '../postgres/messages/history.js';
import { createPool } from '../postgres/pool.js';
import { openRedis, StartError } from '../processes/backends.js';
import { shardUrls } from '../processes/shards.js';
import { Runner } from '../redis/scripts/scripts.js';
import { makeKeys } from '../store/core/keys.js';

/**
 * Accepts the server of a shard. `shard` is 0 for DATABASE_URL. Throws a StartError for a standby or an unknown shard,
 * or an error of Redis or Postgres.
 */
export async function acceptPostgres(
  given: Config,
  shard: number,
  log: Logger,
  say: (line: string) => void,
): Promise<void> {
  const config = requireSettings(given, ['DATABASE_URL']);
  const url = shardUrls(config).find(({ id }) => id === shard)?.url;
  if (url === undefined) throw new StartError(`DATABASE_SHARDS has no shard ${shard}`);
  const keys = makeKeys(config.PARTITIONS);
  const onError = (err: Error) => log.warn({ err }, 'redis');
  const { connection, hints } = openRedis({ target: redisOf(given), keys, name: 'accept-postgres', onError });
  const pool = createPool({ url, max: 1, name: 'accept-postgres' });
  try {
    await connection.ready(given.START_MS);
    const { server: running, history: server, standby } = await loadServerState(pool);
    if (standby) throw new StartError('this Postgres is a standby: promote it, then nodes accept it');
    const runner = new Runner({ connection, recover: async () => {} });
    await runner.call('history/accept', 0, { history: keys.postgres(shard) }, { server, running });
    say(`postgres     system ${server.split(' ')[0]}, timeline ${server.split(' ')[1]}: nodes accept it`);
  } finally {
    hints.close();
    await connection.close();
    await pool.close();
  }
}
