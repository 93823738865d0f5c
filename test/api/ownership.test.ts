import { request } from 'undici';
import { beforeEach, describe, expect, test } from 'vitest';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { keepBooks } from '../delivery/world.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let heir: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
});
beforeEach(async () => {
  owner = await service.newUser('olga');
  heir = await service.newUser('heidi');
  bot = await service.newBot(owner, 'handed');
});

const path = (rest = '', id = bot.id) => `/api/me/bots/${id}${rest}`;
const transfer = (by: TestUser, body: unknown, front = 0) =>
  service.app(by, 'POST', path('/transfer'), body, front);
const hand = () => resultOf(transfer(owner, { username: heir.username, confirm: true }));
const listed = async (user: TestUser, front = 0) =>
  (await itemsOf(service.app(user, 'GET', '/api/me/bots', undefined, front))).map(
    ({ id }: { id: number }) => id,
  );
const audit = async (by: TestUser, query = '') =>
  (await resultOf(service.app(by, 'GET', path(`/audit${query}`)))).items;
const events = async (by: TestUser) => (await audit(by)).map(({ event }: { event: string }) => event);
const refusal = (status: number, description: string) => ({
  status,
  body: { ok: false, error_code: status, description },
});

/** Returns parameters that satisfy every owner endpoint, so that a call can be refused only because of the caller. */
const suitable = () => ({
  ...{
    username: heir.username,
    confirm: true,
    policy: 'all',
    usernames: [],
    dead_letters: true,
    enabled: false,
  },
});

describe('bots are transferred', () => {
  test('after a transfer, every owner endpoint on every node accepts only the new owner', async () => {
    const known = (await resultOf(service.bot(bot, 'getMe', {}, 1))).id;
    expect(known).toBe(bot.id);
    expect(await hand()).toBe(true);
    const owners = endpoints.filter((each) => each.path.startsWith('/api/me/bots/{bot_id}'));
    expect(owners.length).toBeGreaterThan(12);
    for (const { verb, path: pattern } of owners) {
      const body = verb === 'GET' || verb === 'DELETE' ? undefined : suitable();
      const call = (id: number, front: number) =>
        service.app(
          owner,
          verb,
          pattern.replace('{bot_id}', String(id)).replace(/\{\w+\}/, '1'),
          body,
          front,
        );
      for (const front of [0, 1]) {
        const refused = await call(bot.id, front);
        expect([verb, pattern, refused.body.description, refused.status]).toEqual([
          ...[verb, pattern, 'Forbidden: not the owner of the bot', 403],
        ]);
      }
      // The same call for an unknown bot gets 404. This proves that the call for the transferred bot was refused
      // because of the caller and not because of the parameters.
      const unknown = await call(999_999_999, 0);
      expect([verb, pattern, unknown.status]).toEqual([verb, pattern, 404]);
    }
    for (const front of [0, 1]) {
      expect(await listed(owner, front)).not.toContain(bot.id);
      expect(await listed(heir, front)).toContain(bot.id);
      expect((await service.bot(bot, 'getMe', {}, front)).status).toBe(401);
    }
  });

  test('a transferred bot has a new token, which the recipient can read', async () => {
    await hand();
    const { token } = await resultOf(service.app(heir, 'GET', path('/token')));
    expect(token).not.toBe(bot.token);
    for (const front of [0, 1]) {
      expect((await resultOf(service.bot(token, 'getMe', {}, front))).id).toBe(bot.id);
    }
  });

  test('a transferred bot keeps its webhook, texts and updates', async () => {
    await resultOf(
      service.app(owner, 'PATCH', path(), { name: { '': 'New name' }, description: { '': 'Said' } }),
    );
    await service.openChat(owner, bot);
    await resultOf(service.bot(bot, 'setWebhook', { url: 'https://127.0.0.1:2/hook', max_connections: 7 }));
    await resultOf(service.app(owner, 'PUT', path('/write_access'), { policy: 'owner' }));
    const secret = await resultOf(service.app(owner, 'GET', path('/webhook/secret')));
    const info = (await resultOf(service.bot(bot, 'getWebhookInfo'))).pending_update_count;
    expect(info).toBe(1);
    await hand();
    const { token } = await resultOf(service.app(heir, 'GET', path('/token')));
    expect(await resultOf(service.bot(token, 'getWebhookInfo'))).toMatchObject({
      ...{ url: 'https://127.0.0.1:2/hook', max_connections: 7, pending_update_count: 1 },
    });
    expect(await resultOf(service.app(heir, 'GET', path()))).toMatchObject({
      name: 'New name',
      texts: { name: { '': 'New name' }, description: { '': 'Said' } },
      write_access: { policy: 'owner' },
    });
    const now = await resultOf(service.app(heir, 'GET', path('/webhook/secret')));
    expect(now.secret).not.toBe(secret.secret);
    expect(now.previous_valid_until).toBeGreaterThan(Date.now() / 1_000);
    // With the write access policy `owner`, every node now lets the new owner write and refuses the former owner.
    const says = (by: TestUser, front: number) =>
      service.app(by, 'POST', `/api/chats/${bot.id}/messages`, { text: 'hi' }, front);
    for (const front of [0, 1]) {
      expect(await says(owner, front)).toMatchObject(refusal(403, "Forbidden: you can't write to this bot"));
    }
    await service.openChat(heir, bot);
    for (const front of [0, 1]) expect((await says(heir, front)).status).toBe(200);
  });

  test('the new owner does not see audit entries of the former owner', async () => {
    await resultOf(service.app(owner, 'GET', path('/token')));
    expect(await events(owner)).toEqual(['token_shown', 'created']);
    await hand();
    expect(await audit(heir)).toEqual([
      {
        id: expect.any(Number),
        event: 'transferred',
        actor: { type: 'user', id: owner.id },
        details: { from: owner.id, to: heir.id },
        at: expect.any(Number),
      },
    ]);
  });
});

test('the new owner can neither see nor replay deliveries that were attempted before the transfer', async () => {
  const books = await keepBooks();
  await service.openChat(owner, bot);
  const { url, certificate } = books;
  await resultOf(service.bot(bot, 'setWebhook', { url, certificate }));
  const attempts = async (by: TestUser) =>
    (await resultOf(service.app(by, 'GET', path('/webhook/deliveries')))).items;
  await expect.poll(async () => (await attempts(owner)).length).toBe(1);
  const [{ update_id }] = await attempts(owner);
  const range = { from_update_id: update_id, to_update_id: update_id };
  const replay = (by: TestUser) => resultOf(service.app(by, 'POST', path('/webhook/replay'), range));
  await hand();
  expect(await attempts(heir)).toEqual([]);
  expect(await replay(heir)).toEqual({ queued: 0 });
  await service.openChat(heir, bot);
  await expect.poll(async () => (await attempts(heir)).length).toBe(1);
  expect((await attempts(heir))[0].update_id).toBeGreaterThan(update_id);
  expect(books.taken).toHaveLength(2);
  await books.close();
});

describe('transfers are refused', () => {
  const refused = async (body: unknown, status: number, description: string, by = owner) => {
    expect(await transfer(by, body)).toMatchObject(refusal(status, description));
    expect((await service.bot(bot, 'getMe')).status).toBe(200);
    expect(await listed(owner)).toContain(bot.id);
    expect(await events(owner)).toEqual(['created']);
  };

  test('a transfer without a confirmation is refused', async () => {
    const { username } = heir;
    await refused({ username }, 400, 'Bad Request: parameter "confirm" is required');
    for (const confirm of [false, 'false', 0])
      await refused({ username, confirm }, 400, 'Bad Request: parameter "confirm" must be true');
    await refused({ username, confirm: 'yes' }, 400, 'Bad Request: parameter "confirm" must be a boolean');
  });

  test('a transfer to an unknown user, a bot, a chat or the owner is refused', async () => {
    const to = (username: unknown) => ({ username, confirm: true });
    const channel = { type: 'channel', title: 'c', username: `channel_${bot.id}` };
    await resultOf(service.app(owner, 'POST', '/api/chats', channel));
    await refused({ confirm: true }, 400, 'Bad Request: parameter "username" is required');
    await refused(to('no_body_here'), 400, 'Bad Request: user @no_body_here not found');
    await refused(to('not a name'), 400, 'Bad Request: parameter "username" must be a username');
    await refused(to(bot.username), 400, `Bad Request: @${bot.username} is not a user`);
    await refused(to(channel.username), 400, `Bad Request: @${channel.username} is not a user`);
    await refused(to(`@${owner.username}`), 400, 'Bad Request: the bot is yours already');
  });

  test('only the owner can transfer a bot, whoever the recipient is', async () => {
    for (const username of [heir.username, owner.username, 'no_body_here'])
      await refused({ username, confirm: true }, 403, 'Forbidden: not the owner of the bot', heir);
  });
});

test("a transfer accepts the recipient's username with a leading @ and in any case", async () => {
  expect(await resultOf(transfer(owner, { username: `@${heir.username.toUpperCase()}`, confirm: 1 }))).toBe(
    true,
  );
  expect(await listed(heir)).toContain(bot.id);
});

test('a former owner who repeats a transfer with its idempotency key gets the first answer again', async () => {
  const send = async (front: number, username: string) => {
    const { statusCode, body } = await request(`${service.fronts[front]?.url}${path('/transfer')}`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' },
        'idempotency-key': 'once',
      },
      body: JSON.stringify({ username, confirm: true }),
    });
    return [statusCode, await body.json()];
  };
  expect(await send(0, heir.username)).toEqual([200, { ok: true, result: true }]);
  const { token } = await resultOf(service.app(heir, 'GET', path('/token')));
  expect(await send(1, heir.username)).toEqual([200, { ok: true, result: true }]);
  expect((await send(0, 'another'))[0]).toBe(400);
  expect((await service.bot(token, 'getMe')).status).toBe(200);
  expect(await events(heir)).toEqual(['token_shown', 'transferred']);
});

test('reading the audit log page by page returns each event once, with its actor', async () => {
  await resultOf(service.app(owner, 'GET', path('/token')));
  await resultOf(service.bot(bot, 'setMyName', { name: 'By the bot' }));
  await resultOf(service.app(owner, 'PATCH', path(), { short_description: { ru: 'x' } }));
  await resultOf(service.bot(bot, 'setWebhook', { url: 'https://127.0.0.1:2/told' }));
  await resultOf(service.bot(bot, 'setWebhook', { url: 'https://127.0.0.1:2/told' }));
  await resultOf(service.bot(bot, 'deleteWebhook'));
  await resultOf(service.app(owner, 'POST', path('/webhook/secret/rotate')));
  await resultOf(
    service.app(owner, 'PUT', path('/write_access'), { policy: 'selected', usernames: [heir.username] }),
  );
  const { token } = await resultOf(service.app(owner, 'POST', path('/regenerate_token')));
  const by = { type: 'user', id: owner.id };
  const all = await audit(owner);
  expect(all.map(({ id: _, at: __, ...logged }: { id: number; at: number }) => logged)).toEqual([
    { event: 'token_issued', actor: by, details: {} },
    { event: 'write_access_changed', actor: by, details: { policy: 'selected', users: 1 } },
    { event: 'signing_secret_rotated', actor: by, details: {} },
    { event: 'webhook_deleted', actor: { type: 'bot' }, details: {} },
    { event: 'webhook_set', actor: { type: 'bot' }, details: {} },
    { event: 'texts_changed', actor: by, details: { texts: ['short_description'] } },
    { event: 'texts_changed', actor: { type: 'bot' }, details: { texts: ['name'] } },
    { event: 'token_shown', actor: by, details: {} },
    { event: 'created', actor: by, details: {} },
  ]);
  expect(JSON.stringify(all)).not.toContain('told');
  for (const secret of [token, bot.token]) expect(JSON.stringify(all)).not.toContain(secret.split(':')[1]);
  const first = await resultOf(service.app(owner, 'GET', path('/audit?limit=5')));
  const rest = await resultOf(service.app(owner, 'GET', path(`/audit?limit=5&cursor=${first.next_cursor}`)));
  expect([...first.items, ...rest.items]).toEqual(all);
  expect(rest.next_cursor).toBeUndefined();
  expect(await service.app(heir, 'GET', path('/audit'))).toMatchObject(
    refusal(403, 'Forbidden: not the owner of the bot'),
  );
});
