/**
 * Promotes a standby while the former primary is still running. Nodes that are still connected to the former primary
 * must not change anything there.
 */
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { petrel } from '../support/command.js';
import { nothingWrong } from '../support/ledger.js';
import { type Address, ask, atPort, openAddress, type Pair, startPair } from '../support/postgres_pair.js';
import { resultOf, type Service, startService, type TestUser } from '../support/service.js';
import { compareStores, drained } from './compare.js';
import { patienceMs } from './report.js';
import { createWorld, eventually, type World } from './world.js';

/** A port on which nothing listens. */
const closedPort = 9;

let pair: Pair;
let most: Address;
let second: Address;
let service: Service;
let world: World;
let owner: TestUser;

/**
 * Starts two fronts. The second front reaches Postgres at a separate address, and all other roles use a common address.
 */
async function begin(): Promise<void> {
  pair = await startPair();
  [most, second] = await Promise.all([openAddress(), openAddress()]);
  for (const address of [most, second]) address.point(pair.primaryPort);
  const drop = async () => {
    await Promise.all([most.close(), second.close()]);
    await pair.close();
  };
  const url = atPort(pair.primaryUrl, most.port);
  service = await startService({
    fronts: 2,
    database: { url, drop },
    extraEnv: { PARTITIONS: '16' },
  });
  await pair.addStandby();
  service.env.DATABASE_URL = atPort(pair.primaryUrl, second.port);
  await service.fronts[1]?.stop();
  await service.fronts[1]?.start();
  service.env.DATABASE_URL = url;
  owner = await service.newUser('owner');
  world = await createWorld(service);
  world.poll((round) => round % 2);
}
afterEach(async () => {
  await world?.stop();
  await service?.stop();
});

const load = (count: number) => world.load({ count, front: (lane, tries) => (lane + tries) % 2, restMs: 5 });
const speak = (front: number, language_code = 'en') =>
  service.app(owner, 'PATCH', '/api/me', { language_code }, front);
const serves = (front: number) =>
  eventually(
    `front ${front} serves control operations`,
    async () => (await speak(front).catch(() => null))?.status === 200,
    60_000,
  );
const flushed = async (url: string) =>
  (await ask<{ n: string }>(url, 'select sum(flushed_version)::text as n from partitions'))[0]?.n;

test(
  'a former primary of Postgres acknowledges no change, not even after its restart',
  async () => {
    await begin();
    await load(100);
    await drained(service);
    // From here on, a transaction on the former primary would be lost. The second front stays connected to the former
    // primary.
    most.point(closedPort);
    service.fronts[1]?.pause();
    await pair.caughtUp();
    await pair.cut();
    await pair.promote();
    service.fronts[1]?.resume();
    most.point(pair.standbyPort);
    await serves(0);

    // The second front is still connected to the former primary, so its changes must be refused.
    expect((await speak(1, 'de')).status).toBe(503);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => speak(1, 'de').then(({ status }) => status)),
    );
    expect(new Set(answers)).toEqual(new Set([503]));
    const before = await flushed(pair.primaryUrl);
    await load(100);
    await drained(service);
    expect(await flushed(pair.primaryUrl)).toBe(before);

    second.point(pair.primaryPort);
    expect((await speak(1, 'de')).status).toBe(503);
    await pair.killPrimary();
    await pair.startPrimary();
    expect((await speak(1, 'de')).status).toBe(503);
    const { code, log } = await petrel(
      { ...service.env, DATABASE_URL: pair.primaryUrl, START_MS: '5000' },
      'doctor',
    );
    expect(code).not.toBe(0);
    expect(log).toMatch(/this Postgres was replaced by another one, as by a promotion, and is refused/);

    second.point(pair.standbyPort);
    await serves(1);
    await load(100);
    await drained(service);
    const languages = `select language_code from users where id = ${owner.id}`;
    expect(await ask(pair.standbyUrl, languages)).toEqual([{ language_code: 'en' }]);
    expect((await compareStores({ ...service, databaseUrl: pair.standbyUrl })).differences).toEqual([]);
    const { out } = await petrel(service.env, 'doctor');
    expect(out).not.toMatch(/committed transactions/);

    const accepted = await petrel({ ...service.env, DATABASE_URL: pair.primaryUrl }, 'accept-postgres');
    expect(accepted.out, accepted.log).toMatch(/timeline 00000001: nodes accept it/);
    for (const address of [most, second]) address.point(pair.primaryPort);
    for (const front of [0, 1]) await serves(front);
    await load(50);
    await drained(service);
    await eventually('all rows are written again', async () => {
      const left = 'select 1 from partitions where rewrite_after is not null';
      return (await ask(pair.primaryUrl, left)).length === 0;
    });
    expect((await compareStores(service)).differences).toEqual([]);
    expect(await world.settled()).toMatchObject(nothingWrong);
  },
  patienceMs,
);

test(
  'a token of a bot or administrator stays revoked even if only the former primary stored the revocation',
  async () => {
    await begin();
    const admin = async (...args: string[]) => petrel(service.env, 'admin', ...args);
    const token = (await admin('tokens', 'add', 'ada')).out.trim();
    const look = (front: number) =>
      service.app({ token }, 'GET', '/api/admin/reserved_usernames', undefined, front);
    expect((await look(0)).status).toBe(200);
    const bot = await service.newBot(owner, 'renewed');
    await pair.caughtUp();
    await pair.cut();
    expect((await admin('tokens', 'revoke', 'ada')).code).toBe(0);
    expect((await look(0)).status).toBe(401);

    await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {}));
    await pair.promote();
    most.point(pair.standbyPort);
    await serves(0);
    second.point(pair.standbyPort);
    await serves(1);
    for (const front of [0, 1]) {
      expect((await look(front)).status, 'a revoked token of an administrator').toBe(401);
      expect((await service.bot(bot.token, 'getMe', {}, front)).status, 'a renewed token of a bot').toBe(401);
    }
    const db = new pg.Client(pair.standbyUrl);
    await db.connect();
    expect((await db.query('select 1 from admin_tokens')).rows).toEqual([]);
    await db.end();
  },
  patienceMs,
);
