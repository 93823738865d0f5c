import { describe, expect, test } from 'vitest';
import { makeKeys, sharedChat } from '../../src/store/core/keys.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import type { Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';

const keys = makeKeys(64);

let service: Service;
let seen: Watch;
let user: TestUser;
let bot: TestBot;
let group: number;

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'broom');
  await service.openChat(user, bot);
  group = await service.newGroup(user, 'Team', [bot]);
});

type Params = Readonly<Record<string, unknown>>;
const call = (method: string, params: Params, front = 0) => service.bot(bot, method, params, front);
const result = (method: string, params: Params, front = 0) => resultOf(call(method, params, front));
const send = (chat_id: number) => result('sendMessage', { chat_id, text: 'hello' });
const say = (text: string) => resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const shown = async (chat: number, limit: number) =>
  (await itemsOf(service.app(user, 'GET', `/api/chats/${chat}/messages?limit=${limit}`))) as Params[];
const refused = (method: string, params: Params, code: number, text: string) =>
  seen.refused(() => call(method, params), code, text);

describe('behaviour §4: deleteMessages', () => {
  test('deleteMessages deletes the messages that exist and skips ids without a message', async () => {
    const ids = [(await send(user.id)).message_id, (await say('x')).message_id];
    const message_ids = [...ids, ids[0], 999_999];
    expect(await result('deleteMessages', { chat_id: user.id, message_ids })).toBe(true);
    const left = (await shown(bot.id, 10)).map((message) => message.message_id);
    for (const id of ids) expect(left).not.toContain(id);
    expect(await result('deleteMessages', { chat_id: user.id, message_ids })).toBe(true);
  });

  test('deleteMessages deletes nothing if the bot may not delete one of the messages', async () => {
    const own = (await send(group)).message_id;
    const other = await resultOf(service.app(user, 'POST', `/api/chats/${group}/messages`, { text: 'mine' }));
    const message_ids = [own, other.message_id];
    await refused(
      'deleteMessages',
      { chat_id: group, message_ids },
      400,
      "Bad Request: message can't be deleted",
    );
  });
});

test('deleteMessages deletes messages that are only in Postgres, and skips unknown ids', async () => {
  // Leaves a gap of one message id. Real chats have such gaps too, because a restart of Redis skips ids.
  const chat = sharedChat(group);
  const skipped = await seen.redis.hincrby(keys.chat(chat), 's', 1);
  const ids: number[] = [];
  for (let i = 0; i < 5; i++) ids.push((await send(group)).message_id);
  await service.flush.start();
  await service.flush.stop();
  const cold = ids.slice(1).map((id) => keys.message(chat, id));
  expect(await seen.redis.del(keys.chat(chat), keys.member(group, bot.id), ...cold)).toBe(6);
  const message_ids = [...ids, skipped, 999_999];
  expect(await result('deleteMessages', { chat_id: group, message_ids }, 1)).toBe(true);
  const left = (await shown(group, 10)).map((message) => message.message_id);
  for (const id of ids) expect(left).not.toContain(id);
});
