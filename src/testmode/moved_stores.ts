/**
 * Moves the clocks of a private Redis and Postgres. Scripts and statements see the moved time, and Redis keys expire at
 * it. The servers' system clocks do not change.
 */
import { createHash } from 'node:crypto';
import type { Pool } from '../postgres/pool.js';
import { statement } from '../postgres/pool.js';
import { openSession } from '../postgres/session.js';
import type { RedisConnection } from '../redis/connection.js';
import type { Script, Source } from '../redis/scripts/contract.js';
import { readShippedScripts } from '../redis/scripts/scripts.js';

const readsClock = "redis.call('TIME')";
const addedKey = 'test:clock_added_ms';

/** Lua code that returns the time of Redis plus the milliseconds stored in `addedKey`. */
const movedTime = `
local function moved_time()
  local t,added=redis.call('TIME'),redis.call('GET','${addedKey}')
  if not added then return t end
  local us=t[2]+added%1000*1000
  return {('%.0f'):format(t[1]+math.floor(added/1000)+math.floor(us/1000000)),('%.0f'):format(us%1000000)}
end `.replace(/\n\s*/g, ' ');

function moved<S extends Source>(source: S): S {
  if (!source.source.includes(readsClock)) return source;
  const [flags = '', ...body] = source.source.split('\n');
  const text = [flags, movedTime + body.join('\n').replaceAll(readsClock, 'moved_time()')].join('\n');
  return { ...source, source: text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Returns the scripts of lua/, changed so that they read the clock that `moveRedis` moves. */
export const movedScripts = (): Map<string, Script> =>
  new Map(
    [...readShippedScripts()].map(([name, script]) => [
      name,
      { ...moved(script), combined: script.combined && moved(script.combined) },
    ]),
  );

/**
 * Moves the scripts' clock forward and shortens the time to live of all keys. BullMQ's keys (`doorbell`) keep theirs,
 * because BullMQ uses the machine's clock.
 */
const moveScript = `
redis.call('INCRBY','${addedKey}',ARGV[1])
for _,key in ipairs(redis.call('KEYS','*')) do
  local ttl=redis.call('PTTL',key)
  if ttl>=0 and not key:find(':doorbell:',1,true) then
    if ttl<=tonumber(ARGV[1]) then redis.call('DEL',key) else redis.call('PEXPIRE',key,ttl-ARGV[1]) end
  end
end`;

export type RedisClient = Pick<RedisConnection['client'], 'eval'>;

export const moveRedis = (client: RedisClient, ms: number) => client.eval(moveScript, 0, ms);

/**
 * Replaces the clock of an empty database. Migrations and statements call `now()` without a schema. They get this
 * function, because its schema `public` comes first in the search path.
 */
const movedClock = `
create table test_clock (added interval not null);
insert into test_clock values ('0');
create function now() returns timestamptz language sql stable
  as 'select pg_catalog.now() + added from public.test_clock';
create function clock_timestamp() returns timestamptz language sql volatile
  as 'select pg_catalog.clock_timestamp() + added from public.test_clock';
do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$;`;

/** Gives an empty database the clock that `movePostgres` moves. Must run before the migrations. */
export async function prepareClock(url: string): Promise<void> {
  const client = await openSession(url, 'petrel-test-clock', 2_000);
  await client.query(movedClock).finally(() => client.end());
}

const movePostgresBy = statement(
  'move_test_clock',
  "update test_clock set added = added + $1::bigint * interval '1 millisecond'",
);

export const movePostgres = (pool: Pick<Pool, 'query'>, ms: number) => pool.query(movePostgresBy, [ms]);
