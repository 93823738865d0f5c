/** The settings with which tests start roles. */
import { randomBytes } from 'node:crypto';
import { type FreshRedis, temporaryFolder } from './servers.js';

/** Of all roles of one installation; FILES_DIR is a new folder, which the caller removes. */
export function environment(
  redis: FreshRedis,
  databaseUrl: string,
  adminToken: string,
): Record<string, string> {
  return {
    FILES_DIR: temporaryFolder(),
    PATH: process.env.PATH ?? '',
    HOST: '127.0.0.1',
    ...(redis.cluster ? { REDIS_CLUSTER: redis.cluster.join(',') } : { REDIS_URL: redis.url }),
    DATABASE_URL: databaseUrl,
    ADMIN_TOKEN: adminToken,
    TOKEN_PEPPER: randomBytes(32).toString('base64url'),
    TOKEN_KEYS: `t1:${randomBytes(32).toString('base64')}`,
    POSTGRES_POOL: '4',
    UWS_HTTP_MAX_HEADERS_SIZE: '65536',
  };
}
