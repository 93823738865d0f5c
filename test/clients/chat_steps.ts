import { expect } from 'vitest';
import { eventually } from './event_source.js';
import { badRequest, type Json, type Place, type Step } from './step.js';

const forbidden = (method: string, text: string) => ({
  error_code: 403,
  description: `Forbidden: ${text}`,
  method,
  retry_after: undefined,
});

async function newGroup({ service, user, made, received }: Place, title: string): Promise<number> {
  const chat = await service.newGroup(user, title, [made]);
  const joined = await received('my_chat_member', (change) => change.chat.id === chat);
  expect(joined).toMatchObject({
    chat: { id: chat, type: 'group', title },
    from: { id: user.id },
    old_chat_member: { status: 'left', user: { id: made.id, is_bot: true } },
    new_chat_member: { status: 'member' },
  });
  return chat;
}

async function administration(place: Place) {
  const { user, friend, made, bot, app, received } = place;
  const { calls, refusal } = bot;
  const chat = await newGroup(place, 'Managed');
  const member = (id: number) => `/api/chats/${chat}/members/${id}`;
  expect(await calls.getChatMember(chat, made.id)).toMatchObject({ status: 'member', user: { id: made.id } });
  const rights = { can_pin_messages: true, can_delete_messages: true };
  await app('PUT', member(made.id), { status: 'administrator', rights });
  const raised = await received(
    'my_chat_member',
    (change) => change.chat.id === chat && change.new_chat_member.status === 'administrator',
  );
  expect(raised).toMatchObject({
    old_chat_member: { status: 'member' },
    new_chat_member: { can_pin_messages: true, can_delete_messages: true, can_edit_messages: false },
  });
  // An administrator gets updates about other members.
  await app('PUT', member(friend.id), {});
  expect(
    await received(
      'chat_member',
      (change) => change.chat.id === chat && change.new_chat_member.user.id === friend.id,
    ),
  ).toMatchObject({ old_chat_member: { status: 'left' }, new_chat_member: { status: 'member' } });
  expect(await calls.getChatMemberCount(chat)).toBe(3);
  expect(await calls.getChatMember(chat, friend.id)).toMatchObject({
    status: 'member',
    user: { id: friend.id, first_name: friend.first_name, is_bot: false },
  });
  const administrators = await calls.getChatAdministrators(chat);
  const statuses = administrators.map((each: Json) => [each.user.id, each.status] as const);
  expect(new Map(statuses)).toEqual(
    new Map([
      [user.id, 'creator'],
      [made.id, 'administrator'],
    ]),
  );
  expect(await refusal(calls.getChatMember(chat, 999_999_999))).toEqual(
    badRequest('getChatMember', 'user not found'),
  );
  expect(await calls.getChat(chat)).toMatchObject({
    id: chat,
    type: 'group',
    title: 'Managed',
    member_count: 3,
  });

  // The administrator rights of the bot allow it to pin and delete messages of other people, but not to edit them.
  const { message_id } = await app('POST', `/api/chats/${chat}/messages`, { text: 'of fred' }, friend);
  expect(await calls.pinChatMessage(chat, message_id)).toBe(true);
  expect((await calls.getChat(chat)).pinned_message).toMatchObject({ message_id, text: 'of fred' });
  expect(await refusal(calls.editMessageText(chat, message_id, 'of the bot'))).toEqual(
    badRequest('editMessageText', "message can't be edited"),
  );
  expect(await calls.deleteMessage(chat, message_id)).toBe(true);
  expect((await calls.getChat(chat)).pinned_message).toBeUndefined();

  await app('DELETE', member(friend.id));
  await received(
    'chat_member',
    (change) => change.chat.id === chat && change.new_chat_member.status === 'kicked',
  );
  expect(await calls.getChatMember(chat, friend.id)).toMatchObject({ status: 'kicked' });
  expect(await calls.getChatMemberCount(chat)).toBe(2);
}

async function kicked(place: Place) {
  const { user, made, bot, app, received } = place;
  const chat = await newGroup(place, 'Kicking');
  await app('DELETE', `/api/chats/${chat}/members/${made.id}`);
  expect(
    await received('my_chat_member', (c) => c.chat.id === chat && c.new_chat_member.status === 'kicked'),
  ).toMatchObject({ from: { id: user.id }, old_chat_member: { status: 'member' } });
  const outside = 'bot is not a member of the group chat';
  expect(await bot.refusal(bot.calls.sendMessage(chat, 'x'))).toEqual(forbidden('sendMessage', outside));
  expect(await bot.refusal(bot.calls.getChat(chat))).toEqual(forbidden('getChat', outside));
  expect(await bot.refusal(bot.calls.leaveChat(chat))).toEqual(forbidden('leaveChat', outside));
}

async function leaving(place: Place) {
  const { made, bot, app, say, received } = place;
  const left = async (chat: number) =>
    expect(
      await received('my_chat_member', (c) => c.chat.id === chat && c.new_chat_member.status === 'left'),
    ).toMatchObject({ from: { id: made.id } });
  const asked = await newGroup(place, 'Asked');
  await say(asked, '/go');
  await left(asked);
  const own = await newGroup(place, 'Own');
  expect(await bot.calls.leaveChat(own)).toBe(true);
  await left(own);
  const { items } = await app('GET', `/api/chats/${own}/members`);
  expect(items.filter(({ user, status }: Json) => user.id === made.id && status === 'member')).toEqual([]);
  expect((await bot.refusal(bot.calls.sendMessage(own, 'x'))).error_code).toBe(403);
}

async function blocked(place: Place) {
  const { service, user, friend, made, bot, app } = place;
  expect(await bot.refusal(bot.calls.sendMessage(friend.id, 'x'))).toEqual(
    forbidden('sendMessage', "bot can't initiate conversation with a user"),
  );
  await app('POST', `/api/bots/${made.username}/block`);
  expect(await bot.refusal(bot.calls.sendMessage(user.id, 'x'))).toEqual(
    forbidden('sendMessage', 'bot was blocked by the user'),
  );
  await service.openChat(user, made);
  expect(await bot.calls.sendMessage(user.id, 'again')).toMatchObject({ text: 'again' });
}

async function posts({ channel, bot, app, received, shown }: Place) {
  const { calls, refusal } = bot;
  const about = { id: channel, type: 'channel', title: 'News' };
  const { message_id } = await app('POST', `/api/chats/${channel}/messages`, { text: 'news #one' });
  const post = await received('channel_post', (message) => message.message_id === message_id);
  expect(post).toMatchObject({
    text: 'news #one',
    chat: about,
    sender_chat: about,
    entities: [{ type: 'hashtag', offset: 5, length: 4 }],
  });
  await app('PATCH', `/api/chats/${channel}/messages/${message_id}`, { text: 'old news' });
  expect(await received('edited_channel_post', (message) => message.message_id === message_id)).toMatchObject(
    {
      text: 'old news',
      chat: about,
      edit_date: expect.any(Number),
    },
  );

  const own = await calls.sendMedia('photo', channel, 'https://example.org/p.png', { caption: 'seen' });
  expect(own).toMatchObject({ chat: about, sender_chat: about, caption: 'seen' });
  expect(await calls.editMessageCaption(channel, own.message_id, 'seen again')).toMatchObject({
    caption: 'seen again',
  });
  // In a channel, can_edit_messages also allows an administrator to edit the posts of others and to pin posts.
  const { message_id: other } = await app('POST', `/api/chats/${channel}/messages`, { text: 'mistaken' });
  expect(await calls.editMessageText(channel, other, 'right')).toMatchObject({ text: 'right' });
  expect(await calls.pinChatMessage(channel, other)).toBe(true);
  expect(await received('channel_post', (m) => m.pinned_message !== undefined)).toMatchObject({
    chat: about,
    pinned_message: { message_id: other, text: 'right' },
  });
  const forwarded = await calls.forwardMessage(channel, channel, other);
  expect(forwarded).toMatchObject({
    forward_origin: { type: 'channel', chat: about, message_id: other },
    forward_from_chat: about,
  });
  expect(await calls.deleteMessage(channel, other)).toBe(true);
  await expect(shown(channel, other)).rejects.toThrow('not shown');
  expect(await refusal(calls.forwardMessage(channel, channel, other))).toEqual(
    badRequest('forwardMessage', 'message to forward not found'),
  );
}

async function identity({ made, bot, app }: Place) {
  const { calls, refusal } = bot;
  const texts = [
    ['name', calls.setMyName, calls.getMyName, 64],
    ['description', calls.setMyDescription, calls.getMyDescription, 512],
    ['short_description', calls.setMyShortDescription, calls.getMyShortDescription, 120],
  ] as const;
  for (const [key, set, get, max] of texts) {
    expect(await set(`a ${key}`)).toBe(true);
    expect(await set(`имя ${key}`, 'ru')).toBe(true);
    expect(await get()).toEqual({ [key]: `a ${key}` });
    expect(await get('ru')).toEqual({ [key]: `имя ${key}` });
    expect(await get('kk')).toEqual({ [key]: `a ${key}` });
    // The service counts lengths in code points, not in UTF-16 units.
    expect(await set('👍'.repeat(max), 'tt')).toBe(true);
    expect((await refusal(set('👍'.repeat(max + 1), 'tt'))).description).toBe(
      `Bad Request: ${key.replace('_', ' ')} is too long`,
    );
    expect((await refusal(set('x', 'xx'))).description).toBe('Bad Request: invalid language code specified');
    expect(await set('', 'ru')).toBe(true);
    expect(await get('ru')).toEqual({ [key]: `a ${key}` });
  }
  for (let i = 0; i < 4; i++)
    expect(await calls.getMe()).toMatchObject({
      id: made.id,
      username: made.username,
      first_name: 'a name',
      is_bot: true,
    });
  await eventually(async () =>
    expect(await app('GET', `/api/bots/${made.username}`)).toMatchObject({
      description: 'a description',
      short_description: 'a short_description',
    }),
  );
}

export const chatSteps: readonly Step[] = [
  { name: 'an administrator of a group uses its rights and gets updates about members', run: administration },
  { name: 'a bot that is removed from a chat gets an update and is refused afterwards', run: kicked },
  { name: 'a bot leaves a group', run: leaving },
  { name: 'messages to people who never started or who blocked the bot are refused', run: blocked },
  { name: 'a bot posts, edits and pins in a channel', run: posts },
  { name: 'a bot sets its name and descriptions by language', run: identity },
];
