/** Tests that people change their own name and avatar, and that others see the change. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { ask } from '../support/postgres_pair.js';
import { png } from '../support/samples.js';
import { type Answer, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
const sources: EventSource[] = [];

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
});
afterAll(() => {
  for (const source of sources) source.cut();
});

const ok = (who: TestUser, verb: string, path: string, body?: object, front = 0) =>
  resultOf(service.app(who, verb, path, body, front));
const open = (who: TestUser, other: TestUser) => ok(who, 'POST', `/api/people/${other.username}/chat`, {});
const say = (who: TestUser, chat: number, text: string) =>
  ok(who, 'POST', `/api/chats/${chat}/messages`, { text });
const refusal = async (answer: Promise<Answer>) => {
  const { status, body } = await answer;
  return [status, body.description];
};
const keysOf = (rows: ReadonlyArray<{ readonly key: string }>) => rows.map(({ key }) => key);

async function put(who: TestUser, body: Buffer, front = 0): Promise<Answer['body'] & { status: number }> {
  const answer = await fetch(`${service.fronts[front as 0].url}/api/me/avatar`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${who.token}`, 'content-type': 'image/png' },
    body: new Uint8Array(body),
  });
  return { status: answer.status, ...((await answer.json()) as Answer['body']) };
}

async function listen(who: TestUser, front: number): Promise<EventSource> {
  const source = await openEvents(service.fronts[front as 0].url, who.token);
  sources.push(source);
  return source;
}

test('a person changes their name, and every front shows the new name', async () => {
  const changed = await ok(ann, 'PATCH', '/api/me', { first_name: ' Anna ', last_name: 'Bell' });
  expect(changed).toMatchObject({ first_name: 'Anna', last_name: 'Bell', username: ann.username });
  for (const front of [0, 1]) expect(await ok(ann, 'GET', '/api/me', undefined, front)).toEqual(changed);
  const second = await ok(ann, 'PATCH', '/api/me', { first_name: 'Ann', username: 'another' }, 1);
  expect(second).toEqual({ ...changed, first_name: 'Ann' });
  const { last_name: _, ...single } = second;
  expect(await ok(ann, 'PATCH', '/api/me', { last_name: '' })).toEqual(single);
  for (const front of [0, 1]) expect(await ok(ann, 'GET', '/api/me', undefined, front)).toEqual(single);
});

test('a name that a person chooses must meet the same rules as a name that an operator sets, and a refused name changes nothing', async () => {
  const before = await ok(ann, 'GET', '/api/me');
  const long = '🦊'.repeat(limits.person_name_length_max + 1);
  const invalid = [400, 'Bad Request: name is invalid'];
  const operator = { ...ann, token: service.env.ADMIN_TOKEN ?? '' };
  for (const first_name of ['', '  ', long, 7, null]) {
    const given = { username: 'someone_new', first_name };
    const byOperator = refusal(service.app(operator, 'POST', '/api/admin/users', given));
    const own = await refusal(service.app(ann, 'PATCH', '/api/me', { first_name, language_code: 'ru' }));
    expect(own).toEqual(await byOperator);
    expect(own).toEqual(invalid);
  }
  for (const last_name of [long, 7, null])
    expect(await refusal(service.app(ann, 'PATCH', '/api/me', { first_name: 'Anna', last_name }))).toEqual(
      invalid,
    );
  expect(await ok(ann, 'GET', '/api/me')).toEqual(before);
  const most = '🦊'.repeat(limits.person_name_length_max);
  const longest = await ok(ann, 'PATCH', '/api/me', { first_name: most, last_name: most });
  expect(longest).toMatchObject({ first_name: most, last_name: most });
});

test('in a chat of two people, both see the new name and avatar, and their event streams report the change', async () => {
  const { id } = await open(ann, ben);
  await say(ann, id, 'Hello');
  const [own, other] = [await listen(ann, 1), await listen(ben, 1)];
  const stranger = await listen(await service.newUser('eve'), 0);
  const told = (source: EventSource) =>
    source.events.flatMap(({ event, data }) =>
      event === 'profile' || event === 'chat_settings' ? [{ event, data }] : [],
    );
  await ok(ann, 'PATCH', '/api/me', { first_name: 'Anna', last_name: 'Bell' });
  const seen = await ok(ben, 'GET', `/api/chats/${id}`, undefined, 1);
  expect(seen).toMatchObject({ first_name: 'Anna', last_name: 'Bell' });
  expect(seen).not.toHaveProperty('avatar');
  const { result: avatar } = await put(ann, png(200, 100));
  expect(avatar).toMatchObject({ width: 512, height: 512, small: { width: 128, height: 128 } });
  for (const front of [0, 1]) {
    expect((await ok(ann, 'GET', '/api/me', undefined, front)).avatar).toEqual(avatar);
    expect((await ok(ben, 'GET', `/api/chats/${id}`, undefined, front)).avatar).toEqual(avatar);
    const page = await ok(ben, 'GET', `/api/people/${ann.username}`, undefined, front);
    expect(page).toMatchObject({ user: { first_name: 'Anna' }, avatar });
  }
  expect(await ok(ann, 'GET', `/api/chats/${id}`)).not.toHaveProperty('avatar');
  const line = (await ok(ben, 'GET', '/api/chats')).items[0];
  expect(line).toMatchObject({ id, first_name: 'Anna', avatar });
  await ok(ann, 'DELETE', '/api/me/avatar');
  for (const path of ['/api/me', `/api/chats/${id}`])
    expect(await ok(path === '/api/me' ? ann : ben, 'GET', path, undefined, 1)).not.toHaveProperty('avatar');
  const settings = { event: 'chat_settings', data: { chat_id: id } };
  await eventually(() => expect(told(other)).toEqual(Array(3).fill(settings)));
  await eventually(() => expect(told(own)).toEqual(Array(3).fill({ event: 'profile', data: {} })));
  expect(told(stranger)).toEqual([]);
});

test('a group shows the current names and avatars of authors who are still members', async () => {
  const leaver = await service.newUser('leaver');
  const group = await service.newGroup(ben, 'Yard', [ann, leaver]);
  for (const who of [ann, leaver, ben]) await say(who, group, 'Hello');
  await ok(leaver, 'POST', `/api/chats/${group}/leave`);
  for (const who of [ann, leaver]) await ok(who, 'PATCH', '/api/me', { first_name: 'Renamed' });
  const { result: avatar } = await put(ann, png(64, 64));
  const { items, authors } = await ok(ben, 'GET', `/api/chats/${group}/messages`, undefined, 1);
  const names = items.flatMap(({ from, text }: Answer['body']) => (text ? [from.first_name] : []));
  expect(names).toEqual(['ben', 'leaver', 'ann']);
  const byName = authors.map(({ user, ...more }: Answer['body']) => [user.id, user.first_name, more]);
  expect(byName.toSorted()).toEqual(
    [
      [ann.id, 'Renamed', { avatar }],
      [ben.id, 'ben', {}],
    ].toSorted(),
  );
  const members = (await ok(ben, 'GET', `/api/chats/${group}/members`)).items;
  const member = members.find(({ user }: Answer['body']) => user.id === ann.id);
  expect(member).toMatchObject({ user: { first_name: 'Renamed' }, avatar });
  await say(ann, group, 'Again');
  const [newest] = (await ok(ben, 'GET', `/api/chats/${group}/messages?limit=1`)).items;
  expect(newest.from.first_name).toBe('Renamed');
});

test('bots see the new name and the avatar of a person with whom they share a chat', async () => {
  const bot = await service.newBot(ben, 'seer');
  await service.openChat(ann, bot);
  await ok(ann, 'PATCH', '/api/me', { first_name: 'Anna', last_name: 'Bell' });
  const { result: avatar } = await put(ann, png(64, 64));
  for (const front of [0, 1]) {
    const chat = await resultOf(service.bot(bot, 'getChat', { chat_id: ann.id }, front));
    expect(chat).toMatchObject({ first_name: 'Anna', last_name: 'Bell', photo: {} });
    const { total_count, photos } = await resultOf(
      service.bot(bot, 'getUserProfilePhotos', { user_id: ann.id }, front),
    );
    expect(total_count).toBe(1);
    expect(photos[0].map(({ width }: Answer['body']) => width)).toEqual([128, 512]);
    const file = await resultOf(service.bot(bot, 'getFile', { file_id: chat.photo.big_file_id }, front));
    expect(file.file_size).toBe(avatar.file_size);
  }
  const hidden = await service.newUser('eve');
  expect(await refusal(service.bot(bot, 'getUserProfilePhotos', { user_id: hidden.id }))).toEqual([
    400,
    'Bad Request: user not found',
  ]);
  await ok(ann, 'DELETE', '/api/me/avatar');
  expect(await resultOf(service.bot(bot, 'getUserProfilePhotos', { user_id: ann.id }))).toEqual({
    total_count: 0,
    photos: [],
  });
  expect(await resultOf(service.bot(bot, 'getChat', { chat_id: ann.id }))).not.toHaveProperty('photo');
});

test('the avatar of a person must satisfy the rules for avatars of bots, and a refused picture changes nothing', async () => {
  const missing = [404, 'Not Found: picture not found'];
  expect(await refusal(service.app(ann, 'DELETE', '/api/me/avatar'))).toEqual(missing);
  const { result: avatar } = await put(ann, png(64, 64));
  const bot = await service.newBot(ann, 'shown');
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('no picture'),
    png(10, 10),
    png(64, 64).subarray(0, 40),
  ]) {
    const { status, description } = await put(ann, bytes);
    const ofBot = await fetch(`${service.fronts[0].url}/api/me/bots/${bot.id}/avatar`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${ann.token}`, 'content-type': 'image/png' },
      body: new Uint8Array(bytes),
    });
    expect(status).toBe(400);
    expect([status, description]).toEqual([
      ofBot.status,
      ((await ofBot.json()) as Answer['body']).description,
    ]);
  }
  expect((await put(ann, Buffer.alloc(limits.picture_bytes_max + 1))).status).toBe(413);
  expect((await ok(ann, 'GET', '/api/me', undefined, 1)).avatar).toEqual(avatar);
  const load = (url: string) =>
    fetch(`${service.fronts.at(-1)?.url}${url}`, { headers: { authorization: `Bearer ${ben.token}` } });
  expect((await load(avatar.url)).status).toBe(200);
  const { result: second } = await put(ann, png(80, 80), 1);
  expect((await load(avatar.url)).status).toBe(404);
  expect((await load(second.small.url)).status).toBe(200);
});

test('the files of the avatar are removed with the account', async () => {
  const { result: avatar } = await put(ann, png(64, 64));
  const stored = await ask<{ key: string }>(
    service.databaseUrl,
    "select size->>'key' as key from users, jsonb_array_elements(avatar) size where id = $1",
    [ann.id],
  );
  expect(stored).toHaveLength(2);
  const profile = (await (await exported(ann)).text()).split('\n').map((line) => line && JSON.parse(line));
  expect(profile.find((line) => line?.kind === 'profile')?.avatar).toEqual(avatar);
  await ok(ann, 'DELETE', '/api/me', { confirm: true });
  const unused = await ask<{ key: string }>(
    service.databaseUrl,
    'select key from unused_files where key = any($1)',
    [keysOf(stored)],
  );
  expect(keysOf(unused).toSorted()).toEqual(keysOf(stored).toSorted());
});

const exported = (who: TestUser) =>
  fetch(`${service.fronts[0].url}/api/me/export`, { headers: { authorization: `Bearer ${who.token}` } });

test("changes of a person's name and avatar count against the same limit", async () => {
  await put(ann, png(64, 64));
  for (let n = 1; n < limits.profile_changes_max; n++)
    await ok(ann, 'PATCH', '/api/me', { first_name: `Ann ${n}` }, n % 2);
  const wait = Math.ceil(limits.profile_change_ms / 1_000);
  for (const [verb, path, body] of [
    ['PATCH', '/api/me', { first_name: 'Late' }],
    ['PATCH', '/api/me', { last_name: 'Late' }],
    ['DELETE', '/api/me/avatar', undefined],
  ] as const) {
    const answer = await service.app(ann, verb, path, body, 1);
    expect(answer.status).toBe(429);
    expect(answer.body.parameters.retry_after).toBeLessThanOrEqual(wait);
  }
  expect((await put(ann, png(64, 64))).status).toBe(429);
  expect(await ok(ann, 'PATCH', '/api/me', { language_code: 'ru' })).toMatchObject({
    first_name: `Ann ${limits.profile_changes_max - 1}`,
    avatar: {},
  });
  expect(await ok(ben, 'PATCH', '/api/me', { first_name: 'Benjamin' })).toHaveProperty('first_name');
});
