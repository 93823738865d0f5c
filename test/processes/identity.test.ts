/**
 * Tests in short form that a node refuses the Redis of another installation, and an empty Redis while another Redis is
 * in use. `identity.long.test.ts` tests more cases.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { elsewhere } from '../backup/installation.js';
import { createRole } from '../support/role_process.js';
import { type FreshRedis, freshRedis } from '../support/servers.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { longTest } from '../support/tiers.js';

let service: Service;
let other: FreshRedis;
beforeAll(async () => {
  [service, other] = await Promise.all([
    startService({ combined: true, extraEnv: { PARTITIONS: '8' } }),
    freshRedis(),
  ]);
});
afterAll(() => Promise.all([service?.stop(), other?.stop()]));

longTest(
  'a role refuses a Redis of another installation, and an empty Redis while nodes use a different Redis',
  async () => {
    const env = { ...elsewhere(service.env, other, service.databaseUrl), START_MS: '1000' };
    const start = () => createRole('flush', async () => env).start();
    const client = new Redis(other.url);
    await expect(start()).rejects.toThrow(
      'this Redis is empty, and 1 node of this installation uses another one',
    );
    expect(await client.keys('*')).toEqual([]);
    await client.hset(makeKeys(8).installation(), { ID: 'theirs', GENERATION: 1, PARTITIONS: 8 });
    const before = await client.keys('*');
    await expect(start()).rejects.toThrow('this Redis belongs to the installation theirs');
    expect(await client.keys('*')).toEqual(before);
    client.disconnect();
    expect(await resultOf(service.app(await service.newUser('olga'), 'GET', '/api/chats'))).toBeDefined();
  },
);
