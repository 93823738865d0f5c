import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { type MessageRecord, messageKinds, packMessage, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, directChat, makeKeys, sharedChat } from '../../src/store/core/keys.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import type { Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';

const keys = makeKeys(64);
const forwardProtected = "Bad Request: message has protected content and can't be forwarded";
const copyProtected = "Bad Request: message has protected content and can't be copied";
const media = { type: 'photo', id: 'F', unique: 'U', width: 3, height: 2 } as const;

let service: Service;
let seen: Watch;
let sql: pg.Client;
let user: TestUser;
let bot: TestBot;
let outsider: TestBot;
let group: number;
let channel: number;

async function newChannel(title: string): Promise<number> {
  const { id } = await resultOf(service.app(user, 'POST', '/api/chats', { type: 'group', title }));
  await sql.query("update chats set type = 'channel' where id = $1", [id]);
  const rights = { status: 'administrator', rights: { can_post_messages: true } };
  await resultOf(service.app(user, 'PUT', `/api/chats/${id}/members/${bot.id}`, rights));
  return id;
}

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  sql = new pg.Client(service.databaseUrl);
  await sql.connect();
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'relay');
  outsider = await service.newBot(user, 'outsider');
  await service.openChat(user, bot);
  group = await service.newGroup(user, 'Team', [bot]);
  channel = await newChannel('News');
});
afterAll(async () => {
  await sql?.end();
});

type Params = Readonly<Record<string, unknown>>;
const call = (method: string, params: Params, front = 0) => service.bot(bot, method, params, front);
const result = (method: string, params: Params, front = 0) => resultOf(call(method, params, front));
const send = (chat_id: number, params: Params = {}) =>
  result('sendMessage', { chat_id, text: 'hello', ...params });
const say = (text: string) => resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const shown = async (chat: number, limit: number) =>
  (await itemsOf(service.app(user, 'GET', `/api/chats/${chat}/messages?limit=${limit}`))) as Params[];
const refused = (method: string, params: Params, code: number, text: string) =>
  seen.refused(() => call(method, params), code, text);
const ours = (): ChatRef => directChat(bot.id, user.id);
async function rewrite(chat: ChatRef, id: number, change: Partial<MessageRecord>): Promise<void> {
  const key = keys.message(chat, id);
  const record = unpackMessage((await seen.redis.getBuffer(key)) as Buffer);
  await seen.redis.set(key, packMessage({ ...record, ...change }));
}

describe('§4.3.1: forwards keep the original sender, media and text', () => {
  test('a forward from a direct chat to a group names the author of the message', async () => {
    const { message_id, date } = await say('a /word');
    const sent = await result('forwardMessage', { chat_id: group, from_chat_id: user.id, message_id }, 1);
    const person = { id: user.id, is_bot: false, first_name: 'ann', username: user.username };
    expect(sent).toMatchObject({
      text: 'a /word',
      entities: [{ type: 'bot_command', offset: 2, length: 5 }],
      from: { id: bot.id, is_bot: true },
      chat: { id: group },
      forward_origin: { type: 'user', sender_user: person, date },
      forward_from: person,
      forward_date: date,
    });
    expect(sent).not.toHaveProperty('has_protected_content');
    expect((await shown(group, 1))[0]).toMatchObject({ message_id: sent.message_id, forward_date: date });
  });

  test('a forward from a group to a direct chat names the bot that wrote the message', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'b', callback_data: 'd' }]] };
    const { message_id } = await send(group, { text: '<b>x</b>', parse_mode: 'HTML', reply_markup });
    const sent = await result('forwardMessage', { chat_id: user.id, from_chat_id: group, message_id });
    expect(sent).toMatchObject({
      text: 'x',
      entities: [{ type: 'bold', offset: 0, length: 1 }],
      forward_origin: { type: 'user', sender_user: { id: bot.id, is_bot: true } },
    });
    expect(sent).not.toHaveProperty('reply_markup');
    const change = { chat_id: user.id, message_id: sent.message_id, text: 'y' };
    await refused('editMessageText', change, 400, "Bad Request: message can't be edited");
  });

  test('a forward of a channel post names the channel and the post, even when the forward is forwarded again', async () => {
    const { message_id, date } = await send(channel);
    const first = await result('forwardMessage', { chat_id: user.id, from_chat_id: channel, message_id });
    const origin = {
      type: 'channel',
      chat: { id: channel, type: 'channel', title: 'News' },
      message_id,
      date,
    };
    expect(first).toMatchObject({
      forward_origin: origin,
      forward_from_chat: origin.chat,
      forward_from_message_id: message_id,
    });
    expect(first).not.toHaveProperty('forward_from');
    const again = { chat_id: group, from_chat_id: user.id, message_id: first.message_id };
    expect((await result('forwardMessage', again, 1)).forward_origin).toEqual(origin);
  });

  test('each message forwarded to a channel becomes a separate post', async () => {
    const ids = [(await say('one')).message_id, (await say('two')).message_id];
    const params = { chat_id: channel, from_chat_id: user.id, message_ids: ids };
    const sent = await result('forwardMessages', params);
    const posts = [];
    for (const { message_id } of sent) {
      const record = await seen.redis.getBuffer(keys.message(sharedChat(channel), message_id));
      const { post } = unpackMessage(record as Buffer);
      expect(await seen.redis.hget(keys.post(post), 'm')).toBe(String(message_id));
      posts.push(post);
    }
    expect(new Set(posts).size).toBe(2);
    expect(posts).not.toContain(0);
  });

  test('a forward keeps media and their caption', async () => {
    const { message_id } = await send(group);
    const content = { text: 'seen', entities: [{ type: 'bold', offset: 0, length: 4 }], media };
    await rewrite(sharedChat(group), message_id, { kind: messageKinds.media, content });
    const sent = await result('forwardMessage', { chat_id: user.id, from_chat_id: group, message_id });
    expect(sent).toMatchObject({
      photo: [{ file_id: 'F', file_unique_id: 'U', width: 3, height: 2 }],
      caption: 'seen',
      caption_entities: [{ type: 'bold', offset: 0, length: 4 }],
    });
  });
});

describe('§4.3.2: copies do not name their source', () => {
  const copy = async (message_id: number, params: Params = {}) => {
    const given = { chat_id: user.id, from_chat_id: group, message_id, ...params };
    const sent = await result('copyMessage', given, 1);
    const [made = {}] = await shown(bot.id, 1);
    expect(sent).toEqual({ message_id: made.message_id });
    expect(Object.keys(made).filter((name) => name.startsWith('forward'))).toEqual([]);
    return made;
  };
  const photo = async (text = 'seen') => {
    const { message_id } = await send(group);
    await rewrite(sharedChat(group), message_id, { kind: messageKinds.media, content: { text, media } });
    return message_id as number;
  };

  test('a copied text keeps its keyboard, and a forwarded message can be copied', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'b', callback_data: 'd' }]] };
    const { message_id } = await send(group, { reply_markup });
    expect(await copy(message_id, { caption: 'of no use' })).toMatchObject({ text: 'hello', reply_markup });
    const params = { chat_id: group, from_chat_id: group, message_id };
    expect(await copy((await result('forwardMessage', params)).message_id)).toMatchObject({ text: 'hello' });
  });

  test('a copy gets the keyboard from the call, and an empty keyboard removes the original keyboard', async () => {
    const of = (data: string) => ({ inline_keyboard: [[{ text: 'b', callback_data: data }]] });
    const { message_id } = await send(group, { reply_markup: of('old') });
    expect((await copy(message_id, { reply_markup: of('new') })).reply_markup).toEqual(of('new'));
    const none = { reply_markup: { inline_keyboard: [] } };
    expect(await copy(message_id, none)).not.toHaveProperty('reply_markup');
  });

  test('a copy keeps the caption of the original unless the call gives a new or an empty caption', async () => {
    const id = await photo();
    expect(await copy(id)).toMatchObject({ photo: [{ file_id: 'F' }], caption: 'seen' });
    const bold = await copy(id, { caption: '<b>new</b>', parse_mode: 'HTML' });
    expect(bold).toMatchObject({
      caption: 'new',
      caption_entities: [{ type: 'bold', offset: 0, length: 3 }],
    });
    const bare = await copy(id, { caption: '' });
    expect(bare).toMatchObject({ photo: [{ file_id: 'F' }] });
    expect(bare).not.toHaveProperty('caption');
    const long = { chat_id: user.id, from_chat_id: group, message_id: id, caption: 'x'.repeat(1025) };
    await refused('copyMessage', long, 400, 'Bad Request: message caption is too long');
  });

  test('a copy can be a reply and can have protected content', async () => {
    const target = await send(user.id, { text: 'target' });
    const { message_id } = await send(group);
    const made = await copy(message_id, {
      reply_parameters: { message_id: target.message_id },
      protect_content: true,
    });
    expect(made.has_protected_content).toBe(true);
    const record = await seen.redis.getBuffer(keys.message(ours(), made.message_id as number));
    expect(unpackMessage(record as Buffer).origin).toEqual({ reply: target.message_id });
  });

  test('copyMessages copies several messages, without captions if requested', async () => {
    const ids = [await photo('one'), await photo('two')];
    const params = { chat_id: user.id, from_chat_id: group, message_ids: ids };
    await result('copyMessages', params);
    expect((await shown(bot.id, 2)).map((message) => message.caption)).toEqual(['two', 'one']);
    await result('copyMessages', { ...params, remove_caption: true });
    expect((await shown(bot.id, 2)).map((message) => message.caption)).toEqual([undefined, undefined]);
  });

  test('copied messages of one album form a new album', async () => {
    const ids = [await photo(), await photo(), await photo()];
    for (const id of ids.slice(0, 2)) await rewrite(sharedChat(group), id, { origin: { group: 'album' } });
    await result('copyMessages', { chat_id: user.id, from_chat_id: group, message_ids: ids });
    const [third, second, first] = await shown(bot.id, 3);
    expect(first?.media_group_id).toMatch(/^\d{1,19}$/);
    expect(second?.media_group_id).toBe(first?.media_group_id);
    expect(first?.media_group_id).not.toBe('album');
    expect(third).not.toHaveProperty('media_group_id');
  });
});

describe('§4.3.3 and §7: protected content cannot be forwarded or copied', () => {
  test('a message that was forwarded with protect_content can be neither forwarded nor copied', async () => {
    const { message_id } = await send(user.id);
    const params = { chat_id: group, from_chat_id: user.id, message_id, protect_content: true };
    const sent = await result('forwardMessage', params);
    expect(sent.has_protected_content).toBe(true);
    const again = { chat_id: user.id, from_chat_id: group, message_id: sent.message_id };
    await refused('forwardMessage', again, 400, forwardProtected);
    await refused('copyMessage', again, 400, copyProtected);
  });

  test('a batch with a protected message is refused completely', async () => {
    const free = await send(user.id);
    const shut = await send(user.id, { protect_content: true });
    const message_ids = [free.message_id, shut.message_id, 999_999];
    const params = { chat_id: group, from_chat_id: user.id, message_ids };
    await refused('forwardMessages', params, 400, forwardProtected);
    await refused('copyMessages', params, 400, copyProtected);
  });
});

describe('§8: a batch has up to 100 messages', () => {
  test('a forwarded batch of 100 messages keeps its order, and an id that is listed twice is forwarded twice', async () => {
    const ids: number[] = [];
    for (let i = 0; i < 50; i++) ids.push((await send(user.id, { text: `${i}` })).message_id);
    const message_ids = [...ids.toReversed(), ...ids];
    const params = { chat_id: group, from_chat_id: user.id, message_ids };
    const sent: Array<{ message_id: number }> = await result('forwardMessages', params, 1);
    const first = sent[0]?.message_id as number;
    expect(sent).toEqual(Array.from({ length: 100 }, (_, i) => ({ message_id: first + i })));
    const texts = (await shown(group, 100)).map((message) => message.text).toReversed();
    const numbers = Array.from({ length: 50 }, (_, i) => `${i}`);
    expect(texts).toEqual([...numbers.toReversed(), ...numbers]);
  });

  test('an empty batch and a batch of more than 100 messages are refused', async () => {
    const empty = 'Bad Request: message identifiers are not specified';
    const many = 'Bad Request: too many message identifiers specified';
    const to = { chat_id: group, from_chat_id: user.id };
    for (const method of ['forwardMessages', 'copyMessages', 'deleteMessages']) {
      await refused(method, to, 400, empty);
      await refused(method, { ...to, message_ids: [] }, 400, empty);
      const message_ids = Array.from({ length: 101 }, (_, i) => i + 1);
      await refused(method, { ...to, message_ids }, 400, many);
    }
  });

  test('a batch skips missing, deleted and service messages', async () => {
    const kept = await send(user.id, { text: 'kept' });
    const gone = await send(user.id);
    const answer = await send(user.id);
    await result('deleteMessage', { chat_id: user.id, message_id: gone.message_id });
    await rewrite(ours(), answer.message_id, { kind: messageKinds.service, content: {} });
    const missing = [gone.message_id, answer.message_id, 999_999, 0];
    const params = { chat_id: group, from_chat_id: user.id };
    const message_ids = [...missing, kept.message_id];
    expect(await result('forwardMessages', { ...params, message_ids })).toHaveLength(1);
    expect(
      await result('copyMessages', { ...params, message_ids: JSON.stringify(message_ids) }),
    ).toHaveLength(1);
    expect((await shown(group, 2)).map((message) => message.text)).toEqual(['kept', 'kept']);
    const none = 'Bad Request: there are no messages to forward';
    await refused('forwardMessages', { ...params, message_ids: missing }, 400, none);
    for (const message_id of missing) {
      const one = { ...params, message_id };
      await refused('forwardMessage', one, 400, 'Bad Request: message to forward not found');
      await refused('copyMessage', one, 400, 'Bad Request: message to copy not found');
    }
  });
});

test('behaviour §6: a bot can forward and copy only from chats that it can read, and only to chats in which it may write', async () => {
  const { message_id } = await send(group);
  const from = (chat: number, ids: Params = { message_id }) => ({
    chat_id: user.id,
    from_chat_id: chat,
    ...ids,
  });
  for (const [method, ids] of [
    ['forwardMessage', { message_id }],
    ['copyMessages', { message_ids: [message_id] }],
  ] as const) {
    const asOutsider = () => service.bot(outsider, method, from(group, ids));
    await seen.refused(asOutsider, 403, 'Forbidden: bot is not a member of the group chat');
    const inChannel = () => service.bot(outsider, method, from(channel, ids));
    await seen.refused(inChannel, 403, 'Forbidden: bot is not a member of the channel chat');
    const direct = () => service.bot(outsider, method, from(user.id, ids));
    await seen.refused(direct, 400, 'Bad Request: chat not found');
    await refused(method, from(-999_999_999, ids), 400, 'Bad Request: chat not found');
    await refused(method, { ...from(group, ids), chat_id: -999_999_999 }, 400, 'Bad Request: chat not found');
  }
});

test('forwards and copies work when messages, chats and members must be read back from Postgres', async () => {
  const ids: number[] = [];
  for (let i = 0; i < 5; i++) ids.push((await send(group, { text: `cold ${i}` })).message_id);
  await service.flush.start();
  await service.flush.stop();
  const chat = sharedChat(group);
  const evict = () =>
    seen.redis.del(
      keys.chat(chat),
      keys.member(group, bot.id),
      ...ids.slice(1).map((id) => keys.message(chat, id)),
    );
  expect(await evict()).toBe(6);
  const params = { chat_id: user.id, from_chat_id: group, message_ids: ids };
  expect(await result('forwardMessages', params, 1)).toHaveLength(5);
  const texts = (await shown(bot.id, 5)).map((message) => message.text).toReversed();
  expect(texts).toEqual(ids.map((_, i) => `cold ${i}`));
});
