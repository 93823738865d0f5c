/**
 * Tests refusals of the application API (behaviour §11). Each refusal has the documented text, and the call changes
 * nothing.
 */
import { expect, test } from 'vitest';
import { directChat, makeKeys } from '../../src/store/core/keys.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { moveLastEdit } from '../support/store.js';
import type { Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';

let service: Service;
let seen: Watch;
let admin: { readonly token: string };
let owner: TestUser;
let user: TestUser;
let bot: TestBot;
let group: number;

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  admin = { token: service.adminToken };
  owner = await service.newUser('olga');
  user = await service.newUser('ann');
  bot = await service.newBot(owner, 'texts');
  await service.openChat(user, bot);
  group = await service.newGroup(owner, 'Team', [bot]);
});

const refused = (
  who: { readonly token: string },
  verb: string,
  path: string,
  body: object | undefined,
  code: number,
  text: string,
) => seen.refused(() => service.app(who, verb, path, body, 1), code, text);

const bad = (text: string) => [400, `Bad Request: ${text}`] as const;
const noBot = [404, 'Not Found: bot not found'] as const;
const noChat = [404, 'Not Found: chat not found'] as const;
const noMessage = [404, 'Not Found: message not found'] as const;
const noUser = [404, 'Not Found: user not found'] as const;
const notOwner = [403, 'Forbidden: not the owner of the bot'] as const;
const noMember = [403, 'Forbidden: user is not a member of the chat'] as const;

test('endpoints for people and their tokens refuse invalid names, invalid languages and unknown people', async () => {
  const path = '/api/admin/users';
  const given = { username: 'zoe_x', first_name: 'Zoe' };
  await seen.unchanged(async () => {
    for (const username of ['', 'ab', '1abc', 'a b c', 'x'.repeat(33), 'a__b', 'end_', 7])
      await refused(admin, 'POST', path, { ...given, username }, ...bad('username is invalid'));
    for (const name of ['username', 'first_name'])
      await refused(
        admin,
        'POST',
        path,
        { ...given, [name]: undefined },
        ...bad(`parameter "${name}" is required`),
      );
    await refused(
      admin,
      'POST',
      path,
      { ...given, username: user.username.toUpperCase() },
      ...bad('username is already taken'),
    );
    await refused(
      admin,
      'POST',
      path,
      { ...given, username: bot.username },
      ...bad('username is already taken'),
    );
    for (const first_name of ['', '  ', 'x'.repeat(65)])
      await refused(admin, 'POST', path, { ...given, first_name }, ...bad('name is invalid'));
    await refused(
      admin,
      'POST',
      path,
      { ...given, language_code: 'EN' },
      ...bad('invalid language code specified'),
    );
    for (const id of ['999999', 'x', '-1']) {
      await refused(admin, 'POST', `${path}/${id}/tokens`, undefined, ...noUser);
      await refused(admin, 'DELETE', `${path}/${id}/tokens`, undefined, ...noUser);
    }
  });
  const { token } = await resultOf(service.app(admin, 'POST', `${path}/${user.id}/tokens`));
  const self = await resultOf(service.app({ token }, 'GET', '/api/me', undefined, 1));
  expect(self).toMatchObject({ id: user.id, is_bot: false, first_name: 'ann', username: user.username });
  expect(self.external_id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

test('endpoints for bots refuse callers who do not own the bot, and invalid names', async () => {
  const path = '/api/me/bots';
  await seen.unchanged(async () => {
    for (const username of ['', 'nobody', 'a__bot', 'bot ', `${'x'.repeat(30)}bot`])
      await refused(owner, 'POST', path, { username, name: 'n' }, ...bad('username is invalid'));
    await refused(
      owner,
      'POST',
      path,
      { username: bot.username, name: 'n' },
      ...bad('username is already taken'),
    );
    await refused(owner, 'POST', path, { username: 'fresh_bot', name: ' ' }, ...bad('name is invalid'));
    await refused(
      owner,
      'POST',
      path,
      { username: 'fresh_bot', name: 'x'.repeat(65) },
      ...bad('name is too long'),
    );
    for (const [verb, end] of [
      ['GET', ''],
      ['GET', '/token'],
      ['POST', '/regenerate_token'],
    ] as const) {
      await refused(user, verb, `${path}/${bot.id}${end}`, undefined, ...notOwner);
      await refused(owner, verb, `${path}/999999${end}`, undefined, ...noBot);
      await refused(owner, verb, `${path}/${user.id}${end}`, undefined, ...noBot);
      await refused(owner, verb, `${path}/x${end}`, undefined, ...noBot);
    }
  });
  expect(await resultOf(service.app(owner, 'GET', `${path}/${bot.id}/token`))).toEqual({ token: bot.token });
  expect((await resultOf(service.bot(bot, 'getMe'))).id).toBe(bot.id);
});

test('a person can start neither an unknown bot nor a bot with an invalid payload', async () => {
  await seen.unchanged(async () => {
    await refused(user, 'POST', '/api/bots/no_such_bot/start', {}, ...noBot);
    await refused(user, 'POST', `/api/bots/${user.username}/start`, {}, ...noBot);
    const what = 'parameter "payload" must be a string of up to 64 letters, digits, "_" and "-"';
    for (const payload of ['a b', 'x'.repeat(65), 'é'])
      await refused(user, 'POST', `/api/bots/${bot.username}/start`, { payload }, ...bad(what));
  });
  const path = `/api/bots/@${bot.username.toUpperCase()}/start`;
  const started = await resultOf(service.app(user, 'POST', path, { payload: 'x'.repeat(64) }));
  expect(started.text).toBe(`/start ${'x'.repeat(64)}`);
});

test('endpoints for chats refuse callers who are not members, and invalid new chats', async () => {
  await seen.unchanged(async () => {
    for (const title of ['', ' ', 'x'.repeat(129)])
      await refused(user, 'POST', '/api/chats', { type: 'group', title }, ...bad('title is invalid'));
    await refused(user, 'POST', '/api/chats', { title: 't' }, ...bad('parameter "type" is required'));
    await refused(
      user,
      'POST',
      '/api/chats',
      { type: 'private', title: 't' },
      ...bad('parameter "type" must be one of: group, channel'),
    );
    const reading = [
      ['GET', ''],
      ['GET', '/messages'],
      ['GET', '/members'],
    ] as const;
    for (const [verb, end] of reading) {
      await refused(user, verb, `/api/chats/${group}${end}`, undefined, ...noMember);
      for (const id of [-999_999, user.id, 0, 'x'])
        await refused(user, verb, `/api/chats/${id}${end}`, undefined, ...noChat);
    }
    const text = { text: 'x' };
    await refused(user, 'POST', `/api/chats/${group}/messages`, text, ...noMember);
    for (const id of [-999_999, 999_999, user.id, 'x'])
      await refused(user, 'POST', `/api/chats/${id}/messages`, text, ...noChat);
  });
});

test('endpoints for messages refuse invalid texts, unknown messages and a second edit within a second', async () => {
  const path = `/api/chats/${bot.id}/messages`;
  await seen.unchanged(async () => {
    for (const text of [undefined, '', ' \n'])
      await refused(user, 'POST', path, { text }, ...bad('message text is empty'));
    await refused(user, 'POST', path, { text: 'x'.repeat(4097) }, ...bad('message is too long'));
    await refused(
      user,
      'POST',
      path,
      { text: '<b>', parse_mode: 'HTML' },
      ...bad('can\'t parse entities: Can\'t find end tag corresponding to start tag "b"'),
    );
    await refused(
      user,
      'POST',
      path,
      { text: 'x', entities: [{ type: 'bold', offset: 0, length: 2 }] },
      ...bad(
        "can't parse entities: Entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 1",
      ),
    );
    await refused(
      user,
      'POST',
      path,
      { text: 'x', reply_to_message_id: 999_999 },
      ...bad('message to be replied not found'),
    );
    await refused(user, 'PATCH', `${path}/999999`, { text: 'x' }, ...noMessage);
    await refused(user, 'DELETE', `${path}/999999`, undefined, ...noMessage);
  });
  const { message_id } = await resultOf(service.app(user, 'POST', path, { text: 'x' }));
  await refused(user, 'PATCH', `${path}/${message_id}`, { text: '' }, ...bad('message text is empty'));
  await resultOf(service.app(user, 'PATCH', `${path}/${message_id}`, { text: 'y' }));
  // A second edit is refused only within a second of the first edit. Comparing the stores may take longer, so this sets
  // the time of the first edit to an hour from now.
  const [chat, connection] = [directChat(bot.id, user.id), { client: seen.redis }];
  await moveLastEdit({ keys: makeKeys(64), connection }, chat, message_id, Date.now() + 3_600_000);
  await refused(
    user,
    'PATCH',
    `${path}/${message_id}`,
    { text: 'z' },
    429,
    'Too Many Requests: retry after 1',
  );
});

test('endpoints for members refuse unknown people, invalid rights and callers without the rights', async () => {
  const members = `/api/chats/${group}/members`;
  const few = bad('not enough rights');
  await seen.unchanged(async () => {
    await refused(owner, 'PUT', `${members}/999999`, {}, ...noUser);
    await refused(owner, 'DELETE', `${members}/${user.id}`, undefined, ...noUser);
    await refused(owner, 'DELETE', `${members}/${owner.id}`, undefined, ...few);
    await refused(
      owner,
      'PUT',
      `${members}/${user.id}`,
      { status: 'creator' },
      ...bad('parameter "status" must be one of: administrator, member'),
    );
    await refused(
      owner,
      'PUT',
      `${members}/${user.id}`,
      { rights: 'x' },
      ...bad('parameter "rights" must be an object of booleans'),
    );
    await refused(user, 'PUT', `${members}/${user.id}`, {}, ...noMember);
  });
  await resultOf(service.app(owner, 'PUT', `${members}/${user.id}`, {}));
  for (const body of [{}, { status: 'administrator' }])
    await refused(user, 'PUT', `${members}/${user.id}`, body, ...few);
  await refused(user, 'DELETE', `${members}/${bot.id}`, undefined, ...few);
  const appoint = (rights: object) =>
    resultOf(service.app(owner, 'PUT', `${members}/${user.id}`, { status: 'administrator', rights }));
  await appoint({ can_invite_users: true });
  // An administrator who has only the right can_invite_users may not appoint or remove administrators.
  await refused(
    user,
    'PUT',
    `${members}/${user.id}`,
    { status: 'administrator', rights: { can_pin_messages: true } },
    ...few,
  );
  await refused(user, 'DELETE', `${members}/${bot.id}`, undefined, ...few);
  await appoint({ can_restrict_members: true });
  await refused(user, 'DELETE', `${members}/${owner.id}`, undefined, ...few);
  expect(await resultOf(service.app(user, 'DELETE', `${members}/${bot.id}`))).toBe(true);
});
