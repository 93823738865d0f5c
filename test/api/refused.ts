/** Checks that a refusal has the exact answer and changes nothing in Redis and Postgres. */
import type { Redis } from 'ioredis';
import pg from 'pg';
import { expect } from 'vitest';
import { unpack } from '../../src/store/core/codec.js';
import { eventually } from '../clients/event_source.js';
import { openAnywhere, openMasters } from '../support/cluster.js';
import type { Answer, Service } from '../support/service.js';

/** Keys that change without a call: leases, heartbeats, transaction marks, rate limits (a refused upload counts), work of the sweep, and tickets, which expire in seconds. */
const moves =
  /:(auth_nodes|auth_revoked|flushers|flush_lease|rings|nodes|postgres)$|:rate:|:guesses:|:presence:|:ticket$|:doorbell:/;
/** Copies of data in Postgres. A read may add one and the sweep may remove one, but an existing one must not change. */
const copies = /:(bot|user|member|memberships|commands|descriptions|chat|administrators):-?\d|:name:/;

/** Waits until the updates that earlier calls left in the outbox were forwarded to other shards. */
export const forwarded = (masters: readonly Redis[]) =>
  eventually(async () => {
    for (const redis of masters) {
      for (const key of await redis.keys('*:outbox')) expect(await redis.xlen(key)).toBe(0);
    }
  });

/** Waits for background work of earlier calls: the sweep repeats interrupted changes, and the management bot sends notices some seconds later. */
const followed = (client: pg.Client) =>
  eventually(async () => {
    const { rows } = await client.query(
      `select exists (select from control_outbox) as stale,
        exists (select from notices where told_at is null and next_at <= now()) as untold`,
    );
    expect(rows).toEqual([{ stale: false, untold: false }]);
  });

async function dumpKey(redis: Redis, key: string): Promise<string> {
  const type = await redis.type(key);
  if (type === 'hash') {
    const fields = Object.entries(await redis.hgetallBuffer(key)).map(([name, value]) => [
      name,
      value.toString('base64'),
    ]);
    // The id of the newest poll is not part of the queue's state.
    return JSON.stringify(fields.filter(([name]) => name !== 'poll').sort());
  }
  // Drops the version: the sweep may write the same copy again with a later version. Postgres has the version, too, and is compared.
  const copy = copies.test(key) && type === 'string' ? await redis.getBuffer(key) : null;
  if (copy) return JSON.stringify(unpack<unknown[]>(copy).slice(1));
  return (await redis.dumpBuffer(key))?.toString('base64') ?? 'gone';
}

async function dumpRedis(masters: readonly Redis[]): Promise<Map<string, string>> {
  const dumps = masters.map(async (redis) => {
    const keys = (await redis.keys('*')).filter((key) => !moves.test(key)).sort();
    return Promise.all(keys.map(async (key) => [key, await dumpKey(redis, key)] as const));
  });
  // A key may expire between KEYS and the read of its value.
  return new Map((await Promise.all(dumps)).flat().filter(([, value]) => value !== 'gone'));
}

/**
 * A checksum for each table. Leaves out what changes without an accepted call: the outbox of control operations, transaction marks,
 * the administrator log (which contains refused calls), status reports of nodes, and the day on which a token was last used.
 */
async function dumpPostgres(client: pg.Client): Promise<Record<string, string>> {
  const { rows: tables } = await client.query(
    "select tablename as name from pg_tables where schemaname = 'public' and tablename not in ('admin_calls', 'control_marks', 'control_outbox', 'redis_nodes', 'shard_nodes')",
  );
  const dump: Record<string, string> = {};
  for (const { name } of tables) {
    const { rows } = await client.query(
      `select md5(coalesce(string_agg(seen, '|' order by seen), '')) as sum
       from (select (to_jsonb(t) - 'last_used_on')::text as seen from ${name} t) rows`,
    );
    dump[name] = rows[0].sum;
  }
  return dump;
}

export interface Watch {
  /**
   * Makes the call and expects this refusal exactly: status and `error_code`, text, content type, `parameters` and `Retry-After` of one
   * second for 429 and none for others. Redis and Postgres must be the same as before.
   */
  refused(call: () => Promise<Answer>, code: number, description: string): Promise<void>;
  /** Expects that Redis and Postgres are the same after the work as before. */
  unchanged(work: () => Promise<void>): Promise<void>;
  readonly redis: Redis;
  close(): Promise<void>;
}

export function expectEnvelope(answer: Answer, code: number, description: string): void {
  const retry = code === 429 ? { parameters: { retry_after: 1 } } : {};
  expect(answer.body).toEqual({ ok: false, error_code: code, description, ...retry });
  expect(answer.status).toBe(code);
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['retry-after']).toBe(code === 429 ? '1' : undefined);
}

/** Opens the stores of a service and stops its flusher, so that journal entries of a call stay visible. */
export async function watch(service: Service): Promise<Watch> {
  await service.flush.stop();
  const redis = openAnywhere(service.redis);
  const masters = openMasters(service.redis);
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const dump = async () => ({ redis: await dumpRedis(masters), postgres: await dumpPostgres(client) });
  async function unchanged(work: () => Promise<void>): Promise<void> {
    await followed(client);
    await forwarded(masters);
    const before = await dump();
    await work();
    const after = await dump();
    const known = new Map([...after.redis].filter(([key]) => before.redis.has(key) || !copies.test(key)));
    // Request records expire after a minute, and logs of new chats without readers after some seconds.
    const mayGo = (key: string) => /:req:|:changes:/.test(key) || copies.test(key);
    const kept = new Map([...before.redis].filter(([key]) => known.has(key) || !mayGo(key)));
    expect(known).toEqual(kept);
    expect(after.postgres).toEqual(before.postgres);
  }
  return {
    redis,
    unchanged,
    refused: (call, code, description) =>
      unchanged(async () => expectEnvelope(await call(), code, description)),
    async close() {
      for (const client of [redis, ...masters]) client.disconnect();
      await client.end();
    },
  };
}
