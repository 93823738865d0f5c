import { expect, test } from 'vitest';
import type { Service, TestBot, TestUser } from '../support/service.js';
import { itemsOf, resultOf } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let eve: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  ann = await service.newUser('ann');
  ben = await service.newUser('ben');
  eve = await service.newUser('eve');
  bot = await service.newBot(ann, 'warden');
});

const app = (who: TestUser, verb: string, path: string, body?: Readonly<Record<string, unknown>>) =>
  service.app(who, verb, path, body);
const ok = (...call: Parameters<typeof app>) => resultOf(app(...call));
const call = (method: string, params: Readonly<Record<string, unknown>>) => service.bot(bot, method, params);
const bad = (text: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${text}` });

const allRights = {
  can_restrict_members: true,
  can_promote_members: true,
  can_pin_messages: true,
  can_change_info: true,
  can_invite_users: true,
};
let named = 0;

async function newGroup(rights: object = allRights): Promise<number> {
  const username = `warden_group_${Date.now() % 1e6}_${++named}`;
  const { id } = await ok(ann, 'POST', '/api/chats', { type: 'group', title: 'Yard', username });
  await ok(ann, 'PUT', `/api/chats/${id}/members/${bot.id}`, { status: 'administrator', rights });
  await ok(ben, 'POST', `/api/chats/${id}/join`);
  return id;
}

const memberOf = async (chat: number, who: { id: number }) =>
  resultOf(call('getChatMember', { chat_id: chat, user_id: who.id }));
const write = (who: TestUser, chat: number, text = 'x') =>
  app(who, 'POST', `/api/chats/${chat}/messages`, { text });
const join = (who: TestUser, chat: number) => app(who, 'POST', `/api/chats/${chat}/join`);
const soon = (s: number) => Math.floor(Date.now() / 1_000) + s;
const everything = {
  can_send_messages: true,
  can_send_audios: true,
  can_send_documents: true,
  can_send_photos: true,
  can_send_videos: true,
  can_send_video_notes: true,
  can_send_voice_notes: true,
  can_send_polls: true,
  can_send_other_messages: true,
  can_add_web_page_previews: true,
};

test('a banned person cannot read, write or rejoin the group until the ban is lifted', async () => {
  const chat = await newGroup();
  const until_date = soon(3_600);
  expect(await resultOf(call('banChatMember', { chat_id: chat, user_id: ben.id, until_date }))).toBe(true);
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'kicked', until_date });
  expect((await write(ben, chat)).status).toBe(403);
  expect((await join(ben, chat)).body.description).toBe('Forbidden: user was kicked from the chat');
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${eve.id}`, {
    ...{ status: 'administrator', rights: { can_invite_users: true } },
  }).catch(() => undefined);
  await ok(eve, 'POST', `/api/chats/${chat}/join`).catch(() => undefined);
  const put = { status: 'administrator', rights: { can_invite_users: true } };
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${eve.id}`, put);
  expect((await app(eve, 'PUT', `/api/chats/${chat}/members/${ben.id}`, {})).body).toEqual(
    bad('USER_KICKED'),
  );
  const newest = (await itemsOf(app(ann, 'GET', `/api/chats/${chat}/messages`)))
    .map((message: Record<string, never>) => message.left_chat_member)
    .find((gone: unknown) => gone);
  expect(newest).toMatchObject({ id: ben.id });
  const unban = { chat_id: chat, user_id: ben.id, only_if_banned: true };
  expect(await resultOf(call('unbanChatMember', unban))).toBe(true);
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'left' });
  await resultOf(join(ben, chat));
  await resultOf(call('unbanChatMember', unban));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'member' });
  await resultOf(call('unbanChatMember', { chat_id: chat, user_id: ben.id }));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'left' });
  await resultOf(join(ben, chat));
});

test('a ban for less than 30 seconds or more than 366 days is permanent', async () => {
  for (const until_date of [soon(10), soon(367 * 86_400), -1]) {
    const chat = await newGroup();
    await resultOf(call('banChatMember', { chat_id: chat, user_id: ben.id, until_date }));
    expect(await memberOf(chat, ben)).toMatchObject({ status: 'kicked', until_date: 0 });
  }
});

test('a restricted member can send only what is permitted, even after leaving and rejoining', async () => {
  const chat = await newGroup();
  const at = { chat_id: chat, user_id: ben.id };
  const until_date = soon(3_600);
  const permissions = { can_send_photos: true };
  await resultOf(
    call('restrictChatMember', { ...at, permissions, use_independent_chat_permissions: true, until_date }),
  );
  expect(await memberOf(chat, ben)).toMatchObject({
    ...{ status: 'restricted', is_member: true, until_date },
    ...{ can_send_photos: true, can_send_messages: false, can_pin_messages: false },
  });
  const refusal = bad('not enough rights to send text messages to the chat');
  expect((await write(ben, chat)).body).toEqual(refusal);
  const photo = { photo: 'https://example.org/a.jpg' };
  await ok(ben, 'POST', `/api/chats/${chat}/messages`, photo);
  await ok(ben, 'POST', `/api/chats/${chat}/leave`);
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'restricted', is_member: false });
  await resultOf(join(ben, chat));
  expect((await write(ben, chat)).body).toEqual(refusal);
  await resultOf(call('restrictChatMember', { ...at, permissions: everything }));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'member' });
  await resultOf(write(ben, chat));
});

test.each([
  ['as parameters', (given: object) => given],
  ['in permissions', (given: object) => ({ permissions: given })],
])('the permissions that older libraries send %s restrict a member', async (_, params) => {
  const chat = await newGroup();
  const at = { chat_id: chat, user_id: ben.id };
  await resultOf(call('restrictChatMember', { ...at, ...params({ can_send_messages: true }) }));
  const texts = { can_send_messages: true, can_send_photos: false, can_send_polls: false };
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'restricted', ...texts });
  await resultOf(call('restrictChatMember', { ...at, ...params({ can_send_media_messages: true }) }));
  const files = { can_send_messages: true, can_send_photos: true, can_send_other_messages: false };
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'restricted', ...files });
});

test('restrictChatMember lifts a restriction if all permissions of older Bot API versions are given, and denies everything if none are given', async () => {
  const chat = await newGroup();
  const at = { chat_id: chat, user_id: ben.id };
  await resultOf(call('restrictChatMember', at));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'restricted', can_send_messages: false });
  const all = { can_send_messages: true, can_send_media_messages: true };
  const more = { can_send_other_messages: true, can_add_web_page_previews: true };
  await resultOf(call('restrictChatMember', { ...at, ...all, ...more }));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'member' });
});

test('a restricted bot cannot send, copy or forward the kinds of messages that its restriction forbids', async () => {
  const chat = await newGroup();
  const other = await service.newBot(ann, 'talker');
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${other.id}`, {});
  const permissions = { can_send_messages: true };
  await resultOf(
    call('restrictChatMember', {
      ...{ chat_id: chat, user_id: other.id, permissions, use_independent_chat_permissions: true },
    }),
  );
  const send = (method: string, params: Readonly<Record<string, unknown>>) =>
    service.bot(other, method, { chat_id: chat, ...params });
  const { message_id } = await resultOf(send('sendMessage', { text: 'x' }));
  await resultOf(send('copyMessage', { from_chat_id: chat, message_id }));
  await resultOf(send('sendLocation', { latitude: 1, longitude: 2 }));
  const at = 'https://example.org/a';
  const refused = async (method: string, params: Readonly<Record<string, unknown>>, what: string) =>
    expect((await send(method, params)).body).toEqual(bad(`not enough rights to send ${what} to the chat`));
  await refused('sendPhoto', { photo: at }, 'photos');
  await refused('sendVideo', { video: at }, 'videos');
  await refused('sendAudio', { audio: at }, 'music');
  await refused('sendVoice', { voice: at }, 'voice notes');
  await refused('sendDocument', { document: at }, 'documents');
  await refused('sendAnimation', { animation: at }, 'animations');
  await refused('sendDice', {}, 'dice');
  const media = [1, 2].map((n) => ({ type: 'photo', media: `${at}${n}` }));
  await refused('sendMediaGroup', { media }, 'photos');
});

test('permissions of the chat apply to members but not to administrators', async () => {
  const chat = await newGroup();
  const set = (permissions: object) =>
    call('setChatPermissions', { chat_id: chat, permissions, use_independent_chat_permissions: true });
  expect(await resultOf(set({ can_send_photos: true, can_pin_messages: true, can_invite_users: true }))).toBe(
    true,
  );
  expect((await resultOf(call('getChat', { chat_id: chat }))).permissions).toMatchObject({
    ...{ can_send_messages: false, can_send_photos: true, can_pin_messages: true, can_change_info: false },
  });
  expect((await write(ben, chat)).body).toEqual(bad('not enough rights to send text messages to the chat'));
  const mine = await resultOf(write(ann, chat));
  await resultOf(call('sendMessage', { chat_id: chat, text: 'an administrator' }));
  await ok(ben, 'POST', `/api/chats/${chat}/pin`, { message_id: mine.message_id });
  const guest = await service.newUser('guest');
  await ok(ben, 'PUT', `/api/chats/${chat}/members/${guest.id}`, {});
  expect((await app(ben, 'PATCH', `/api/chats/${chat}`, { title: 'x' })).status).toBe(400);
  await resultOf(set({ ...everything, can_change_info: true }));
  await ok(ben, 'PATCH', `/api/chats/${chat}`, { title: 'By Ben' });
  await resultOf(write(ben, chat));
  expect((await app(ben, 'POST', `/api/chats/${chat}/pin`, { message_id: mine.message_id })).status).toBe(
    400,
  );
  // Without use_independent_chat_permissions, can_send_polls also permits text messages.
  await resultOf(call('setChatPermissions', { chat_id: chat, permissions: { can_send_polls: true } }));
  await resultOf(write(ben, chat));
});

test('a bot can give members only rights that the bot has', async () => {
  const chat = await newGroup();
  const at = { chat_id: chat, user_id: ben.id };
  expect((await call('promoteChatMember', { ...at, can_delete_messages: true })).body).toEqual(
    bad('RIGHT_FORBIDDEN'),
  );
  await resultOf(call('promoteChatMember', { ...at, can_pin_messages: true, can_manage_video_chats: true }));
  expect(await memberOf(chat, ben)).toMatchObject({
    ...{ status: 'administrator', can_pin_messages: true, can_be_edited: true, can_change_info: false },
  });
  const title = (custom_title: string) => call('setChatAdministratorCustomTitle', { ...at, custom_title });
  await resultOf(title('Gardener'));
  expect(await memberOf(chat, ben)).toMatchObject({ custom_title: 'Gardener' });
  await resultOf(call('promoteChatMember', { ...at, can_invite_users: true }));
  expect(await memberOf(chat, ben)).toMatchObject({
    ...{ custom_title: 'Gardener', can_invite_users: true, can_pin_messages: false },
  });
  expect((await title('x'.repeat(17))).body).toEqual(bad('ADMIN_RANK_INVALID'));
  expect((await title('🌳')).body).toEqual(bad('ADMIN_RANK_EMOJI_NOT_ALLOWED'));
  await resultOf(call('promoteChatMember', at));
  expect(await memberOf(chat, ben)).toEqual({ user: expect.anything(), status: 'member' });
  expect((await title('x')).body).toEqual(bad('user is not an administrator'));
  await resultOf(call('promoteChatMember', { ...at, can_manage_chat: true }));
  await resultOf(call('banChatMember', at));
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'kicked' });
  expect((await call('promoteChatMember', { ...at, can_pin_messages: true })).body).toEqual(
    bad('USER_NOT_PARTICIPANT'),
  );
  expect((await call('promoteChatMember', { ...at, is_anonymous: true })).body).toEqual(
    bad('parameter "is_anonymous" must be false: administrators are not anonymous'),
  );
});

test('nobody can moderate the creator, strangers, themselves, or administrators whom others appointed', async () => {
  const chat = await newGroup();
  const put = { status: 'administrator', rights: { can_pin_messages: true } };
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${ben.id}`, put);
  const permissions = { can_send_messages: false };
  const refused = async (method: string, who: { id: number }, text: string, more: object = {}) =>
    expect((await call(method, { chat_id: chat, user_id: who.id, ...more })).body).toEqual(bad(text));
  for (const [method, more] of [
    ['banChatMember', {}],
    ['unbanChatMember', {}],
    ['restrictChatMember', { permissions }],
  ] as const) {
    await refused(method, ann, "can't remove chat owner", more);
    await refused(method, ben, 'user is an administrator of the chat', more);
    await refused(method, bot, "can't restrict self", more);
  }
  await refused('promoteChatMember', ann, "can't remove chat owner", { can_pin_messages: true });
  await refused('promoteChatMember', ben, 'not enough rights', { can_pin_messages: true });
  await refused('promoteChatMember', bot, "can't promote self", { can_pin_messages: true });
  const title = { custom_title: 'x' };
  await refused('setChatAdministratorCustomTitle', ann, 'only creator can edit their custom title', title);
  await refused(
    'setChatAdministratorCustomTitle',
    ben,
    'not enough rights to change custom title of the user',
    title,
  );
  const stranger = await service.newUser('stranger');
  for (const method of ['banChatMember', 'unbanChatMember', 'promoteChatMember'])
    await refused(method, stranger, 'user not found');
  await refused('banChatMember', { id: 999_999_999_999 }, 'user not found');
  expect(await memberOf(chat, ben)).toMatchObject({ status: 'administrator', can_be_edited: false });
});

test('moderation methods refuse bots without the required right', async () => {
  const chat = await newGroup({ can_pin_messages: true });
  const permissions = {};
  const all = [
    [
      'banChatMember',
      {},
      'not enough rights to restrict/unrestrict chat member',
      "can't ban members in private chats",
    ],
    [
      'unbanChatMember',
      {},
      'not enough rights to restrict/unrestrict chat member',
      'method is available for supergroup and channel chats only',
    ],
    [
      'restrictChatMember',
      { permissions },
      'not enough rights to restrict/unrestrict chat member',
      'method is available only for supergroups',
    ],
    ['promoteChatMember', {}, 'not enough rights', "chat member status can't be changed in private chats"],
    [
      'setChatPermissions',
      { permissions },
      'not enough rights to change chat permissions',
      "can't change private chat permissions",
    ],
  ] as const;
  await service.openChat(ann, bot);
  for (const [method, params, shared, direct] of all) {
    const at = { user_id: ben.id, ...params };
    expect((await call(method, { chat_id: chat, ...at })).body).toEqual(bad(shared));
    expect((await call(method, { chat_id: ann.id, ...at })).body).toEqual(bad(direct));
  }
  const channel = await ok(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' });
  const put = { status: 'administrator', rights: allRights };
  await ok(ann, 'PUT', `/api/chats/${channel.id}/members/${bot.id}`, put);
  const there = { chat_id: channel.id, user_id: ann.id, permissions, custom_title: '' };
  for (const method of ['restrictChatMember', 'setChatAdministratorCustomTitle'])
    expect((await call(method, there)).body).toEqual(bad('method is available only for supergroups'));
  expect((await call('setChatPermissions', there)).body).toEqual(
    bad("can't change channel chat permissions"),
  );
});

test('bots that request chat_member get updates about bans and restrictions with their end times', async () => {
  const chat = await newGroup();
  const poll = (more: object = {}) =>
    resultOf(call('getUpdates', { allowed_updates: ['chat_member'], ...more }));
  await poll({ offset: -1 });
  const [until_date, banned_until] = [soon(3_600), soon(7_200)];
  const at = { chat_id: chat, user_id: ben.id };
  await resultOf(call('restrictChatMember', { ...at, permissions: {}, until_date }));
  await resultOf(call('banChatMember', { ...at, until_date: banned_until }));
  const changes = async () =>
    (await poll()).flatMap(({ chat_member: change }: Record<string, never>) =>
      change && (change as { chat: { id: number } }).chat.id === chat ? [change] : [],
    );
  await expect.poll(async () => (await changes()).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
  const shown = await changes();
  expect(shown.slice(-2)).toMatchObject([
    {
      from: { id: bot.id },
      old_chat_member: { status: 'member' },
      new_chat_member: { status: 'restricted', is_member: true, until_date, can_send_messages: false },
    },
    {
      old_chat_member: { status: 'restricted' },
      new_chat_member: { status: 'kicked', until_date: banned_until },
    },
  ]);
});

test('a second ban deletes an invitation that was created after the first ban', async () => {
  const chat = await newGroup();
  const vera = await service.newUser('vera');
  await resultOf(join(vera, chat));
  const at = { chat_id: chat, user_id: vera.id };
  await resultOf(call('banChatMember', at));
  await ok(vera, 'PATCH', '/api/me', { add_to_groups: 'nobody' });
  expect((await ok(ann, 'PUT', `/api/chats/${chat}/members/${vera.id}`, {})).status).toBe('invited');
  await resultOf(call('banChatMember', at));
  expect(await itemsOf(app(vera, 'GET', '/api/me/invitations'))).toEqual([]);
  expect((await join(vera, chat)).status).toBe(403);
  expect(await memberOf(chat, vera)).toMatchObject({ status: 'kicked' });
});

test('a bot cannot replace the media of a message with a kind of media that it may not send', async () => {
  const chat = await newGroup();
  const other = await service.newBot(ann, 'editor');
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${other.id}`, {});
  const send = (method: string, params: Readonly<Record<string, unknown>>) =>
    service.bot(other, method, { chat_id: chat, ...params });
  const { message_id } = await resultOf(send('sendPhoto', { photo: 'https://example.org/a.jpg' }));
  const text = await resultOf(send('sendMessage', { text: 'x' }));
  const permissions = { can_send_photos: true };
  await resultOf(
    call('restrictChatMember', {
      ...{ chat_id: chat, user_id: other.id, permissions, use_independent_chat_permissions: true },
    }),
  );
  const replace = (type: string) =>
    send('editMessageMedia', { message_id, media: { type, media: 'https://example.org/b' } });
  expect((await replace('video')).body).toEqual(bad('not enough rights to send videos to the chat'));
  await resultOf(replace('photo'));
  await resultOf(send('editMessageText', { message_id: text.message_id, text: 'y' }));
});
