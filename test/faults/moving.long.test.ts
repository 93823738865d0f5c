import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day_ms, keepDays, messagesByDay, readSpans } from '../../src/postgres/day_partitions.js';
import { createPool, statement } from '../../src/postgres/pool.js';
import { partitionSql } from '../../src/postgres/shard_copy.js';
import { moveSteps } from '../../src/postgres/shard_moves.js';
import { shardedTables } from '../../src/postgres/shards.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { type PostgresServer, startPostgres } from '../journal/support.js';
import { petrel, startPetrel } from '../support/command.js';
import { freshDatabase, freshRedis } from '../support/servers.js';
import { itemsOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { atMost, report } from './report.js';

const partitions = 8;
const keys = makeKeys(partitions);
const folder = mkdtempSync(join(tmpdir(), 'petrel-moving-'));

let server: PostgresServer;
/** The URLs of the shards by number. Number 0 is the control database, which is on another server. */
let urls: readonly [string, string, string];
let service: Service;
let owner: TestUser;
let bots: TestBot[];
const ledger = new Map<number, Set<string>>();

async function rows<T extends object>(url: string, sql: string, ...values: unknown[]): Promise<T[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

const partitionOf = (bot: TestBot) => keys.partitions.of(bot.id);
const inPartition = (partition: number) => bots.filter((bot) => partitionOf(bot) === partition);

async function content(url: string, partition: number): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const [table, column] of Object.entries(shardedTables)) {
    if (table === 'partitions') continue;
    const of = column === 'partition' ? column : partitionSql(column, partitions);
    const all = await rows<{ row: string }>(
      url,
      `select t::text as row from ${table} t where ${of} = $1 order by 1`,
      partition,
    );
    if (all.length > 0)
      found.set(
        table,
        all.map(({ row }) => row),
      );
  }
  return found;
}

async function send(bot: TestBot, text: string): Promise<number> {
  const { status } = await service.bot(bot, 'sendMessage', { chat_id: owner.id, text });
  if (status === 200) ledger.set(bot.id, (ledger.get(bot.id) ?? new Set()).add(text));
  return status;
}

/** Every bot sends messages until the load is stopped. Resolves with every status other than 200. */
function load(name: string): () => Promise<number[]> {
  const failed: number[] = [];
  let going = true;
  const ended = Promise.all(
    bots.map(async (bot) => {
      for (let i = 0; going; i++) {
        const status = await send(bot, `m ${name} ${i}`);
        if (status !== 200) failed.push(status);
        await sleep(60);
      }
    }),
  );
  return async () => {
    going = false;
    await ended;
    return failed;
  };
}

const move = (...args: Array<string | number>) => petrel(service.env, 'shards', 'move', ...args.map(String));

/** Waits until every acknowledged message is in exactly one of the databases. */
async function drained(): Promise<void> {
  const map = new Map(
    (await rows<{ partition: number; shard: number }>(urls[0], 'select * from shard_map')).map((row) => [
      row.partition,
      row.shard,
    ]),
  );
  for (const bot of bots)
    await expect
      .poll(
        async () =>
          Promise.all(
            urls.map(async (url) =>
              Number(
                (
                  await rows<{ count: string }>(
                    url,
                    'select count(*) from messages where chat_id = $1 and record is not null',
                    bot.id,
                  )
                )[0]?.count,
              ),
            ),
          ),
        { timeout: 60_000, interval: 200 },
      )
      .toEqual(
        urls.map((_, i) => (map.get(partitionOf(bot)) === i ? (ledger.get(bot.id)?.size ?? 0) + 1 : 0)),
      );
}

async function readAll(): Promise<void> {
  for (const bot of bots) {
    const found: string[] = [];
    for (let before = ''; ; ) {
      const page = await itemsOf(
        service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100${before}`),
      );
      found.push(...page.map(({ text }: { text?: string }) => text ?? ''));
      if (page.length < 100) break;
      before = `&cursor=${page.at(-1).message_id}`;
    }
    const listed = found.filter((text) => text.startsWith('m '));
    expect(new Set(listed)).toEqual(ledger.get(bot.id) ?? new Set());
    expect(listed.length).toBe(ledger.get(bot.id)?.size ?? 0);
  }
}

async function nothingLeft(): Promise<void> {
  for (const url of urls) {
    const left = await rows(
      url,
      `select 'slot' as what from pg_replication_slots where database = current_database()
       union all select 'publication' from pg_publication
       union all select 'subscription' from pg_subscription s join pg_database d on d.oid = s.subdbid where d.datname = current_database()
       union all select 'trigger' from pg_trigger where tgname = 'refuse_moved_row'
       union all select 'move' from shard_moves`,
    );
    expect(left, url).toEqual([]);
  }
  expect(await rows(urls[0], 'select * from shard_map where paused')).toEqual([]);
}

beforeAll(async () => {
  server = await startPostgres();
  const [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  urls = [database.url, await server.emptyDatabase('one'), await server.emptyDatabase('two')];
  const extraEnv = {
    PARTITIONS: String(partitions),
    DATABASE_SHARDS: `1=${urls[1]},2=${urls[2]}`,
    HOT_TTL_MS: '60000',
  };
  service = await startService({ redis, database, extraEnv, divided: true });
  owner = await service.newUser('olga');
  bots = [];
  while (bots.length < 6 || inPartition(0).length === 0 || inPartition(1).length === 0)
    bots.push(await service.newBot(owner, 'b'));
  for (const bot of bots) await service.openChat(owner, bot);
}, 300_000);
afterAll(async () => {
  await service?.stop();
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

test('if a partition cannot be moved, the command reports the reason and changes nothing', async () => {
  expect((await move(0, 2)).log).toMatch(
    /DATABASE_SHARDS 1 has wal_level = replica: run ..?alter system set wal_level = 'logical'/,
  );
  expect((await move(0, 7)).log).toMatch(/DATABASE_SHARDS does not name 7/);
  expect((await move(0, 1, 2)).log).toMatch(/are in the shards 1, 2: move the partitions of one shard/);
  expect((await move(9, 1)).log).toMatch(/name partitions from 0 to 7/);
  expect((await move(0, 2, '--from', 'here')).log).toMatch(/--from must be a URL that begins with postgres/);
  expect((await petrel(service.env, 'shards', 'undo')).log).toMatch(/no partition is being moved/);
  expect((await move(1, 2)).out).toMatch(/^there {8}partition 1 in DATABASE_SHARDS 2/);
  await nothingLeft();
  expect(await rows(urls[0], 'select max(shard) as shard from shard_map')).toEqual([{ shard: 2 }]);
  // Changes wal_level and restarts the server, as the error message advises.
  await rows(urls[1], "alter system set wal_level = 'logical'");
  await server.stop();
  await server.start();
}, 300_000);

test('while a partition moves under load, no call fails', async () => {
  const [from, to] = [urls[1], urls[2]];
  const bot = inPartition(0)[0] as TestBot;
  expect(await rows(urls[0], 'select shard from shard_map where partition = 0')).toEqual([{ shard: 1 }]);
  for (let i = 0; i < 30; i++) expect(await send(bot, `m before ${i}`)).toBe(200);
  await drained();
  // Inserts rows into the tables of the delivery worker, in the form in which the delivery worker writes them.
  await rows(
    from,
    `insert into dead_updates (bot_id, update_id, version, record) values (${bot.id}, 1, 1, 'x');
     insert into delivery_counts (bot_id, delivered) values (${bot.id}, 3);
     insert into delivery_failures (bot_id, id, update_id, at, latency_ms, answer, tries) values (${bot.id}, 500, 1, now(), 1, '', 1);
     insert into delivery_attempts (bot_id, update_id, at, delivered, latency_ms, answer, tries)
       select ${bot.id}, n, now(), true, 1, '', 1 from generate_series(1, 50) n`,
  );
  const before = await content(from, 0);
  expect(before.size).toBeGreaterThan(5);
  for (const each of bots) expect(await send(each, 'm warm')).toBe(200);
  const stop = load('moved');
  const ran = await move(0, 2);
  await sleep(500);
  const failed = await stop();
  const pausedFor = Number(/writes to Postgres paused for ([\d.]+) s/.exec(ran.out)?.[1]);
  report('shards', 'a partition moved under load', { 'seconds not written behind': pausedFor }, [
    atMost('failed calls on hot data', failed.length, 0),
  ]);
  expect(failed).toEqual([]);
  expect(ran, ran.log).toMatchObject({
    code: 0,
    out: expect.stringMatching(/moved {8}partition 0 to DATABASE_SHARDS 2/),
  });
  await drained();
  const after = await content(to, 0);
  for (const table of ['dead_updates', 'delivery_counts', 'delivery_failures', 'delivery_attempts'])
    expect(after.get(table), table).toEqual(before.get(table));
  expect((await content(from, 0)).size).toBe(0);
  const [next] = await rows<{ id: string }>(to, "select nextval('delivery_attempts_id_seq') as id");
  expect(Number(next?.id)).toBeGreaterThan(50);
  await nothingLeft();
  await readAll();
  const list = await petrel(service.env, 'shards', 'list', '--rows');
  expect(list.out).toMatch(/shard 2 .* 5 partitions.*: 0-1, 3, 5, 7\n {13}0: \d+ messages/);
  const doctor = await petrel(service.env, 'doctor');
  expect(doctor.out).toMatch(/shard 1 .* 3 partitions[\s\S]*shard 2 .* 5 partitions/);
}, 180_000);

const shardNow = async (partition: number): Promise<number> =>
  (await rows<{ shard: number }>(urls[0], 'select shard from shard_map where partition = $1', partition))[0]
    ?.shard ?? 0;

/**
 * Starts a move that is blocked in the given step. When the command has reached this step, sends it the given signal.
 * `during` runs while the move is blocked.
 */
async function signalledAt(
  step: string,
  partition: number,
  target: number,
  signal: NodeJS.Signals,
  during: (child: ChildProcess) => Promise<unknown> = async () => {},
): Promise<ChildProcess> {
  const client = new pg.Client(urls[0]);
  await client.connect();
  // Takes a lock that the move command needs at the end of this step.
  await client.query('select pg_advisory_lock(1)');
  await client.query(`
    create function hold_step() returns trigger language plpgsql as $$ begin
      if old.step = tg_argv[0] and (tg_op = 'DELETE' or new.step <> old.step) then
        perform pg_advisory_xact_lock(1);
      end if;
      return coalesce(new, old);
    end $$`);
  await client.query(
    `create trigger hold_step before update or delete on shard_moves for each row execute function hold_step('${step}')`,
  );
  const child = startPetrel(service.env, 'shards', 'move', String(partition), String(target));
  try {
    for (;;) {
      const found = (await client.query('select step from shard_moves')).rows[0]?.step;
      if (found === step) break;
      expect(child.exitCode, 'the command ended before this step').toBe(null);
      await sleep(2);
    }
    child.kill(signal);
    await during(child);
    await client.query('select pg_advisory_unlock(1)');
    await client.query('drop function hold_step cascade');
  } finally {
    child.kill(signal);
    await client.end();
  }
  return child;
}

/**
 * Starts a move, and kills the command when it has reached a step. Afterwards, the next command can continue the move
 * immediately.
 */
async function killedAt(step: string, partition: number, target: number): Promise<void> {
  await signalledAt(step, partition, target, 'SIGKILL', async (child) => {
    if (child.signalCode === null) await once(child, 'exit');
    // Ends the statement that the killed command sent last. The statement waits for a lock, and Postgres would execute
    // it after the lock is released.
    const waiting = "from pg_locks where locktype = 'advisory' and not granted";
    await rows(urls[0], `select pg_terminate_backend(pid) ${waiting}`);
    await expect.poll(() => rows(urls[0], `select ${waiting}`)).toEqual([]);
    expect(await rows(urls[0], 'select step from shard_moves')).toEqual([{ step }]);
  });
  await endClaim();
}

/** Makes the claim of the killed command expire, so that the next command can continue the move immediately. */
const endClaim = () => rows(urls[0], "update shard_moves set renewed_at = now() - interval '1 minute'");

test.each(moveSteps)(
  'a move command that is killed at "%s" continues when it is run again',
  async (step) => {
    const source = await shardNow(0);
    const target = source === 1 ? 2 : 1;
    const stop = load(`killed at ${step}`);
    await killedAt(step, 0, target);
    const other = await move(1, target);
    expect(other.log).toMatch(/a move of partition 0 to DATABASE_SHARDS/);
    await endClaim();
    const ran = await move(0, target);
    expect(await stop()).toEqual([]);
    expect(ran, ran.log).toMatchObject({ code: 0 });
    await drained();
    await nothingLeft();
    expect((await content(urls[source] as string, 0)).size).toBe(0);
    await readAll();
  },
  180_000,
);

test.each(['copy', 'fence'])(
  'undo cancels a move of a partition that was killed at "%s", and leaves no change',
  async (step) => {
    const source = await shardNow(0);
    const target = source === 1 ? 2 : 1;
    const stop = load(`undone at ${step}`);
    await killedAt(step, 0, target);
    const doctor = await petrel(service.env, 'doctor');
    expect(doctor.out).toMatch(/partitions 0 are moving from shard/);
    const backup = await petrel(service.env, 'backup', join(folder, step));
    expect(backup.log).toMatch(/partitions are moving to another database/);
    const undone = await petrel(service.env, 'shards', 'undo');
    expect(undone, undone.log).toMatchObject({
      code: 0,
      out: expect.stringMatching(/stayed {7}partition 0 in/),
    });
    expect(await stop()).toEqual([]);
    expect(await shardNow(0)).toBe(source);
    await drained();
    await nothingLeft();
    expect((await content(urls[target] as string, 0)).size).toBe(0);
    await readAll();
  },
  180_000,
);

test('if a move command is suspended, it changes nothing after another command has completed the move', async () => {
  const target = (await shardNow(0)) === 1 ? 2 : 1;
  const stop = load('suspended');
  const suspended = await signalledAt('copy', 0, target, 'SIGSTOP');
  const ran = await move(0, target);
  suspended.kill('SIGCONT');
  const [code] = await once(suspended, 'exit');
  expect(await stop()).toEqual([]);
  expect(ran, ran.log).toMatchObject({ code: 0 });
  expect(code).not.toBe(0);
  expect(await shardNow(0)).toBe(target);
  await drained();
  await nothingLeft();
  await readAll();
}, 180_000);

test.each(['copy', 'fence'])(
  'after the control database has lost a move that was killed at "%s", another move copies every row',
  async (step) => {
    const source = await shardNow(0);
    const target = source === 1 ? 2 : 1;
    if ((await shardNow(1)) !== source) expect(await move(1, source)).toMatchObject({ code: 0 });
    await killedAt(step, 0, target);
    // Simulates a restore of the control database to a time before the move.
    await rows(urls[0], 'delete from shard_moves');
    await rows(urls[0], 'update shard_map set paused = false');
    await rows(urls[0], "update installation set value = (value::int + 1)::text where name = 'shard_epoch'");
    for (const bot of bots) expect(await send(bot, `m forgotten at ${step}`)).toBe(200);
    const moved = step === 'copy' ? 1 : 0;
    const ran = await move(moved, target);
    expect(ran, ran.log).toMatchObject({ code: 0 });
    expect(await shardNow(moved)).toBe(target);
    await drained();
    await nothingLeft();
    await readAll();
  },
  180_000,
);

test('no row is lost if daily partitions are created during a move', async () => {
  const source = await shardNow(0);
  const target = source === 1 ? 2 : 1;
  const stop = load('days');
  await killedAt('copy', 0, target);
  const pools = [source, target].map((id) => createPool({ url: urls[id] as string, max: 2, name: 'test' }));
  const days = async () =>
    (await rows(urls[source] as string, "select from pg_inherits where inhparent = 'messages'::regclass"))
      .length;
  const before = await days();
  for (const pool of pools) {
    // Drops the partitions of the coming days, so that they are created again.
    const { spans } = await readSpans(pool, { table: 'messages' });
    for (const { name, from } of spans)
      if (from * day_ms > Date.now()) await pool.query(statement('', `drop table ${name}`));
    await keepDays(pool, Number.POSITIVE_INFINITY, messagesByDay(3));
    await pool.close();
  }
  expect(await days()).toBeGreaterThan(before - 1);
  expect(await move(0, target)).toMatchObject({ code: 0 });
  expect(await stop()).toEqual([]);
  await drained();
  await nothingLeft();
  await readAll();
}, 180_000);

test('the move of a partition completes even if flushers are killed', async () => {
  const target = (await shardNow(0)) === 1 ? 2 : 1;
  const stop = load('flushers');
  let moving = true;
  const moved = move(0, target).finally(() => {
    moving = false;
  });
  while (moving) {
    await service.flush.kill();
    await service.flush.start();
    await sleep(300);
  }
  expect(await stop()).toEqual([]);
  expect(await moved).toMatchObject({ code: 0 });
  await drained();
  await nothingLeft();
  await readAll();
}, 180_000);

test('after a move to the control database, no process uses the previous shard map', async () => {
  const source = await shardNow(1);
  const stop = load('control');
  const ran = await move(1, 0);
  expect(await stop()).toEqual([]);
  expect(ran, ran.log).toMatchObject({ code: 0 });
  await drained();
  // Simulates a restore of the control database to a time before processes used the new shard map.
  await rows(urls[0], `update shard_map set shard = ${source} where partition = 1`);
  await rows(urls[0], "update installation set value = (value::int + 1)::text where name = 'shard_epoch'");
  await sleep(1_500);
  for (const bot of inPartition(1)) expect(await send(bot, 'm behind')).toBe(200);
  const list = await petrel(service.env, 'shards', 'list');
  expect(list.out).toMatch(/its own record says that 1 have moved away/);
  const again = await move(1, 0);
  expect(again, again.log).toMatchObject({ code: 0, out: expect.stringMatching(/^moved/) });
  await drained();
  await nothingLeft();
  await readAll();
}, 180_000);
