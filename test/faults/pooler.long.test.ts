/**
 * Tests PgBouncer in transaction mode between the roles and Postgres: all functions work, even while Postgres restarts.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { databaseProblem } from '../../src/postgres/migrate.js';
import { createPool, statement } from '../../src/postgres/pool.js';
import { petrel } from '../support/command.js';
import { nothingWrong } from '../support/ledger.js';
import { type Pooler, pgbouncer, startPooler } from '../support/pgbouncer.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { ownPostgres, type Restartable } from './backends.js';
import { compareStores, drained } from './compare.js';
import { patienceMs } from './report.js';
import { createWorld } from './world.js';

let postgres: Restartable;
let pooler: Pooler;
let service: Service;

beforeAll(async () => {
  if (!pgbouncer) return;
  postgres = await ownPostgres();
  pooler = await startPooler(postgres.url);
  const drop = async () => {
    await pooler.stop();
    await postgres.stop();
  };
  service = await startService({
    fronts: 2,
    database: { url: pooler.url, drop },
    // The pool has more connections than a transaction has retries. Retries alone therefore cannot get past all
    // broken connections.
    extraEnv: { PARTITIONS: '16', POSTGRES_POOL: '12' },
  });
});
afterAll(() => service?.stop());

test.runIf(pgbouncer)(
  'the service works through PgBouncer',
  async () => {
    const owner = await service.newUser('pooled');
    const bot = await service.newBot(owner, 'pooled');
    await service.openChat(owner, bot);
    const world = await createWorld(service);
    world.poll((round) => round % 2);
    const ended = new AbortController();
    const refusals: unknown[] = [];
    const loading = world.load({
      count: Number.POSITIVE_INFINITY,
      front: (lane, tries) => (lane + tries) % 2,
      // The pause limits the load, so that Postgres has enough processor time to start. A front waits only two seconds
      // for a connection.
      restMs: 50,
      signal: ended.signal,
      onRefusal: (status, body) => refusals.push([status, body]),
    });
    // The first call about a chat and the first call with a token read Postgres. Later calls find everything in memory.
    await world.warmedUp();
    for (let round = 0; round < 3; round++) {
      await postgres.halt();
      await postgres.start();
      // The pool checked each connection before the server was restarted, so the next use of a connection may fail.
      await service.newBot(owner, 'between');
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          service.app(owner, 'PATCH', '/api/me', { language_code: i % 3 ? 'en' : 'de' }, i % 2),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    }
    ended.abort();
    await loading;
    expect(refusals).toEqual([]);
    expect(await world.settled()).toMatchObject(nothingWrong);
    await drained(service);
    expect((await compareStores(service)).differences).toEqual([]);
    const listed = await resultOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=10`));
    expect(listed.items).toHaveLength(1);
    const exported = await fetch(`${service.fronts[0].url}/api/me/export`, {
      headers: { authorization: `Bearer ${owner.token}` },
    });
    expect(await exported.text()).toContain('"text":"/start"');

    const folder = temporaryFolder();
    const backup = await petrel(service.env, 'backup', join(folder, 'backup'));
    await rm(folder, { recursive: true });
    expect(backup.code, backup.log).toBe(0);
    const doctor = await petrel(service.env, 'doctor');
    expect(doctor.out).not.toMatch(/committed transactions/);
  },
  patienceMs,
);

test.runIf(pgbouncer)('statements have a time limit even if session settings are not available', async () => {
  const pool = createPool({ url: pooler.url, max: 1, name: 'bounds' });
  const show = (name: string) => statement(name, `select current_setting('${name}') as value`);
  for (const name of ['statement_timeout', 'idle_in_transaction_session_timeout']) {
    expect((await pool.query(show(name))).rows).toEqual([{ value: '10s' }]);
    expect((await pool.transaction((tx) => tx.query(show(name)))).rows).toEqual([{ value: '10s' }]);
  }
  await pool.close();
});

test.runIf(pgbouncer)(
  'a start refuses a DATABASE_URL that leads to a pooler but does not say so',
  async () => {
    expect(await databaseProblem(pooler.url)).toBeNull();
    expect(await databaseProblem(postgres.url)).toBeNull();
    expect(await databaseProblem(pooler.bareUrl)).toMatch(
      /^DATABASE_URL leads to a pooler: add \?pooler=unnamed/,
    );
    const { code, log } = await petrel({ ...service.env, DATABASE_URL: pooler.bareUrl }, 'flush');
    expect(code).not.toBe(0);
    expect(log).toContain('DATABASE_URL leads to a pooler');
  },
);
