import pg from 'pg';
import { request } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { eventually } from '../clients/event_source.js';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let database: pg.Client;

onSharedService(async (running) => {
  service = running;
  database = new pg.Client(service.databaseUrl);
  await database.connect();
});
afterAll(async () => {
  await database?.end();
});

const path = '/api/me/tokens';
const list = (user: { readonly token: string }) => itemsOf(service.app(user, 'GET', `${path}?limit=100`));
const issue = (user: { readonly token: string }, name: string) =>
  resultOf(service.app(user, 'POST', path, { name }));

async function refused(
  user: TestUser,
  verb: string,
  at: string,
  body: unknown,
  status: number,
  text: string,
) {
  // The day on which a token was last used is stored some time after the call.
  const kept = async () => (await list(user)).map((token: object) => ({ ...token, last_used_on: undefined }));
  const before = await kept();
  const answer = await service.app(user, verb, at, body);
  expect(answer.body).toEqual({ ok: false, error_code: status, description: text });
  expect(answer.status).toBe(status);
  expect(await kept()).toEqual(before);
}

async function accepted(token: string, front: number): Promise<boolean> {
  const { status, body } = await service.app({ token }, 'GET', '/api/me', undefined, front);
  if (status !== 200) expect(body).toEqual({ ok: false, error_code: 401, description: 'Unauthorized' });
  return status === 200;
}

test('behaviour §11: the token list shows names and days of last use, but no tokens', async () => {
  const user = await service.newUser('ann');
  const [first] = await list(user);
  expect(first).toMatchObject({ id: expect.any(Number), name: '', created_at: expect.any(Number) });
  expect(Math.abs(first.created_at - Date.now() / 1000)).toBeLessThan(60);
  const laptop = await issue(user, ' laptop ');
  expect(laptop).toEqual({
    id: expect.any(Number),
    name: 'laptop',
    token: expect.stringMatching(new RegExp(`^${user.id}:U[\\w-]{34}$`)),
  });
  const shown = await list(user);
  expect(shown.map(({ id, name }: { id: number; name: string }) => [id, name])).toEqual([
    [first.id, ''],
    [laptop.id, 'laptop'],
  ]);
  expect(JSON.stringify(shown)).not.toContain(laptop.token.slice(-20));
  expect(shown[1].last_used_on).toBeUndefined();
  expect(await accepted(laptop.token, 1)).toBe(true);
  await eventually(async () => {
    const today = new Date().toISOString().slice(0, 10);
    expect((await list(user))[1].last_used_on).toBe(today);
  });
  const { rows } = await database.query('select encode(hmac, $1) as hmac from user_tokens where id = $2', [
    'escape',
    laptop.id,
  ]);
  expect(rows[0].hmac).not.toContain(laptop.token.slice(-20));
});

test('behaviour §11: a revoked token of a person is refused on every node immediately', async () => {
  const user = await service.newUser('ben');
  const [phone, laptop] = [await issue(user, 'phone'), await issue(user, 'laptop')];
  for (const front of [0, 1, 0, 1]) expect(await accepted(phone.token, front)).toBe(true);
  expect(await resultOf(service.app(user, 'DELETE', path, { name: 'phone' }))).toBe(true);
  for (const front of [0, 1]) expect(await accepted(phone.token, front)).toBe(false);
  // The laptop revokes its own token. The call names the token by its id in the query.
  expect(await accepted(laptop.token, 1)).toBe(true);
  expect(await resultOf(service.app(laptop, 'DELETE', `${path}?id=${laptop.id}`, undefined, 1))).toBe(true);
  for (const front of [0, 1]) expect(await accepted(laptop.token, front)).toBe(false);
  for (const front of [0, 1]) expect(await accepted(user.token, front)).toBe(true);
  expect(await list(user)).toHaveLength(1);
});

test('behaviour §11: a new token needs a valid and unused name, and an unknown token cannot be revoked', async () => {
  const [user, other] = [await service.newUser('cal'), await service.newUser('dan')];
  const { id } = await issue(user, 'taken');
  const post = (body: unknown, text: string) =>
    refused(user, 'POST', path, body, 400, `Bad Request: ${text}`);
  await post({}, 'parameter "name" is required');
  await post({ name: '  ' }, 'name is invalid');
  await post({ name: 'x'.repeat(limits.user_token_name_length_max + 1) }, 'name is too long');
  await post({ name: 'taken' }, 'token name is already taken');
  const remove = (who: TestUser, body: unknown, status: number, text: string) =>
    refused(who, 'DELETE', path, body, status, text);
  await remove(user, {}, 400, 'Bad Request: parameter "id" is required');
  await remove(user, { id: 'x' }, 400, 'Bad Request: parameter "id" must be an integer');
  await remove(user, { name: 'other' }, 404, 'Not Found: token not found');
  for (const body of [{ id }, { name: 'taken' }, { name: '', id: 0 }])
    await remove(other, body, 404, 'Not Found: token not found');
  expect((await list(user)).map((token: { id: number }) => token.id)).toContain(id);
  await issue(other, 'taken');
  await resultOf(service.app(user, 'DELETE', path, { id }));
  await issue(user, 'taken');
});

test('behaviour §11: a person has a limited number of tokens, including those issued by operators', async () => {
  const user = await service.newUser('eva');
  await database.query(
    `insert into user_tokens (user_id, hmac, name)
     select $1, sha256(('eva' || n)::bytea), 'n' || n from generate_series(2, $2) n`,
    [user.id, limits.user_tokens_max - 1],
  );
  await issue(user, 'last');
  expect(await list(user)).toHaveLength(limits.user_tokens_max);
  await refused(user, 'POST', path, { name: 'one more' }, 400, 'Bad Request: too many tokens');
  const operator = { token: service.adminToken };
  const answer = await service.app(operator, 'POST', `/api/admin/users/${user.id}/tokens`, {});
  expect([answer.status, answer.body.description]).toEqual([400, 'Bad Request: too many tokens']);
  await resultOf(service.app(user, 'DELETE', path, { name: 'last' }));
  await resultOf(service.app(operator, 'POST', `/api/admin/users/${user.id}/tokens`, {}));
});

test('behaviour §11: an open event stream ends when its token is revoked on another node', async () => {
  const user = await service.newUser('fay');
  const [phone, laptop] = [await issue(user, 'phone'), await issue(user, 'laptop')];
  const open = async (token: string) => {
    const answer = await request(`${service.fronts.at(-1)?.url}/api/stream`, {
      headers: { authorization: `Bearer ${token}` },
    });
    let ended = false;
    const over = () => {
      ended = true;
    };
    answer.body.on('error', over).on('end', over).resume();
    return { ended: () => ended, close: () => answer.body.destroy() };
  };
  const [lost, kept] = [await open(phone.token), await open(laptop.token)];
  await resultOf(service.app(user, 'DELETE', path, { name: 'phone' }));
  await eventually(() => expect(lost.ended()).toBe(true));
  expect(kept.ended()).toBe(false);
  kept.close();
});
