/** Tests the calls with which administrators find people and bots, and see the state of a bot. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Books, keepBooks } from '../delivery/world.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let operator: { readonly token: string };
let books: Books;
let status = 200;
let owner: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  operator = { token: service.adminToken };
  books = await keepBooks(() => status);
});
beforeAll(async () => {
  owner = await service.newUser('oscar');
  bot = await service.newBot(owner, 'overseen');
  await service.openChat(owner, bot);
});
afterAll(async () => {
  await books?.close();
});

async function change(statement: string, values: readonly unknown[]): Promise<void> {
  const database = new pg.Client(service.databaseUrl);
  await database.connect();
  await database.query(statement, [...values]).finally(() => database.end());
}

const admin = (path: string) => service.app(operator, 'GET', `/api/admin/${path}`);
const refusal = (code: number, description: string) => ({
  status: code,
  body: { ok: false, error_code: code, description },
});
const shown = () => resultOf(admin(`bots/${bot.id}`));
const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));

interface Found {
  readonly type: string;
  readonly id: number;
}
async function search(query: string, limit = 100): Promise<Found[]> {
  const found: Found[] = [];
  for (let cursor = ''; ; ) {
    const page = await resultOf(
      admin(`accounts?query=${encodeURIComponent(query)}&limit=${limit}${cursor && `&cursor=${cursor}`}`),
    );
    found.push(...page.items);
    if (page.next_cursor === undefined) return found;
    cursor = page.next_cursor;
  }
}
const idsOf = (found: readonly Found[]) => found.map(({ id }) => id);

test.each(['bots/1', 'bots/1/attempts', 'accounts?query=a', 'users/1', 'users/1/bots'])(
  'GET /api/admin/%s refuses callers who are not administrators',
  async (path) => {
    for (const token of ['', 'wrong', owner.token])
      expect(await service.app({ token }, 'GET', `/api/admin/${path}`)).toMatchObject(
        refusal(401, 'Unauthorized'),
      );
  },
);

test.each([
  ['bots/999999999', 404, 'Not Found: bot not found'],
  ['bots/999999999/attempts', 404, 'Not Found: bot not found'],
  ['users/999999999', 404, 'Not Found: user not found'],
  ['users/999999999/bots', 404, 'Not Found: user not found'],
  ['accounts', 400, 'Bad Request: parameter "query" is required'],
  [
    `accounts?query=${'x'.repeat(257)}`,
    400,
    'Bad Request: parameter "query" must be 1 to 8 words of at most 256 bytes',
  ],
  ['accounts?query=%20', 400, 'Bad Request: parameter "query" must be 1 to 8 words of at most 256 bytes'],
  [
    `accounts?query=${'a+b+c+d+e+f+g+h+i'}`,
    400,
    'Bad Request: parameter "query" must be 1 to 8 words of at most 256 bytes',
  ],
  ['accounts?query=a&cursor=x', 400, 'Bad Request: parameter "cursor" must be a cursor of an earlier answer'],
])('GET /api/admin/%s answers %d with the reason', async (path, code, description) => {
  expect(await admin(path)).toMatchObject(refusal(code, description));
});

test('GET /api/admin/bots/{id}/attempts refuses an unknown status', async () => {
  expect(await admin(`bots/${bot.id}/attempts?status=late`)).toMatchObject(
    refusal(400, 'Bad Request: parameter "status" must be delivered, failed or an HTTP status'),
  );
});

test('a search finds people and bots by parts of usernames and names, in any case and script', async () => {
  const anna = await service.newUser('anna_search');
  await change("update users set first_name = 'Жанна', last_name = 'O''Hara_%' where id = $1", [anna.id]);
  const annas = await service.newBot(anna, 'annas_search');
  expect(idsOf(await search('ANNAS_SEARCH'))).toEqual([annas.id]);
  expect(idsOf(await search('anna_sea'))).toEqual([anna.id]);
  expect(await search('жАНН')).toMatchObject([{ type: 'person', id: anna.id }]);
  expect(idsOf(await search("o'hara_% жанна"))).toEqual([anna.id]);
  expect(idsOf(await search('жанна smith'))).toEqual([]);
  expect(await search(`@${annas.username}`)).toMatchObject([
    { type: 'bot', id: annas.id, username: annas.username, suspended: false },
  ]);
  // The characters % and _ are searched literally.
  expect(idsOf(await search('жан_а'))).toEqual([]);
  expect(idsOf(await search('жан%'))).toEqual([]);
});

test('an account whose id or username equals the query comes first and is shown once', async () => {
  const old = await service.newUser('exact');
  const [copy, other] = [await service.newBot(old, `x${old.id}`), await service.newBot(old, 'unlike')];
  expect(idsOf(await search(String(old.id)))).toEqual([old.id, copy.id]);
  expect(idsOf(await search(String(old.id), 1))).toEqual([old.id, copy.id]);
  expect(idsOf(await search(old.username.toUpperCase()))).toEqual([old.id]);
  expect(idsOf(await search(String(other.id)))).toEqual([other.id]);
});

test('a search shows suspended accounts as suspended, and omits deleted accounts', async () => {
  const gone = await service.newUser('leaving');
  const path = `/api/admin/users/${gone.id}`;
  await resultOf(service.app(operator, 'POST', `${path}/suspension`));
  expect(await search(gone.username)).toMatchObject([{ id: gone.id, suspended: true }]);
  expect(await resultOf(admin(`users/${gone.id}`))).toMatchObject({
    ...{ id: gone.id, username: gone.username, state: 'suspended', bot_count: 0 },
    state_date: expect.any(Number),
  });
  await resultOf(service.app(operator, 'DELETE', path, { confirm: true }));
  expect(await search(gone.username)).toEqual([]);
  expect(await search(String(gone.id))).toEqual([]);
  expect((await admin(`users/${gone.id}`)).status).toBe(404);
});

test('operators see the owner, queues, outcomes and limits of a bot, but no secrets', async () => {
  const { certificate } = books;
  const url = `${books.url}?key=url-secret`;
  const hook = { url, certificate, secret_token: 'header-secret', max_connections: 7 };
  const retry_policy = { first_delay: 1, factor: 1, max_age: 600 };
  await resultOf(service.bot(bot, 'setWebhook', { ...hook, retry_policy }));
  status = 200;
  await say('taken');
  await expect.poll(async () => (await shown()).delivered_count).toBeGreaterThan(0);
  status = 500;
  await resultOf(service.bot(bot, 'setWebhookRoute', { name: 'half', ...hook, retry_policy }));
  await say('refused');
  await expect.poll(async () => (await shown()).failed_count).toBeGreaterThan(0);
  const answer = await shown();
  const host = new URL(books.url).host;
  expect(answer).toMatchObject({
    ...{ id: bot.id, username: bot.username, state: 'active', dead_count: 0, dead_letter_count: 0 },
    owner: { id: owner.id, username: owner.username, suspended: false },
    queues: [
      { webhook_host: host, max_connections: 7, retry_policy, has_custom_certificate: true },
      {
        ...{ route: 'half', webhook_host: host, pending_update_count: 1 },
        last_error_message: 'Wrong response from the webhook: 500 Internal Server Error',
      },
    ],
    pending_updates_max: 100_000,
  });
  expect(answer.queues[0].latency_p50_ms).toBeGreaterThanOrEqual(0);
  expect(answer.queues[0].delivered_per_second).toBeGreaterThan(0);
  expect(answer.queues[1]).not.toHaveProperty('latency_p50_ms');
  expect(answer.queues[1].failed_per_second).toBeGreaterThan(0);
  expect(answer.outcomes).toContainEqual(
    expect.objectContaining({ delivered: true, status: null, error: null }),
  );
  expect(answer.outcomes).toContainEqual(
    expect.objectContaining({ route: 'half', delivered: false, status: 500 }),
  );
  const attempts = await resultOf(admin(`bots/${bot.id}/attempts?limit=100`));
  const failed = await resultOf(admin(`bots/${bot.id}/attempts?status=failed`));
  expect(attempts.items.at(-1)).toMatchObject({ delivered: true, status: 200 });
  expect(failed.items.every((item: { status: number }) => item.status === 500)).toBe(true);
  const all = JSON.stringify([answer, attempts, await search(bot.username)]);
  for (const secret of ['url-secret', 'header-secret', 'BEGIN CERTIFICATE', bot.token, owner.token, 'whsec_'])
    expect(all).not.toContain(secret);
  expect(attempts.items.every((item: object) => !('answer' in item))).toBe(true);
  status = 200;
  await resultOf(service.bot(bot, 'deleteWebhookRoute', { name: 'half', drop_pending_updates: true }));
  await resultOf(service.bot(bot, 'setWebhook', { url: '', drop_pending_updates: true }));
  expect((await shown()).queues).toMatchObject([{ pending_update_count: 0 }]);
  expect((await shown()).queues[0].webhook_host).toBeUndefined();
});

test('if a bot had too many delivery attempts in the last hour, the newest attempts determine its rates', async () => {
  const busy = await service.newBot(owner, 'busy');
  // Inserts more failures than the rates take into account: 1,200 failures, one per second, and 30 failures that are
  // older than an hour.
  await change(
    `insert into delivery_failures (bot_id, id, update_id, at, status, error, latency_ms, answer, tries)
     select $1::bigint, 1300 - n, n, now() - n * interval '1 second', 502, 'bad gateway', n % 100, '', 1
       from generate_series(1, 1200) n
     union all select $1::bigint, n, n, now() - interval '2 hours', 503, 'old', 1, '', 1 from generate_series(1, 30) n`,
    [busy.id],
  );
  const [outcome, ...others] = (await resultOf(admin(`bots/${busy.id}`))).outcomes;
  expect(others).toEqual([]);
  expect(outcome).toMatchObject({ status: 502, error: 'bad gateway', count: 1_000, latency_p50_ms: 49 });
  expect(outcome.per_second).toBeGreaterThan(0.5);
  expect(outcome.per_second).toBeLessThanOrEqual(1);
});

test('a suspended bot is shown as suspended, and a bot with a blocked token is shown as blocked', async () => {
  const [one, leaked] = [await service.newBot(owner, 'stopped'), await service.newBot(owner, 'leaked')];
  const stateOf = async ({ id }: TestBot) => (await resultOf(admin(`bots/${id}`))).state;
  await resultOf(service.app(operator, 'POST', `/api/admin/bots/${one.id}/suspension`));
  expect(await stateOf(one)).toBe('suspended');
  await resultOf(service.app(operator, 'DELETE', `/api/admin/bots/${one.id}/suspension`));
  expect(await stateOf(one)).toBe('active');
  await change('update bots set blocked_hmac = token_hmac, blocked_at = now() where id = $1', [leaked.id]);
  expect(await resultOf(admin(`bots/${leaked.id}`))).toMatchObject({
    state: 'blocked',
    state_date: expect.any(Number),
  });
  await resultOf(service.app(owner, 'DELETE', `/api/me/bots/${one.id}`, { confirm: true }));
  expect((await admin(`bots/${one.id}`)).status).toBe(404);
});

test('the bots of a person are listed in pages', async () => {
  const maker = await service.newUser('maker');
  const bots = [];
  for (const name of ['one', 'two', 'three']) bots.push((await service.newBot(maker, name)).id);
  expect(await resultOf(admin(`users/${maker.id}`))).toMatchObject({ bot_count: 3, state: 'active' });
  const first = await resultOf(admin(`users/${maker.id}/bots?limit=2`));
  const next = await resultOf(admin(`users/${maker.id}/bots?limit=2&cursor=${first.next_cursor}`));
  expect([...idsOf(first.items), ...idsOf(next.items)]).toEqual(bots);
  expect(next.next_cursor).toBeUndefined();
});
