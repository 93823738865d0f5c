import { expect, test } from 'vitest';
import { eventually } from '../clients/event_source.js';
import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { expectEnvelope } from './refused.js';

let service: Service;
let owner: TestUser;
let reader: TestUser;
let bot: TestBot;
let other: TestBot;
let named = 0;
const uniqueName = () => `public_${++named}_x`;

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  reader = await service.newUser('rita');
  bot = await service.newBot(owner, 'writer');
  other = await service.newBot(owner, 'watcher');
});

type Json = Answer['body'];
type Caller = { readonly token: string };
const app = (who: Caller, verb: string, path: string, body?: object) => service.app(who, verb, path, body, 1);
const ok = (who: Caller, verb: string, path: string, body?: object) => resultOf(app(who, verb, path, body));
const newChat = async (body: object): Promise<number> =>
  (await ok(owner, 'POST', '/api/chats', { type: 'channel', title: 'News', ...body })).id;
const put = (chat: number, who: { readonly id: number }, body: object = {}) =>
  ok(owner, 'PUT', `/api/chats/${chat}/members/${who.id}`, body);
const admin = (...rights: string[]) => ({
  status: 'administrator',
  rights: Object.fromEntries(rights.map((right) => [right, true])),
});

/** Polls and confirms the bot's pending updates until at least `count` have arrived. */
async function updatesOf(which: TestBot, count: number, allowed_updates?: string[]) {
  const seen: Array<Record<string, Json>> = [];
  const more = allowed_updates ? { allowed_updates } : {};
  await eventually(async () => {
    const got = await resultOf(service.bot(which, 'getUpdates', { ...more, limit: 100 }));
    seen.push(...got);
    const last = got.at(-1);
    if (last) await resultOf(service.bot(which, 'getUpdates', { offset: last.update_id + 1 }));
    expect(seen.length).toBeGreaterThanOrEqual(count);
  });
  return seen;
}
const drop = (which: TestBot) => service.bot(which, 'deleteWebhook', { drop_pending_updates: true });

test('only administrators with the right to post may post in a channel', async () => {
  const username = uniqueName();
  const made = await ok(owner, 'POST', '/api/chats', { type: 'channel', title: ' News ', username });
  expect(made).toEqual({ id: made.id, type: 'channel', title: 'News', username, member_count: 1 });
  expect(made.id).toBeLessThan(0);
  const chat = made.id;
  await put(chat, bot, admin('can_post_messages'));
  await put(chat, other);
  await put(chat, reader);
  await Promise.all([drop(bot), drop(other)]);
  const about = { id: chat, type: 'channel', title: 'News', username };
  const sent = await resultOf(service.bot(bot, 'sendMessage', { chat_id: chat, text: 'one' }));
  expect(sent).toMatchObject({ message_id: 1, text: 'one', chat: about, sender_chat: about });
  const posted = await ok(owner, 'POST', `/api/chats/${chat}/messages`, { text: 'two' });
  expect(posted).toMatchObject({ message_id: 2, text: 'two', chat: about });
  await ok(owner, 'PATCH', `/api/chats/${chat}/messages/2`, { text: 'zwei' });
  const [first, second, third] = await updatesOf(other, 3);
  expect(first?.channel_post).toMatchObject({ message_id: 1, text: 'one', chat: about });
  expect(second?.channel_post).toMatchObject({ message_id: 2, text: 'two' });
  expect(third?.edited_channel_post).toMatchObject({ message_id: 2, text: 'zwei' });
  expect((await updatesOf(bot, 2)).map((update) => update.channel_post?.text)).toEqual(['two', undefined]);

  const need = 'Bad Request: need administrator rights in the channel chat';
  expectEnvelope(await service.bot(other, 'sendMessage', { chat_id: chat, text: 'x' }), 400, need);
  expectEnvelope(await app(reader, 'POST', `/api/chats/${chat}/messages`, { text: 'x' }), 400, need);
  await put(chat, bot, admin('can_pin_messages'));
  expectEnvelope(await service.bot(bot, 'sendMessage', { chat_id: chat, text: 'x' }), 400, need);
  const outsider = await service.newBot(owner, 'outsider');
  const outside = 'Forbidden: bot is not a member of the channel chat';
  for (const method of ['sendMessage', 'sendChatAction', 'getChat', 'getChatMemberCount', 'leaveChat'])
    expectEnvelope(
      await service.bot(outsider, method, { chat_id: chat, text: 'x', action: 'typing' }),
      403,
      outside,
    );
  const summary = await ok(reader, 'GET', `/api/chats/${chat}`);
  expect(summary).toMatchObject({ ...about, member_count: 4, last_message: { text: 'zwei' } });
  const members = await ok(owner, 'GET', `/api/chats/${chat}/members`);
  const forbidden = 'Bad Request: not enough rights';
  expectEnvelope(await app(reader, 'GET', `/api/chats/${chat}/members`), 400, forbidden);
  await put(chat, reader, admin('can_post_messages'));
  expect((await ok(reader, 'GET', `/api/chats/${chat}/members`)).items).toHaveLength(4);
  await put(chat, reader, { status: 'member' });
  expect(members.items.find((each: Json) => each.user.id === owner.id)).toMatchObject({
    status: 'creator',
    rights: { can_post_messages: true, can_edit_messages: true, can_invite_users: true },
  });
});

test('a chat cannot get a username that is already taken', async () => {
  const username = uniqueName();
  // This look-up finds no chat. A cached result must not hide the chat that is created later.
  const unknown = [400, 'Bad Request: chat not found'] as const;
  expectEnvelope(await service.bot(bot, 'getChat', { chat_id: `@${username}` }), ...unknown);
  const chat = await newChat({ username });
  await put(chat, bot, admin('can_post_messages'));
  const taken = [400, 'Bad Request: username is already taken'] as const;
  for (const name of [username.toUpperCase(), owner.username, bot.username])
    expectEnvelope(
      await app(owner, 'POST', '/api/chats', { type: 'group', title: 't', username: name }),
      ...taken,
    );
  expectEnvelope(
    await app(owner, 'POST', '/api/chats', { type: 'channel', title: 't', username: 'a b' }),
    ...([400, 'Bad Request: username is invalid'] as const),
  );
  expectEnvelope(
    await app(owner, 'POST', '/api/chats', {
      type: 'channel',
      title: 't',
      username: uniqueName(),
      private: true,
    }),
    ...([400, 'Bad Request: parameter "private" must be false for a chat with a username'] as const),
  );
  for (const spelled of [`@${username}`, `@${username.toUpperCase()}`]) {
    const sent = await resultOf(service.bot(bot, 'sendMessage', { chat_id: spelled, text: 'x' }, 1));
    expect(sent.chat).toMatchObject({ id: chat, username });
  }
  for (const name of [owner.username, bot.username, 'no_such_name'])
    expectEnvelope(await service.bot(bot, 'sendMessage', { chat_id: `@${name}`, text: 'x' }), ...unknown);
});

test('bots read members, administrators and the member count of their chats', async () => {
  const chat = await newChat({});
  await put(chat, bot, admin('can_edit_messages'));
  await put(chat, other, admin('can_pin_messages'));
  await put(chat, reader);
  const ask = (method: string, more: object = {}) => service.bot(bot, method, { chat_id: chat, ...more });
  const member = async (id: number) => resultOf(ask('getChatMember', { user_id: id }));
  expect(await member(owner.id)).toEqual({
    user: { id: owner.id, is_bot: false, first_name: 'olga', username: owner.username },
    ...{ status: 'creator', is_anonymous: false },
  });
  expect(await member(bot.id)).toMatchObject({
    user: { id: bot.id, is_bot: true },
    ...{ status: 'administrator', can_be_edited: false, can_manage_chat: true },
    ...{ can_edit_messages: true, can_post_messages: false, can_invite_users: false },
  });
  expect(await member(reader.id)).toMatchObject({ user: { id: reader.id }, status: 'member' });
  const stranger = await service.newUser('sam');
  expectEnvelope(await ask('getChatMember', { user_id: stranger.id }), 400, 'Bad Request: user not found');
  await service.openChat(stranger, bot);
  expect(await member(stranger.id)).toMatchObject({ user: { id: stranger.id }, status: 'left' });
  expectEnvelope(await ask('getChatMember', { user_id: 999_999 }), 400, 'Bad Request: user not found');
  const shown = await resultOf(ask('getChatAdministrators'));
  expect(shown.map((each: Json) => [each.user.id, each.status])).toEqual([
    [owner.id, 'creator'],
    [bot.id, 'administrator'],
  ]);
  await put(chat, reader, admin('can_invite_users'));
  expect((await resultOf(ask('getChatAdministrators'))).map((each: Json) => each.user.id)).toContain(
    reader.id,
  );
  expect(await resultOf(ask('getChatMemberCount'))).toBe(4);
  expect(await resultOf(ask('getChat'))).toMatchObject({
    ...{ id: chat, type: 'channel', title: 'News', member_count: 4 },
    permissions: { can_send_messages: false },
  });
  await service.openChat(reader, bot);
  const alone = (method: string, more = {}) => service.bot(bot, method, { chat_id: reader.id, ...more });
  expect(await resultOf(alone('getChatMemberCount'))).toBe(2);
  expect(await resultOf(alone('getChatMember', { user_id: reader.id }))).toMatchObject({ status: 'member' });
  const inPrivate = 'Bad Request: there are no administrators in the private chat';
  expectEnvelope(await alone('getChatAdministrators'), 400, inPrivate);
  const fixed = "Bad Request: chat member status can't be changed in private chats";
  expectEnvelope(await alone('leaveChat'), 400, fixed);

  expect(await resultOf(ask('leaveChat'))).toBe(true);
  const outside = 'Forbidden: bot is not a member of the channel chat';
  for (const method of ['leaveChat', 'getChat', 'getChatMember', 'getChatAdministrators'])
    expectEnvelope(await ask(method, { user_id: owner.id }), 403, outside);
  expect((await ok(owner, 'GET', `/api/chats/${chat}`)).member_count).toBe(3);
});

test('a removed person cannot join a public chat again', async () => {
  const noChat = [404, 'Not Found: chat not found'] as const;
  const hidden = [await newChat({ private: true }), await newChat({ type: 'group' })];
  for (const chat of [...hidden, -999_999, bot.id, reader.id])
    expectEnvelope(await app(reader, 'POST', `/api/chats/${chat}/join`), ...noChat);
  for (const chat of [await newChat({}), await newChat({ type: 'group', username: uniqueName() })]) {
    const count = async () => (await ok(owner, 'GET', `/api/chats/${chat}`)).member_count;
    for (let again = 0; again < 2; again++)
      expect(await ok(reader, 'POST', `/api/chats/${chat}/join`)).toBe(true);
    expect(await count()).toBe(2);
    expect((await ok(reader, 'GET', '/api/chats')).items.map((each: Json) => each.id)).toContain(chat);
    expect(await ok(reader, 'POST', `/api/chats/${chat}/leave`)).toBe(true);
    expect(await count()).toBe(1);
    const outside = [403, 'Forbidden: user is not a member of the chat'] as const;
    expectEnvelope(await app(reader, 'POST', `/api/chats/${chat}/leave`), ...outside);
    await ok(reader, 'POST', `/api/chats/${chat}/join`);
    await ok(owner, 'DELETE', `/api/chats/${chat}/members/${reader.id}`);
    const kicked = 'Forbidden: user was kicked from the chat';
    expectEnvelope(await app(reader, 'POST', `/api/chats/${chat}/join`), 403, kicked);
    const stays = "Bad Request: the creator can't leave the chat";
    expectEnvelope(await app(owner, 'POST', `/api/chats/${chat}/leave`), 400, stays);
    expect(await count()).toBe(1);
    await put(chat, reader);
    expect(await count()).toBe(2);
  }
});

test('outsiders get the same answers for a private channel as for an unknown chat', async () => {
  const chat = await newChat({ private: true });
  const posted = await ok(owner, 'POST', `/api/chats/${chat}/messages`, { text: 'inside' });
  const left = await service.newUser('lea');
  await put(chat, left);
  await ok(owner, 'DELETE', `/api/chats/${chat}/members/${left.id}`);
  const calls = [
    ['GET', ''],
    ['GET', '/messages'],
    ['GET', '/posts'],
    ['GET', '/members'],
    ['PUT', `/members/${reader.id}`],
    ['DELETE', `/members/${owner.id}`],
    ['POST', '/join'],
    ['POST', '/leave'],
    ['POST', '/messages', { text: 'x' }],
    ['PATCH', `/messages/${posted.message_id}`, { text: 'x' }],
    ['DELETE', `/messages/${posted.message_id}`],
    ['POST', `/messages/${posted.message_id}/callback`, { data: 'd' }],
    ['POST', '/pin', { message_id: posted.message_id }],
    ['DELETE', '/pin'],
  ] as const;
  for (const [verb, end, body] of calls) {
    const unknown = await app(reader, verb, `/api/chats/-999999${end}`, body);
    expect(unknown.status, `${verb} ${end}`).toBe(404);
    for (const person of [reader, left]) {
      const hidden = await app(person, verb, `/api/chats/${chat}${end}`, body);
      // Skips the call that joins the chat. A removed person gets a different refusal from a stranger, because a
      // removed person knows that the chat exists.
      if (person === left && end === '/join') continue;
      expect([verb, end, hidden.status, hidden.body]).toEqual([verb, end, unknown.status, unknown.body]);
    }
  }
});

test('after a person blocks a bot, the person and the bot cannot write to each other until the person starts the bot again', async () => {
  const person = await service.newUser('bea');
  const path = `/api/bots/${bot.username}/block`;
  expect(await ok(person, 'POST', path)).toBe(true);
  const never = "Forbidden: bot can't initiate conversation with a user";
  const send = (method = 'sendMessage') =>
    service.bot(bot, method, { chat_id: person.id, text: 'x', action: 'typing' });
  expectEnvelope(await send(), 403, never);
  await service.openChat(person, bot);
  await resultOf(send());
  const mine = await ok(person, 'POST', `/api/chats/${bot.id}/messages`, { text: 'mine' });
  const inline_keyboard = [[{ text: 'd', callback_data: 'd' }]];
  const asked = { chat_id: person.id, text: 'menu', reply_markup: { inline_keyboard } };
  const menu = await resultOf(service.bot(bot, 'sendMessage', asked));
  await ok(person, 'POST', `/api/chats/${bot.id}/pin`, { message_id: menu.message_id });
  const question = { chat_id: person.id, question: 'q', options: ['a'] };
  const poll = await resultOf(service.bot(bot, 'sendPoll', question));
  await drop(bot);
  for (let again = 0; again < 2; again++) expect(await ok(person, 'POST', path)).toBe(true);
  const blocked = 'Forbidden: bot was blocked by the user';
  expectEnvelope(await send(), 403, blocked);
  expectEnvelope(await send('sendChatAction'), 403, blocked);
  expect(await ok(person, 'DELETE', path)).toBe(true);
  await resultOf(send());
  await ok(person, 'POST', path);
  // The person may not do anything that causes an update for the bot, because the bot could not answer the update.
  const chat = `/api/chats/${bot.id}`;
  for (const [verb, where, body] of [
    ['POST', 'messages', { text: 'x' }],
    ['POST', 'messages', { photo: 'https://example.org/a.jpg' }],
    ['PATCH', `messages/${mine.message_id}`, { text: 'y' }],
    ['POST', 'pin', { message_id: mine.message_id }],
    ['POST', `messages/${menu.message_id}/callback`, { data: 'd' }],
    ['POST', `messages/${poll.message_id}/poll`, { option_ids: [0] }],
  ] as const)
    expectEnvelope(await app(person, verb, `${chat}/${where}`, body), 403, 'Forbidden: you blocked this bot');
  // The person may still unpin and delete messages, because these actions cause no updates for the bot.
  await ok(person, 'DELETE', `${chat}/pin`);
  await ok(person, 'DELETE', `${chat}/messages/${mine.message_id}`);
  await service.openChat(person, bot);
  await resultOf(send());
  const updates = await updatesOf(bot, 5);
  const listed = updates.map(({ my_chat_member: change, message }) =>
    change ? `${change.old_chat_member.status} ${change.new_chat_member.status}` : message.text,
  );
  expect(listed).toEqual(['member kicked', 'kicked member', 'member kicked', 'kicked member', '/start']);
  expect(updates[0]?.my_chat_member).toEqual({
    chat: { id: person.id, type: 'private', first_name: 'bea', username: person.username },
    from: { id: person.id, is_bot: false, first_name: 'bea', username: person.username },
    date: expect.closeTo(Date.now() / 1000, -2),
    old_chat_member: {
      user: { id: bot.id, is_bot: true, first_name: 'writer', username: bot.username },
      status: 'member',
    },
    new_chat_member: {
      user: { id: bot.id, is_bot: true, first_name: 'writer', username: bot.username },
      ...{ status: 'kicked', until_date: 0 },
    },
  });
  for (const verb of ['POST', 'DELETE'])
    expectEnvelope(await app(person, verb, '/api/bots/no_such_bot/block'), 404, 'Not Found: bot not found');
});

test('a bot gets updates about other members only if it requests chat_member', async () => {
  const chat = await newChat({});
  await put(chat, other, admin('can_invite_users'));
  const all = ['my_chat_member', 'chat_member'];
  await updatesOf(other, 1, all);
  await drop(bot);
  await put(chat, bot);
  await put(chat, bot, admin('can_post_messages'));
  await put(chat, bot, admin('can_post_messages'));
  await ok(reader, 'POST', `/api/chats/${chat}/join`);
  await ok(reader, 'POST', `/api/chats/${chat}/leave`);
  await resultOf(service.bot(bot, 'leaveChat', { chat_id: chat }));
  const line = (update: Record<string, Json>) => {
    const [kind] = all.filter((each) => update[each]);
    const { from, old_chat_member: was, new_chat_member: now } = update[kind as string];
    return `${kind} ${now.user.id} ${was.status} ${now.status} by ${from.id}`;
  };
  const mine = (await updatesOf(bot, 3)).map(line);
  expect(mine).toEqual([
    `my_chat_member ${bot.id} left member by ${owner.id}`,
    `my_chat_member ${bot.id} member administrator by ${owner.id}`,
    `my_chat_member ${bot.id} administrator left by ${bot.id}`,
  ]);
  expect((await updatesOf(other, 5)).map(line)).toEqual([
    `chat_member ${bot.id} left member by ${owner.id}`,
    `chat_member ${bot.id} member administrator by ${owner.id}`,
    `chat_member ${reader.id} left member by ${reader.id}`,
    `chat_member ${reader.id} member left by ${reader.id}`,
    `chat_member ${bot.id} administrator left by ${bot.id}`,
  ]);
});
