import { randomBytes } from 'node:crypto';
import { type FreshRedis, temporaryFolder } from './servers.js';

export function redisSettings({ url, cluster, sentinels, masterUrl }: FreshRedis): Record<string, string> {
  if (cluster) return { REDIS_CLUSTER: cluster.join(',') };
  if (sentinels && masterUrl) return { REDIS_URL: masterUrl, REDIS_SENTINELS: sentinels.join(',') };
  return { REDIS_URL: url };
}

/** Returns the settings of all roles of one installation. FILES_DIR is a new folder, which the caller removes. */
export function environment(
  redis: FreshRedis,
  databaseUrl: string,
  adminToken: string,
): Record<string, string> {
  return {
    FILES_DIR: temporaryFolder(),
    PATH: process.env.PATH ?? '',
    HOST: '127.0.0.1',
    ...redisSettings(redis),
    DATABASE_URL: databaseUrl,
    ADMIN_TOKEN: adminToken,
    TOKEN_PEPPER: randomBytes(32).toString('base64url'),
    TOKEN_KEYS: `t1:${randomBytes(32).toString('base64')}`,
    POSTGRES_POOL: '4',
    // Turns off the rate limits, because most tests make calls as fast as they can.
    ...{ RATE_PER_BOT: '0', RATE_PER_PERSON: '0', RATE_PER_CHAT: '0', RATE_PER_READER: '0' },
    // Turns link previews off, because only their own tests load pages, and only from loopback.
    LINK_PREVIEWS: '0',
    DRAIN_MS: '0',
  };
}
