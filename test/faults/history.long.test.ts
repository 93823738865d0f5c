/**
 * Tests what happens after Postgres is restored to an earlier time. Revoked tokens stay revoked, no id is assigned
 * twice, and the flusher writes the newer data from Redis to Postgres again.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startPostgres } from '../../src/dev/postgres.js';
import { freePort } from '../../src/dev/processes.js';
import { openMasters } from '../support/cluster.js';
import { petrel } from '../support/command.js';
import { nothingWrong } from '../support/ledger.js';
import { pgbouncer, startPooler } from '../support/pgbouncer.js';
import { ask, atPort, copyFolder, openAddress, startPair } from '../support/postgres_pair.js';
import { temporaryFolder } from '../support/servers.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { compareStores, drained } from './compare.js';
import { patienceMs } from './report.js';
import { createWorld, eventually, type World } from './world.js';

/** A database server that can be restored to an earlier time in different ways. */
interface TimeMachine {
  readonly url: string;
  /** Marks the time to which the server can be restored. */
  mark(): Promise<void>;
  goBack(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Copies the data folder while the server is stopped. `goBack` restores this copy, with the same timeline and system
 * identifier.
 */
async function copied(): Promise<TimeMachine> {
  const address = await openAddress();
  const dir = temporaryFolder();
  const options = { dir: join(dir, 'postgres'), port: await freePort(), durable: false, detached: false };
  const data = join(options.dir, 'data');
  let server = await startPostgres(options);
  address.point(options.port);
  return {
    url: server.url.replace(/:\d+\//, `:${address.port}/`),
    async mark() {
      await server.stop();
      copyFolder(data, `${data}.then`);
      server = await startPostgres(options);
    },
    async goBack() {
      process.kill(server.pid, 'SIGQUIT');
      await server.exited;
      await rm(data, { recursive: true });
      copyFolder(`${data}.then`, data);
      server = await startPostgres(options);
    },
    async close() {
      await server.stop();
      await address.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Nothing listens here. */
const closedPort = 1;
const others =
  "select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";

/**
 * Starts a standby that replays all changes if `follows` is true, or only the changes before `mark`. Then promotes the
 * standby, which starts a new timeline.
 */
async function promoted(follows = false): Promise<TimeMachine> {
  const address = await openAddress();
  const pair = await startPair();
  address.point(pair.primaryPort);
  return {
    url: atPort(pair.primaryUrl, address.port),
    async mark() {
      await pair.addStandby();
      if (!follows) await pair.cut();
    },
    async goBack() {
      if (follows) {
        // Closes all connections before the standby catches up. Otherwise the service could commit a change that the
        // standby does not get.
        address.point(closedPort);
        await eventually(
          'no client is connected',
          async () => (await ask(pair.primaryUrl, others)).length === 0,
        );
        await pair.caughtUp();
      }
      await pair.killPrimary();
      await pair.promote();
      address.point(pair.standbyPort);
    },
    async close() {
      await pair.close();
      await address.close();
    },
  };
}

/** Puts the given server behind PgBouncer. Connections to PgBouncer stay open while the server is replaced. */
async function pooled(made: Promise<TimeMachine>): Promise<TimeMachine> {
  const machine = await made;
  const pooler = await startPooler(machine.url);
  return {
    ...machine,
    url: pooler.url,
    async close() {
      await pooler.stop();
      await machine.close();
    },
  };
}

let service: Service;
let machine: TimeMachine;
let owner: TestUser;
let world: World;

async function begin(made: Promise<TimeMachine>): Promise<void> {
  machine = await made;
  service = await startService({
    fronts: 2,
    database: { url: machine.url, drop: () => machine.close() },
    extraEnv: { PARTITIONS: '16', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
  });
  owner = await service.newUser('owner');
  world = await createWorld(service);
  world.poll((round) => round % 2);
}

afterEach(async () => {
  await world?.stop();
  await service?.stop();
});

const load = (count: number) => world.load({ count, front: (lane, tries) => (lane + tries) % 2, restMs: 5 });

const works = (token: string) =>
  Promise.all(
    [0, 1].map(async (front) => {
      let status = 503;
      await eventually('a call with this token is answered', async () => {
        status = (await service.bot(token, 'getMe', {}, front)).status;
        return status !== 503;
      });
      expect([200, 401]).toContain(status);
      return status === 200;
    }),
  );
const nowhere = [false, false];
const everywhere = [true, true];

const admin = (path: string, verb = 'POST') =>
  resultOf(service.app({ token: service.adminToken }, verb, path, {}));

/** Creates bots of new owners, so that no limit per owner is reached. */
async function makeBots(count: number): Promise<TestBot[]> {
  const made: TestBot[] = [];
  for (let i = 0; i < count; i += 10) {
    const user = await service.newUser('maker');
    made.push(...(await Promise.all(Array.from({ length: 10 }, () => service.newBot(user, 'made')))));
  }
  return made;
}

const send = async (bot: TestBot, user: TestUser, text: string): Promise<number> =>
  (await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text }))).message_id;

/**
 * Deletes from Redis all messages, chats and posts that are in Postgres, as if their time to live in Redis had ended.
 */
async function endHotTime(): Promise<void> {
  for (const master of openMasters(service.redis)) {
    for await (const keys of master.scanStream({ count: 1_000 })) {
      const hot = (keys as string[]).filter((key) => /\}:(msg|chat|post|acted):/.test(key));
      if (hot.length > 0) await Promise.all(hot.map((key) => master.del(key)));
    }
    master.disconnect();
  }
}

const rewritten = () =>
  eventually('all rows are written again', async () => {
    const rows = await ask<{ n: number }>(
      machine.url,
      'select count(*)::int as n from partitions where rewrite_after is not null',
    );
    return rows[0]?.n === 0;
  });

async function serving(): Promise<void> {
  const body = { language_code: 'en' };
  for (const front of [0, 1])
    await eventually(
      `front ${front} serves control operations`,
      async () =>
        (await service.app(owner, 'PATCH', '/api/me', body, front).catch(() => null))?.status === 200,
      60_000,
    );
}

/** Makes changes before and after the mark, restores Postgres to the mark, and checks ids and revocations. */
async function goBackUnderLoad(): Promise<void> {
  const [bot, hooked, suspended, person] = await Promise.all([
    service.newBot(owner, 'renewed'),
    service.newBot(owner, 'hooked'),
    service.newBot(owner, 'suspended'),
    service.newUser('person'),
  ]);
  const mine = await resultOf(service.app(person, 'POST', '/api/me/tokens', { name: 'lost phone' }));
  await service.openChat(person, bot);
  const channel = (
    await resultOf(service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'news' }))
  ).id;
  const post = async (text: string) => {
    const { message_id } = await resultOf(
      service.app(owner, 'POST', `/api/chats/${channel}/messages`, { text }),
    );
    const posts = await itemsOf(service.app(owner, 'GET', `/api/chats/${channel}/posts`));
    return posts.find((each: { message_id: number }) => each.message_id === message_id).id as number;
  };
  const react = (verb: string, id: number, emoji: string) =>
    resultOf(service.app(person, verb, `/api/posts/${id}/reactions`, { emoji }));
  const [liked, unliked] = [await post('liked'), await post('unliked')];
  await react('POST', unliked, '👍');
  const early = [await send(bot, person, 'stays'), await send(bot, person, 'is deleted later')];
  await load(100);
  await drained(service);
  await machine.mark();
  await serving();

  // The restore below removes all changes that are made from here on.
  await load(100);
  const renewed = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {}));
  await resultOf(service.app(person, 'DELETE', '/api/me/tokens', { name: 'lost phone' }));
  await admin(`/api/admin/bots/${suspended.id}/suspension`);
  await resultOf(service.bot(hooked, 'setWebhook', { url: 'https://127.0.0.1:8443/lost' }));
  expect((await service.bot(hooked, 'getUpdates')).status).toBe(409);
  const lost = await makeBots(60);
  const late = [await send(renewed, person, 'is kept'), await send(renewed, person, 'is deleted at once')];
  for (const message_id of [early[1], late[1]])
    await resultOf(service.bot(renewed, 'deleteMessage', { chat_id: person.id, message_id }));
  await react('POST', liked, '🔥');
  await react('DELETE', unliked, '👍');
  const fresh = await post('fresh');
  await react('POST', fresh, '👍');
  expect(await works(bot.token)).toEqual(nowhere);
  expect(await works(suspended.token)).toEqual(nowhere);
  await load(100);
  await drained(service);
  await machine.goBack();
  await serving();

  expect(await works(bot.token), 'a replaced token').toEqual(nowhere);
  expect(await works(suspended.token), 'the token of a suspended bot').toEqual(nowhere);
  expect((await service.app(mine, 'GET', '/api/me')).status, 'a revoked token of a person').toBe(401);
  expect((await service.app(person, 'GET', '/api/me')).status).toBe(200);
  for (const each of lost.slice(0, 5)) expect(await works(each.token), 'a lost bot').toEqual(nowhere);
  const given = new Set([...lost, bot, suspended].map(({ id }) => id));
  const made = await makeBots(80);
  expect(made.filter(({ id }) => given.has(id))).toEqual([]);

  const again = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {}));
  expect(await works(again.token)).toEqual(everywhere);
  const last = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {}));
  expect(await works(again.token)).toEqual(nowhere);
  expect(await works(bot.token)).toEqual(nowhere);
  expect(await works(last.token)).toEqual(everywhere);

  await load(100);
  await rewritten();
  // The restore has removed the webhook of this bot, so the bot can poll again.
  const poll = async () => (await service.bot(hooked, 'getUpdates')).body;
  await expect.poll(poll, { timeout: 60_000 }).toMatchObject({ ok: true });
  await drained(service);
  expect((await compareStores(service)).differences).toEqual([]);
  await endHotTime();
  const sent = await send(last, person, 'after');
  expect(sent).toBeGreaterThan(late[1] as number);
  const kept = await itemsOf(service.app(person, 'GET', `/api/chats/${bot.id}/messages?limit=100`));
  expect(kept.map(({ text }: { text: string }) => text)).toEqual(['after', 'is kept', 'stays', '/start']);
  const shown = async (id: number) => {
    const { reactions } = await resultOf(service.app(person, 'GET', `/api/posts/${id}`));
    return reactions.map(({ emoji, count, user_ids }: Record<string, unknown>) => [
      emoji,
      count,
      (user_ids as []).length,
    ]);
  };
  expect(await shown(liked)).toEqual([['🔥', 1, 1]]);
  expect(await shown(unliked)).toEqual([]);
  expect(await shown(fresh)).toEqual([['👍', 1, 1]]);
  expect(await world.settled()).toMatchObject(nothingWrong);
  const { out } = await petrel(service.env, 'doctor');
  expect(out).toMatch(/Postgres lost \d+ committed transactions within the last week/);
}

test(
  'after Postgres is restored from a copy of its data, no id is given out twice and no revocation is undone',
  async () => {
    await begin(copied());
    await goBackUnderLoad();
  },
  patienceMs,
);

test(
  'after a lagging standby is promoted, no id is given out twice and no revocation is undone',
  async () => {
    await begin(promoted());
    await goBackUnderLoad();
  },
  patienceMs,
);

test.runIf(pgbouncer)(
  'behind PgBouncer, promoting a standby that lagged gives out no id twice and undoes no revocation',
  async () => {
    await begin(pooled(promoted()));
    await goBackUnderLoad();
  },
  patienceMs,
);

test(
  'the incarnation stays the same when a standby without lost data is promoted',
  async () => {
    await begin(promoted(true));
    const bot = await service.newBot(owner, 'stays');
    await machine.mark();
    await serving();
    await load(100);
    const renewed = await resultOf(service.app(owner, 'POST', `/api/me/bots/${bot.id}/regenerate_token`, {}));
    await drained(service);
    await machine.goBack();
    await serving();
    expect(await works(bot.token)).toEqual(nowhere);
    expect(await works(renewed.token)).toEqual(everywhere);
    await load(100);
    expect(await world.settled()).toMatchObject(nothingWrong);
    await drained(service);
    expect((await compareStores(service)).differences).toEqual([]);
    const { out } = await petrel(service.env, 'doctor');
    expect(out).not.toContain('committed transactions');
    const logs = [...service.fronts, service.flush, service.deliver].map(({ log }) => log()).join('');
    expect(logs).toContain('Postgres failed over to another server, which has all committed transactions');
  },
  patienceMs,
);
