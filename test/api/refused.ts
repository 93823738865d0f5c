/** Checks that a refusal has the exact answer and changes nothing in Redis and Postgres. */
import type { Redis } from 'ioredis';
import pg from 'pg';
import { expect } from 'vitest';
import { unpack } from '../../src/store/core/codec.js';
import { eventually } from '../clients/event_source.js';
import { openAnywhere, openMasters } from '../support/cluster.js';
import type { Answer, Service } from '../support/service.js';

/**
 * The keys that may change even if every call is refused: leases, heartbeats, transaction marks, rate limits, keys that
 * the sweep changes, and tickets. Rate limits change because a refused upload counts, and tickets expire in seconds.
 */
const moves =
  /:(auth_nodes|auth_revoked|flushers|flush_lease|rings|nodes|figures|postgres)$|:rate:|:guesses:|:presence:|:ticket$|:doorbell:/;
/**
 * The keys that contain copies of data in Postgres. A read may add a copy and the sweep may remove a copy, but the data
 * in a copy must not change.
 */
const copies = /:(bot|user|member|memberships|commands|descriptions|chat|administrators):-?\d|:name:/;

/** Waits until all outboxes are empty, so that all updates of earlier calls are forwarded to other shards. */
export const forwarded = (masters: readonly Redis[]) =>
  eventually(async () => {
    for (const redis of masters) {
      for (const key of await redis.keys('*:outbox')) expect(await redis.xlen(key)).toBe(0);
    }
  });

/**
 * Waits for background work of earlier calls: the sweep repeats interrupted changes, and the management bot sends
 * notices some seconds later.
 */
const followed = (client: pg.Client) =>
  eventually(async () => {
    const { rows } = await client.query(
      `select exists (select from control_outbox) as stale,
        exists (select from notices where told_at is null and next_at <= now()) as untold`,
    );
    expect(rows).toEqual([{ stale: false, untold: false }]);
  });

/**
 * Returns all keys and their values in one reply: the text of a string key, and a checksum for any other key. Leaves
 * out the field `poll`, the id of a queue's newest poll.
 */
const dumpScript = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'string' then
    value = redis.call('GET', key)
  elseif kind == 'hash' then
    local fields, all = redis.call('HGETALL', key), {}
    for i = 1, #fields, 2 do
      if fields[i] ~= 'poll' then all[#all + 1] = #fields[i] .. ':' .. fields[i] .. fields[i + 1] end
    end
    table.sort(all)
    value = redis.sha1hex(table.concat(all, '\\n'))
  else
    value = redis.sha1hex(redis.call('DUMP', key))
  end
  found[#found + 1] = { key, kind, value, tostring(redis.call('PTTL', key)) }
end
return found`;

interface Value {
  readonly kind: string;
  readonly value: Buffer;
  /** The time to live in ms, or -1 for a key that does not expire. */
  readonly ttl: number;
}
type Dump = ReadonlyMap<string, Value>;

async function dumpRedis(masters: readonly Redis[]): Promise<Dump> {
  const dumps = masters.map((redis) => redis.callBuffer('EVAL', dumpScript, 0) as Promise<Buffer[][]>);
  return new Map(
    ((await Promise.all(dumps)).flat() as Array<[Buffer, Buffer, Buffer, Buffer]>).map(
      ([key, kind, value, ttl]) => [String(key), { kind: String(kind), value, ttl: Number(ttl) }],
    ),
  );
}

/**
 * Returns the keys that differ between two dumps, with both values. `ms` is the time between the dumps. The second dump
 * may lack keys that expire during this time, and copies of Postgres data.
 */
function differencesOf(before: Dump, after: Dump, ms: number): string[] {
  const mayGo = (key: string, { ttl }: Value) => (ttl >= 0 && ttl <= ms) || copies.test(key);
  // Ignores the version in a Redis copy of Postgres data, because the sweep may write unchanged data with a later
  // version. The comparison of Postgres covers the version.
  const textOf = (key: string, { kind, value }: { readonly kind: string; readonly value: Buffer }) =>
    copies.test(key) && kind === 'string'
      ? JSON.stringify(unpack<unknown[]>(value).slice(1))
      : value.toString('base64');
  const found: string[] = [];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(key), after.get(key)];
    if (one && other && one.value.equals(other.value)) continue;
    if (moves.test(key) || (!one && copies.test(key)) || (one && !other && mayGo(key, one))) continue;
    const [was, is] = [one && textOf(key, one), other && textOf(key, other)];
    if (was !== is) found.push(`${key}: ${was} became ${is}`);
  }
  return found;
}

/**
 * Builds the statement that returns the number of rows and a checksum for each table. Leaves out data that may change
 * although no call was accepted: the outbox of control operations, transaction marks, the log of administrators, status
 * reports of nodes, and the day on which a token was last used.
 */
async function dumpStatement(client: pg.Client): Promise<string> {
  const { rows } = await client.query(
    `select relname as name,
       exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'last_used_on') as is_used
     from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not in ('admin_calls', 'control_marks', 'control_outbox', 'redis_nodes', 'shard_nodes')`,
  );
  const sums = rows.map(({ name, is_used }) => {
    const row = is_used ? "(to_jsonb(t) - 'last_used_on')::text" : 't::text';
    return `select '${name}' as name, count(*) || ' ' || coalesce(sum(hashtextextended(${row}, 0)), 0) as sum from ${name} t`;
  });
  // Sorts the tables, because parallel workers of Postgres return them in any order.
  return `${sums.join(' union all ')} order by name`;
}

export interface Watch {
  /**
   * Makes the call and expects a refusal with this status, `error_code`, text and content type. Only a refusal with 429
   * may have `parameters` and the header `Retry-After`, which must be one second. Redis and Postgres must not change.
   */
  refused(call: () => Promise<Answer>, code: number, description: string): Promise<void>;
  /**
   * Expects that `work` changes neither Redis nor Postgres. Inside `work`, `refused` does not compare the stores, so
   * the stores are dumped only twice for many refused calls.
   */
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

/**
 * Opens the stores of a service. Stops the service's flusher, because it would remove journal entries that the checks
 * need.
 */
export async function watch(service: Service): Promise<Watch> {
  await service.flush.stop();
  const redis = openAnywhere(service.redis);
  const masters = openMasters(service.redis);
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  // Prepares the statement once, because planning the statement takes longer than running it.
  const statement = { name: 'dump', text: await dumpStatement(client) };
  const dump = async () => ({
    redis: await dumpRedis(masters),
    postgres: (await client.query(statement)).rows,
  });
  let comparing = false;
  async function unchanged(work: () => Promise<void>): Promise<void> {
    if (comparing) return work();
    await followed(client);
    await forwarded(masters);
    const beganAt = performance.now();
    const before = await dump();
    comparing = true;
    await work().finally(() => {
      comparing = false;
    });
    const after = await dump();
    expect(differencesOf(before.redis, after.redis, performance.now() - beganAt)).toEqual([]);
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
