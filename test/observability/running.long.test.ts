/**
 * Watches a running installation with a real Prometheus. Tests that each alert fires when its condition is provoked,
 * and that each query of the dashboard has data.
 */
import { spawn, spawnSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitOf, freePort } from '../../src/dev/processes.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { openEvents } from '../clients/event_source.js';
import { keepBooks } from '../delivery/world.js';
import { findProgram } from '../support/proxies.js';
import { createRole, type RoleProcess, startPatiently } from '../support/role_process.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { ready_ms_max } from '../support/times.js';
import { alertsIn, readShipped, shippedQueries } from './shipped.js';

/** The alerts that depend on the speed of the machine. */
const ofTheMachine = ['PetrelEventLoopBlocked', 'PetrelSlowRequests', 'PetrelSlowScripts'];
const partitions = 4;
const keys = makeKeys(partitions);
const dir = temporaryFolder();

let service: Service;
let deliver: RoleProcess;
let flush: RoleProcess;
let pool: Pool;
let redis: RedisConnection;
let prometheus: string;
let stopPrometheus: () => Promise<void>;
let user: TestUser;
let bot: TestBot;
const seen = new Set<string>();

function quick(rules: string): string {
  return rules
    .replace(/for: \S+/g, 'for: 1s')
    .replaceAll('[5m]', '[15s]')
    .replaceAll('[15m]', '[15s]')
    .replaceAll('> 60', '> 2')
    .replace('> 10000', '> 20');
}

async function startPrometheus(targets: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const port = await freePort();
  writeFileSync(join(dir, 'alerts.yml'), quick(readShipped('alerts.yml')));
  const shipped = readShipped('prometheus.yml').replaceAll('15s', '1s');
  const groups = Object.entries(targets).map(
    ([role, ports]) =>
      `      - targets: [${ports.map((at) => `127.0.0.1:${at}`).join(', ')}]\n        labels: { role: ${role} }\n`,
  );
  const config = shipped.replace(/static_configs:\n[\s\S]*$/, `static_configs:\n${groups.join('')}`);
  writeFileSync(join(dir, 'prometheus.yml'), config);
  const args = [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`];
  const child = spawn(
    findProgram('prometheus') as string,
    [...args, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const exited = exitOf(child);
  stopPrometheus = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  prometheus = `http://127.0.0.1:${port}`;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
async function ask(path: string): Promise<any> {
  const { body } = await request(`${prometheus}${path}`);
  return body.json();
}
const query = async (expr: string): Promise<readonly { readonly value: readonly [number, string] }[]> => {
  const output = await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`);
  if (output.status !== 'success') throw new Error(`${expr}: ${output.error}`);
  return output.data.result;
};
async function firing(): Promise<string[]> {
  const { data } = await ask('/api/v1/alerts');
  return data.alerts
    .filter(({ state }: { state: string }) => state === 'firing')
    .map(({ labels }: { labels: { alertname: string } }) => labels.alertname);
}

async function provoke(names: readonly string[], act: () => Promise<unknown> = async () => undefined) {
  const end = performance.now() + 90_000;
  const missing = () => names.filter((name) => !seen.has(name));
  while (missing().length > 0) {
    await act().catch(() => undefined);
    for (const name of await firing()) seen.add(name);
    if (performance.now() > end) throw new Error(`these did not fire: ${missing().join(', ')}`);
    await sleep(300);
  }
}

const send = (text: string, front = 0) => service.bot(bot, 'sendMessage', { chat_id: user.id, text }, front);

beforeAll(async () => {
  const ports = { deliver: await freePort(), flush: await freePort() };
  service = await startService({
    fronts: 2,
    extraEnv: {
      PARTITIONS: `${partitions}`,
      JOURNAL_HIGH_WATER: '100',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
      RATE_PER_BOT: '100000/1',
      GUESSES_BURST: '2',
      GUESSES_PER_MINUTE: '1',
      UPDATES_DAYS: '1',
      LINK_PREVIEWS: '1',
      VAPID_PRIVATE_KEY: Buffer.alloc(32, 7).toString('base64url'),
      VAPID_SUBJECT: 'mailto:operator@example.org',
    },
  });
  await Promise.all([service.deliver.stop(), service.flush.stop()]);
  const role = (name: 'deliver' | 'flush') =>
    createRole(name, async () => ({ ...service.env, METRICS_PORT: `${ports[name]}` }));
  [deliver, flush] = [role('deliver'), role('flush')];
  await Promise.all([deliver.start(), flush.start()]);
  pool = createPool({ url: service.databaseUrl, max: 4, name: 'test' });
  redis = new RedisConnection({ url: service.redis.url, name: 'test' });
  await redis.ready(ready_ms_max);
  await startPrometheus({
    front: service.fronts.map(({ port }) => port),
    deliver: [ports.deliver],
    flush: [ports.flush],
  });
  user = await service.newUser('user');
  bot = await service.newBot(user, 'watched');
  await service.openChat(user, bot);
}, 120_000);
afterAll(async () => {
  await stopPrometheus?.();
  await Promise.all([deliver?.stop(), flush?.stop()]);
  await pool?.close();
  await redis?.close();
  await service?.stop();
  rmSync(dir, { recursive: true, force: true });
}, 120_000);

const long = 120_000;

test('promtool accepts the shipped rules and configuration', () => {
  const shipped = new URL('../../infra/observability/', import.meta.url).pathname;
  const promtool = findProgram('promtool') as string;
  for (const args of [
    ['rules', 'alerts.yml'],
    ['config', 'prometheus.yml'],
  ]) {
    const output = spawnSync(promtool, ['check', ...args], { cwd: shipped, encoding: 'utf8' });
    expect([output.status, output.stdout + output.stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  }
});

test("promtool's rule tests fire the alerts that this installation cannot provoke", () => {
  const shipped = new URL('../../infra/observability/', import.meta.url).pathname;
  const args = ['test', 'rules', 'alerts_test.yml'];
  const output = spawnSync(findProgram('promtool') as string, args, { cwd: shipped, encoding: 'utf8' });
  expect([output.status, output.stdout + output.stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  const fired = readShipped('alerts_test.yml').matchAll(/alertname: (\w+)\n +exp_alerts:\n/g);
  for (const [, name = ''] of fired) seen.add(name);
  expect(seen).toContain('PetrelDiskFilling');
});

test(
  'a healthy installation fires no alert',
  async () => {
    const stream = await openEvents(service.fronts[0].url, user.token);
    await resultOf(service.bot(bot, 'getUpdates'));
    await send('hello', 1);
    await service.bot(bot, 'nothing');
    await expect.poll(() => query('up == 1'), { timeout: 30_000 }).toHaveLength(4);
    await expect
      .poll(async () => Number((await query('sum(petrel_open_streams)'))[0]?.value[1]), { timeout: 30_000 })
      .toBe(1);
    stream.cut();
    await sleep(4_000);
    // On a busy machine, an alert may fire for a moment.
    const lasting = async () => (await firing()).filter((name) => !ofTheMachine.includes(name));
    await expect.poll(lasting, { timeout: 60_000 }).toEqual([]);
  },
  long,
);

test(
  'quarantined entries, token guesses, failing receivers and dropped updates fire their alerts',
  async () => {
    await provoke(['PetrelQuarantine'], async () => {
      const version = await redis.client.hincrby(keys.meta(0), 'ver', 1);
      await redis.client.xadd(keys.journal(0), `${version}-0`, 'what', 'is this');
    });
    await provoke(['PetrelGuessing'], async () => {
      for (let i = 0; i < 20; i++) await request(`${service.fronts[0].url}/bot1:made_up${i}/getMe`);
    });
    const books = await keepBooks(({ text }) => (text === 'taken' ? 200 : 500));
    const { url, certificate } = books;
    const hooked = await service.newBot(user, 'hooked');
    await service.openChat(user, hooked);
    // Replaces the pending update in the queue with a copy that is a day old.
    const [[id, fields] = []] = (await redis.client.xrangeBuffer(
      keys.queue(hooked.id),
      '-',
      '+',
    )) as unknown as [[Buffer, Buffer[]]];
    const old = [...(fields as Buffer[])];
    old[3] = Buffer.from(`${Date.now() - 24 * 3_600_000 - 1_000}`);
    await redis.client.del(keys.queue(hooked.id));
    await redis.client.xadd(keys.queue(hooked.id), String(id), ...(old as never[]));
    await resultOf(service.bot(hooked, 'setWebhook', { url, certificate }));
    const tell = (text: string) => service.app(user, 'POST', `/api/chats/${hooked.id}/messages`, { text });
    await tell('taken');
    await provoke(['PetrelDeadLetters']);
    await provoke(['PetrelDeliveriesFail'], () => tell('refused'));
    await deliver.stop();
    await redis.client.xadd(keys.outbox(1), '*', 'a', 'b');
    for (let i = 0; i < 30; i++) await redis.client.xadd(keys.outbox(1), '*', 'a', 'b');
    await tell('late');
    await provoke(['PetrelWebhooksLate', 'PetrelOutboxStuck', 'PetrelNodeDown']);
    await redis.client.del(keys.outbox(1));
    await startPatiently(deliver);
    await books.close();
  },
  3 * long,
);

test(
  'a blocked Postgres fires the alerts about the lag and the size of the journals',
  async () => {
    let held = true;
    const locking = pool.transaction(async (tx) => {
      await tx.query(statement('lock', 'lock table messages, users in access exclusive mode'));
      // Postgres ends a transaction that stays idle, so the transaction of this test keeps sending queries.
      for (; held; await sleep(500)) await tx.query(statement('still_here', 'select 1'));
    });
    await provoke(['PetrelFlushLag', 'PetrelJournalFilling', 'PetrelJournalFull'], () =>
      Promise.all(Array.from({ length: 30 }, (_, i) => send(`waits ${i}`))),
    );
    await provoke(['PetrelPostgresPoolFull'], async () => {
      const many = Array.from({ length: 12 }, () => service.newUser('waits').catch(() => null));
      await Promise.race([Promise.all(many), sleep(1_000)]);
    });
    held = false;
    await locking.catch(() => undefined);
    await flush.stop();
    await provoke(['PetrelNotFlushed']);
    // Creates another table with the name of tomorrow's partition.
    const tomorrow = `delivery_failures_${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')}`;
    await pool.query(statement('drop_tomorrow', `drop table ${tomorrow}`));
    await pool.query(statement('take_tomorrow', `create table ${tomorrow} (other int)`));
    await startPatiently(flush);
    await provoke(['PetrelDaysMissing']);
    await pool.query(statement('free_tomorrow', `drop table ${tomorrow}`));
  },
  3 * long,
);

test(
  'lost transactions of Postgres fire their alert',
  () =>
    provoke(['PetrelPostgresWentBack'], () =>
      pool.query(statement('forget', 'update control_marks set mark = mark - 1 where mark > 0')),
    ),
  long,
);

test(
  'alerts fire when a front is blocked, and when Redis is full, slow or unable to append',
  async () => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    await redis.client.config('SET', 'maxmemory', `${Math.round(used * 1.1)}`);
    await provoke(['PetrelRedisMemory']);
    await redis.client.config('SET', 'maxmemory', '0');
    const files = join(service.redis.dir as string, 'appendonlydir');
    renameSync(files, `${files}.away`);
    writeFileSync(files, 'in the way');
    await provoke(['PetrelRedisNotAppending'], () => redis.client.bgrewriteaof());
    rmSync(files);
    renameSync(`${files}.away`, files);
    await provoke(['PetrelSlowRequests', 'PetrelSlowScripts'], async () => {
      process.kill(service.redis.pid, 'SIGSTOP');
      const sent = Promise.all(Array.from({ length: 5 }, () => send('slow').catch(() => null)));
      await sleep(900);
      process.kill(service.redis.pid, 'SIGCONT');
      await sent;
    });
    await provoke(['PetrelEventLoopBlocked'], async () => {
      service.fronts[1]?.pause();
      await sleep(700);
      service.fronts[1]?.resume();
      await sleep(500);
    });
  },
  3 * long,
);

test(
  'the alerts for the loss of Redis fire when Redis is killed',
  async () => {
    process.kill(service.redis.pid, 'SIGKILL');
    await provoke(['PetrelRedisAway', 'PetrelAuthLeaseLost', 'PetrelServerErrors'], () => send('lost'));
  },
  long,
);

test(
  'each alert has fired in an earlier test, and every query of the dashboard has data',
  async () => {
    expect(
      alertsIn()
        .map(({ name }) => name)
        .filter((name) => !seen.has(name)),
    ).toEqual([]);
    const empty: string[] = [];
    for (const expr of shippedQueries()) {
      // Queries a range that is long enough to include the effects of all earlier tests.
      const found = await query(`last_over_time((${expr.replaceAll('[5m]', '[10m]')})[30m:5s])`);
      if (found.length === 0) empty.push(expr);
    }
    expect(empty).toEqual([]);
  },
  long,
);
