/**
 * Backs up a running service, restores the backup into an empty installation, and compares all rows of both. A later
 * test deletes all data of the restored Redis and rebuilds Redis from Postgres.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeRecords } from '../../src/store/core/redis_state.js';
import { openMasters } from '../support/cluster.js';
import { petrel, type Ran } from '../support/command.js';
import { freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { contentOf, elsewhere } from './installation.js';

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: Service;
let restored: Service | undefined;
let owner: TestUser;
let bot: TestBot;
let pushed: TestBot;
let group: number;
let polled: { readonly message_id: number; readonly poll: { readonly id: string } };

/** Waits until Postgres has all entries of the journal, and until the sweep has updated all copies in Redis. */
const quiet = async () => {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  await vi.waitFor(async () => expect((await client.query('select from control_outbox')).rowCount).toBe(0), {
    timeout: 30_000,
    interval: 100,
  });
  await client.end();
  for (const end = performance.now() + 20_000; performance.now() < end; ) {
    const [waiting] = /(\d+) entries wait/.exec((await petrel(service.env, 'doctor')).out)?.slice(1) ?? [];
    if (waiting === '0') return;
  }
  throw new Error('the journal did not drain');
};

const history = async (of: Service, chat: number) =>
  (await itemsOf(of.app(owner, 'GET', `/api/chats/${chat}/messages?limit=100`))).map(
    ({ message_id, text }: { message_id: number; text?: string }) => `${message_id} ${text}`,
  );
const pollPath = () => `/api/chats/${group}/messages/${polled.message_id}/poll`;
/** Returns how many votes each option of the poll has, and which options the owner has chosen. */
const votesIn = async (of: Service, answer = of.app(owner, 'GET', pollPath())) => {
  const { options, chosen_option_ids } = await resultOf(answer);
  return [options.map(({ voter_count }: { voter_count: number }) => voter_count), chosen_option_ids];
};
const voteIn = (of: Service, ...option_ids: number[]) => of.app(owner, 'POST', pollPath(), { option_ids });
const waitingFor = async (of: Service, each: TestBot) =>
  (await resultOf(of.bot(each, 'getUpdates', { timeout: 0 }))).map(
    ({ update_id, message }: { update_id: number; message?: { text?: string } }) =>
      `${update_id} ${message?.text}`,
  );

/** Inserts delivery failures of today, and of days for which the restored installation has no partition. */
async function spread(): Promise<void> {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  await client.query(
    `insert into delivery_failures (bot_id, id, update_id, at, error, latency_ms, answer, tries)
     select $1, nextval('delivery_attempts_id_seq'), n, now() - n * interval '5 hours', 'HTTP 500', 1, '', 1
       from generate_series(0, 19) n`,
    [pushed.id],
  );
  await client.end();
}

let before: { group: string[]; direct: string[]; waiting: string[]; rows: Map<string, string[]> };

beforeAll(async () => {
  service = await startService({ extraEnv: { PARTITIONS: '8' } });
  owner = await service.newUser('olga');
  [bot, pushed] = [await service.newBot(owner, 'b'), await service.newBot(owner, 'p')];
  for (const each of [bot, pushed]) await service.openChat(owner, each);
  group = await service.newGroup(owner, 'g', [bot]);
  for (let i = 0; i < 20; i++) {
    await resultOf(
      service.app(owner, 'POST', `/api/chats/${group}/messages`, { text: `/to_all ${i} ' \\ \t 🙂` }),
    );
    await resultOf(service.bot(bot, 'sendMessage', { chat_id: owner.id, text: `direct ${i}` }));
  }
  polled = await resultOf(
    service.bot(bot, 'sendPoll', {
      ...{ chat_id: group, question: 'Q', options: ['a', 'b'], is_anonymous: false },
    }),
  );
  await resultOf(voteIn(service, 1));
  // Waits for the update with the new vote counts, which the bot gets about a second after the vote.
  const updates = () => resultOf(service.bot(bot, 'getUpdates', { timeout: 0 }));
  await vi.waitFor(
    async () => expect((await updates()).some(({ poll }: { poll?: unknown }) => poll)).toBe(true),
    { timeout: 15_000, interval: 100 },
  );
  await resultOf(service.app(owner, 'PUT', `/api/me/bots/${pushed.id}/write_access`, { policy: 'owner' }));
  await spread();
  await quiet();
}, 90_000);
afterAll(async () => {
  await Promise.all([service?.stop(), restored?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

test('the backup of a running installation can be read only by its owner, and contains no tokens', async () => {
  const ran = await petrel(service.env, 'backup', at('one'));
  expect(ran, ran.log).toMatchObject({ code: 0 });
  expect(ran.out).toMatch(/redis {8}\w+[\s\S]*tables, \d+ rows/);
  expect(statSync(at('one')).mode & 0o777).toBe(0o700);
  before = {
    group: await history(service, group),
    direct: await history(service, bot.id),
    rows: await contentOf(service.databaseUrl),
    // The bot does not confirm the updates, so they stay pending.
    waiting: await waitingFor(service, bot),
  };
  expect(before.waiting.length).toBeGreaterThan(20);
  const manifest = readFileSync(join(at('one'), 'manifest.json'), 'utf8');
  expect(manifest).not.toContain('TOKEN_ROOT');
  expect((await petrel(service.env, 'backup', at('one'))).log).toMatch(/is not empty/);
});

test('backed-up keys cannot be read without their passphrase', async () => {
  const env = { ...service.env, BACKUP_PASSPHRASE: 'a passphrase of some length' };
  expect((await petrel(env, 'keys', 'seal', at('keys'))).code).toBe(0);
  const { out } = await petrel(
    { PATH: '', BACKUP_PASSPHRASE: env.BACKUP_PASSPHRASE },
    'keys',
    'open',
    at('keys'),
  );
  const opened = Object.fromEntries(
    out
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  const { TOKEN_PEPPER, TOKEN_KEYS, ADMIN_TOKEN, PARTITIONS } = service.env;
  expect(opened).toEqual({ TOKEN_PEPPER, TOKEN_KEYS, ADMIN_TOKEN, PARTITIONS });
  expect(readFileSync(at('keys'), 'latin1')).not.toContain(TOKEN_PEPPER);
  const wrong = await petrel({ BACKUP_PASSPHRASE: 'another one of some length' }, 'keys', 'open', at('keys'));
  expect(wrong.code).toBe(1);
  expect(wrong.log).toMatch(/cannot be decrypted/);
});

test('a key backup fails if a key is missing', async () => {
  const { TOKEN_PEPPER = '', TOKEN_KEYS = '', ...others } = service.env;
  writeFileSync(at('pepper'), `${TOKEN_PEPPER}\n`);
  writeFileSync(at('settings'), `TOKEN_KEYS=${TOKEN_KEYS}\nBACKUP_PASSPHRASE=a passphrase of some length\n`);
  const env = { ...others, PETREL_CONFIG: at('settings'), TOKEN_PEPPER_FILE: at('pepper') };
  const sealed = await petrel(env, 'keys', 'seal', at('from-files'));
  expect(sealed, sealed.log).toMatchObject({ code: 0 });
  expect(sealed.out).toMatch(/^sealed {7}TOKEN_PEPPER, TOKEN_KEYS, ADMIN_TOKEN, PARTITIONS\n$/);
  expect((await petrel(env, 'keys', 'open', at('from-files'))).out).toContain(
    `TOKEN_PEPPER=${TOKEN_PEPPER}\nTOKEN_KEYS=${TOKEN_KEYS}\n`,
  );

  const nothing = await petrel(
    { BACKUP_PASSPHRASE: 'a passphrase of some length' },
    'keys',
    'seal',
    at('none'),
  );
  expect(nothing.log).toMatch(/TOKEN_PEPPER is required.*TOKEN_KEYS is required/s);
  const other = `k9:${randomBytes(32).toString('base64')}`;
  const lacking = { ...service.env, BACKUP_PASSPHRASE: 'a passphrase of some length', TOKEN_KEYS: other };
  expect((await petrel(lacking, 'keys', 'seal', at('none'))).log).toContain('TOKEN_KEYS lacks the key t1');
  expect(existsSync(at('none'))).toBe(false);
});

test('a restore into an empty installation restores every row unchanged', async () => {
  const [database, redis] = await Promise.all([freshDatabase(), freshRedis()]);
  const env = elsewhere(service.env, redis, database.url);
  const refusals: Array<[string, Ran]> = [
    [
      'TOKEN_PEPPER does not contain',
      await petrel({ ...env, TOKEN_PEPPER: randomBytes(32).toString('hex') }, 'restore', at('one')),
    ],
    ['is not a backup', await petrel(env, 'restore', folder)],
  ];
  for (const [why, { code, log }] of refusals) {
    expect(code).toBe(1);
    expect(log).toContain(why);
  }
  const ran = await petrel(env, 'restore', at('one'));
  expect(ran, ran.log).toMatchObject({ code: 0 });
  const rows = await contentOf(database.url);
  // The copy of a Redis master starts with a new replication id. In a cluster, the nodes notice this within a second
  // and change the rows of the table `partitions`, so this table is not compared.
  if (service.redis.cluster) before.rows.delete('partitions');
  for (const [table, expected] of before.rows) expect(rows.get(table), table).toEqual(expected);
  expect([...before.rows.values()].flat().length).toBeGreaterThan(80);
  expect((await petrel(env, 'restore', at('one'))).log).toMatch(/is not empty/);

  const { TOKEN_PEPPER, TOKEN_KEYS } = service.env;
  restored = await startService({
    redis,
    database,
    extraEnv: {
      ...{ PARTITIONS: '8', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
      ...{ TOKEN_PEPPER: TOKEN_PEPPER as string, TOKEN_KEYS: TOKEN_KEYS as string },
    },
  });
  expect(await resultOf(restored.bot(bot, 'getMe'))).toMatchObject({ id: bot.id });
  expect(await history(restored, group)).toEqual(before.group);
  expect(await history(restored, bot.id)).toEqual(before.direct);
  expect(await waitingFor(restored, bot)).toEqual(before.waiting);
  expect(await votesIn(restored)).toEqual([[0, 1], [1]]);
  expect(await votesIn(restored, voteIn(restored, 0))).toEqual([[1, 0], [0]]);
  const sent = await resultOf(restored.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'on' }));
  expect(sent.message_id).toBeGreaterThan(10_000);
}, 180_000);

test('after Redis loses all data, messages are served from Postgres', async () => {
  const of = restored as Service;
  const kinds = ['message', 'chat_member'];
  await resultOf(of.bot(bot, 'getUpdates', { allowed_updates: kinds }));
  const url = 'https://127.0.0.1:8443/hook';
  await resultOf(of.bot(pushed, 'setWebhook', { url, allowed_updates: ['callback_query'] }));
  // Stops the flusher cleanly, after which all messages are in Postgres.
  await of.flush.stop();
  for (const client of openMasters(of.redis)) {
    await client.flushall();
    client.disconnect();
  }
  await of.flush.start();
  const ran = await petrel(of.env, 'redis', 'rebuild');
  expect(ran, ran.log).toMatchObject({ code: 0 });
  expect(ran.out).toMatch(/partitions {3}8 on 1 Redis servers, all open/);
  expect(ran.out).toMatch(
    /lost {9}noticed \S+ in [1-8] partitions:[\s\S]*the last write to Postgres before was 2[\s\S]*pending updates/,
  );
  expect(ran.out).toContain(describeRecords().join('\n'));
  // Expects two queues, because the management bot has a queue too.
  expect(ran.out).toMatch(/webhooks {5}2 queues are open/);
  const infoOf = (each: TestBot) => resultOf(of.bot(each, 'getWebhookInfo'));
  expect(await infoOf(bot)).toMatchObject({ allowed_updates: kinds });
  expect(await infoOf(pushed)).toMatchObject({ url, allowed_updates: ['callback_query'] });
  expect((await of.bot(pushed, 'getUpdates')).status).toBe(409);
  expect(await history(of, group)).toEqual(before.group);
  const direct = await history(of, bot.id);
  expect(direct.slice(-before.direct.length)).toEqual(before.direct);
  const again = await resultOf(of.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'after' }));
  const ids = direct.map((line: string) => Number.parseInt(line, 10));
  expect(again.message_id).toBeGreaterThan(Math.max(...ids));
  expect(await waitingFor(of, bot)).toEqual([]);
  expect(await votesIn(of)).toEqual([[1, 0], [0]]);
  expect(await votesIn(of, voteIn(of, 1))).toEqual([[0, 1], [1]]);
  const stopped = await resultOf(of.bot(bot, 'stopPoll', { chat_id: group, message_id: polled.message_id }));
  expect(stopped).toMatchObject({ is_closed: true, total_voter_count: 1 });
  expect((await voteIn(of, 0)).body.description).toBe('Bad Request: poll has already been closed');
  await resultOf(of.app(owner, 'POST', `/api/chats/${group}/messages`, { text: '/received' }));
  // Waits for the update. It arrives with a delay, because it is forwarded from the partition of the group to the
  // partition of the bot.
  let received: string[] = [];
  for (const end = performance.now() + 20_000; received.length === 0 && performance.now() < end; )
    received = await waitingFor(of, bot);
  expect(received.at(-1)).toMatch(/\/received$/);
}, 180_000);

test('a restore of Postgres is refused while the Redis of the installation is in use', async () => {
  const database = await freshDatabase();
  try {
    const env = { ...service.env, DATABASE_URL: database.url };
    const { code, log } = await petrel(env, 'restore', at('one'), '--no-redis');
    expect(code).toBe(1);
    expect(log).toContain('the Redis of REDIS_URL is not empty');
    await expect(contentOf(database.url)).resolves.toEqual(new Map([['sequences', []]]));
  } finally {
    await database.drop();
  }
});

test('a damaged backup is refused', async () => {
  appendFileSync(join(at('one'), 'users.copy.gz'), 'x');
  const { code, log } = await petrel(service.env, 'restore', at('one'));
  expect(code).toBe(1);
  expect(log).toMatch(/users\.copy\.gz is damaged/);
});
