/**
 * Tests all methods and endpoints with callers outside a private channel. Such callers can neither read nor change
 * anything in the channel.
 */
import { expect, test } from 'vitest';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let left: TestUser;
let stranger: TestUser;
let inside: TestBot;
let removed: TestBot;
let outside: TestBot;
let channel: number;
let home: number;
let posted: Answer['body'];
let post: Answer['body'];
const secret = 'nobody outside reads this';

onSharedService(async (running) => {
  service = running;
  [owner, left, stranger] = [
    await service.newUser('olga'),
    await service.newUser('lea'),
    await service.newUser('sam'),
  ];
  inside = await service.newBot(owner, 'inside');
  removed = await service.newBot(owner, 'removed');
  outside = await service.newBot(owner, 'outside');
  channel = (
    await resultOf(service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'Own', private: true }))
  ).id;
  home = await service.newGroup(owner, 'Home', [inside, removed, outside]);
  const all = {
    can_post_messages: true,
    can_edit_messages: true,
    can_pin_messages: true,
    can_delete_messages: true,
    can_invite_users: true,
  };
  for (const who of [inside, removed, left])
    await resultOf(
      service.app(owner, 'PUT', `/api/chats/${channel}/members/${who.id}`, {
        status: 'administrator',
        rights: all,
      }),
    );
  posted = await resultOf(service.bot(removed, 'sendMessage', { chat_id: channel, text: secret }));
  const posts = await itemsOf(service.app(left, 'GET', `/api/chats/${channel}/posts`));
  post = posts[0];
  expect((await resultOf(service.bot(removed, 'getPost', { post_id: post.id }))).text).toBe(secret);
  for (const who of [removed, left])
    await resultOf(service.app(owner, 'DELETE', `/api/chats/${channel}/members/${who.id}`));
});

const described = (answer: Answer) => JSON.stringify(answer.body);

test('a bot has access to a private channel only while it is a member', async () => {
  const { message_id } = posted;
  const away = { from_chat_id: channel, chat_id: home };
  const edit = { chat_id: channel, message_id };
  for (const bot of [removed, outside]) {
    for (const [method, params] of [
      ['getChat', { chat_id: channel }],
      ['getChatAdministrators', { chat_id: channel }],
      ['getChatMember', { chat_id: channel, user_id: owner.id }],
      ['getChatMemberCount', { chat_id: channel }],
      ['forwardMessage', { ...away, message_id }],
      ['forwardMessages', { ...away, message_ids: [message_id] }],
      ['copyMessage', { ...away, message_id }],
      ['copyMessages', { ...away, message_ids: [message_id] }],
      ['sendMessage', { chat_id: channel, text: 'x', reply_parameters: { message_id } }],
      [
        'sendMediaGroup',
        {
          chat_id: channel,
          media: [1, 2].map((n) => ({ type: 'photo', media: `https://a.example/${n}.png` })),
        },
      ],
      ['sendChatAction', { chat_id: channel, action: 'typing' }],
      ['createPost', { chat_id: channel, text: 'x' }],
      ['editMessageText', { ...edit, text: 'x' }],
      ['editMessageReplyMarkup', { ...edit, reply_markup: { inline_keyboard: [] } }],
      ['deleteMessage', edit],
      ['deleteMessages', { chat_id: channel, message_ids: [message_id] }],
      ['pinChatMessage', edit],
      ['unpinChatMessage', { chat_id: channel }],
      ['unpinAllChatMessages', { chat_id: channel }],
      ['leaveChat', { chat_id: channel }],
    ] as const) {
      const answer = await service.bot(bot, method, params);
      expect([method, answer.status]).toEqual([method, 403]);
      expect(described(answer)).not.toContain(secret);
    }
    for (const name of [{ post_id: post.id }, { external_id: post.external_id }])
      for (const [method, more] of [
        ['getPost', {}],
        ['editPost', { text: 'x' }],
        ['editPost', { reply_markup: { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] } }],
        ['editPost', { media: { type: 'photo', media: 'https://a.example/b.png' } }],
      ] as const) {
        const answer = await service.bot(bot, method, { ...name, ...more });
        expect([method, answer.status, answer.body.description]).toEqual([
          method,
          answer.status === 404 ? 404 : 400,
          expect.stringContaining('post not found'),
        ]);
      }
    const reply = await service.bot(bot, 'sendMessage', {
      ...{ chat_id: home, text: 'x', reply_to_message_id: message_id + 500 },
    });
    expect(reply.status).toBe(400);
  }
  expect((await resultOf(service.bot(inside, 'getPost', { post_id: post.id }))).text).toBe(secret);
});

test('a person has access to a private channel only while they are a member', async () => {
  for (const person of [left, stranger]) {
    for (const name of [post.id, post.external_id]) {
      for (const [verb, path, body] of [
        ['GET', `/api/posts/${name}`],
        ['GET', `/api/posts/${name}/reactions`],
        ['POST', `/api/posts/${name}/reactions`, { emoji: '👍' }],
        ['DELETE', `/api/posts/${name}/reactions`],
        ['DELETE', `/api/posts/${name}/reactions?emoji=%F0%9F%91%8D`],
        ['POST', `/api/posts/${name}/like`],
        ['DELETE', `/api/posts/${name}/like`],
        ['GET', `/api/stream?post=${name}`],
      ] as const) {
        const answer = await service.app(person, verb, path, body);
        expect([verb, path, answer.status, answer.body.description]).toEqual([
          ...[verb, path, 404, 'Not Found: post not found'],
        ]);
      }
    }
    const list = await service.app(person, 'GET', '/api/chats');
    expect(described(list)).not.toContain(secret);
  }
  const stands = await resultOf(service.app(owner, 'GET', `/api/posts/${post.id}`));
  expect(stands).toMatchObject({ text: secret, reactions: [] });
});
