/** Checks that a refusal has the exact answer and changes nothing in Redis and Postgres. */
import type { Redis } from 'ioredis';
import pg from 'pg';
import { expect } from 'vitest';
import { unpack } from '../../src/store/core/codec.js';
import { eventually } from '../clients/event_source.js';
import { openAnywhere, openMasters } from '../support/cluster.js';
import type { Answer, Service } from '../support/service.js';

/**
 * The keys that change without an accepted call: leases, heartbeats, transaction marks, rate limits, work of the sweep,
 * and tickets. A refused upload counts against a rate limit, and tickets expire in seconds.
 */
const moves =
  /:(auth_nodes|auth_revoked|flushers|flush_lease|rings|nodes|figures|postgres)$|:rate:|:guesses:|:presence:|:ticket$|:doorbell:/;
/** The copies of data in Postgres. A read may add a copy, and the sweep may remove a copy, but no copy may change. */
const copies = /:(bot|user|member|memberships|commands|descriptions|chat|administrators):-?\d|:name:/;

/** Waits until the updates that earlier calls left in the outbox were forwarded to other shards. */
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
 * All keys with their values, in one reply: a string as its text, any other type as a checksum. Leaves out
 * the id of a queue's newest poll.
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
 * Returns the keys that changed although no call was accepted, with both values. `ms` is the time between the dumps.
 * Keys that expire between the dumps may be missing.
 */
function differencesOf(before: Dump, after: Dump, ms: number): string[] {
  const mayGo = (key: string, { ttl }: Value) => (ttl >= 0 && ttl <= ms) || copies.test(key);
  // Leaves out the version of a copy, because the sweep may write the same copy again with a later version. The version
  // in Postgres is compared instead.
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
 * Builds the statement that counts and checksums the rows of each table. Leaves out data that also changes without an
 * accepted call: the outbox of control operations, transaction marks, the log of administrators, status reports of
 * nodes, and the day of a token's last use.
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
  // Parallel workers return the tables in any order.
  return `${sums.join(' union all ')} order by name`;
}

export interface Watch {
  /**
   * Makes the call and expects exactly this refusal: status, `error_code`, text and content type. An answer with 429
   * has `parameters` and a `Retry-After` of one second. Other answers have neither `parameters` nor this header. Redis
   * and Postgres must be the same as before.
   */
  refused(call: () => Promise<Answer>, code: number, description: string): Promise<void>;
  /**
   * Expects that `work` changes neither Redis nor Postgres. Inside `work`, `refused` checks only the answer, so many
   * refused calls need only two dumps of the stores.
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
 * Opens the stores of a service. Stops the flusher of the service, if it is running, so that journal entries of a call
 * stay visible.
 */
export async function watch(service: Service): Promise<Watch> {
  await service.flush.stop();
  const redis = openAnywhere(service.redis);
  const masters = openMasters(service.redis);
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  // Prepares the statement once, because planning the statement takes longer than reading the few rows.
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
