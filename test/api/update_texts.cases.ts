import { beforeEach, describe, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { fastest } from '../support/times.js';
import { expectEnvelope, type Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';

const keys = makeKeys(64);
const terminated =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';
const tooOld = 'Bad Request: query is too old and response timeout expired or query ID is invalid';

let service: Service;
let seen: Watch;
let user: TestUser;
let bot: TestBot;

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  user = await service.newUser('ann');
});

const say = (text: string, front = 0) =>
  resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text }, front));
const poll = async (params: object = {}, front = 0) =>
  (await resultOf(service.bot(bot, 'getUpdates', { ...params }, front))) as Array<{
    update_id: number;
    message?: { text: string };
    edited_message?: { text: string };
  }>;
const texts = async (params: object = {}, front = 0) =>
  (await poll(params, front)).map(({ message }) => message?.text);
/** Starts a poll of 20 s. When the poll is waiting, returns a promise of its answer. */
async function waitingPoll(front: number) {
  const named = () => seen.redis.hget(keys.queueState(bot.id), 'poll');
  const before = await named();
  const answer = service.bot(bot, 'getUpdates', { timeout: 20 }, front);
  await expect.poll(named).not.toBe(before);
  return { answer };
}
const pendingCount = async () =>
  (await resultOf(service.bot(bot, 'getWebhookInfo', {}, 1))).pending_update_count;

describe('getUpdates and answerCallbackQuery', () => {
  beforeEach(async () => {
    bot = await service.newBot(user, 'updates');
    await service.openChat(user, bot);
    await resultOf(service.bot(bot, 'deleteWebhook', { drop_pending_updates: true }));
  });

  test.each([
    [0, 0],
    [0, 1],
    [1, 0],
  ])('a newer poll ends the older one with 409 (fronts %i and %i)', async (first, second) => {
    const { answer: older } = await waitingPoll(first);
    const started = performance.now();
    const newer = service.bot(bot, 'getUpdates', { timeout: 20 }, second);
    expectEnvelope(await older, 409, terminated);
    expect(performance.now() - started).toBeLessThan(10_000);
    await say('for the newer');
    expect((await resultOf(newer)).map(({ message }: { message: { text: string } }) => message.text)).toEqual(
      ['for the newer'],
    );
  });

  test('a poll without a timeout also ends an older waiting poll', async () => {
    const { answer: older } = await waitingPoll(0);
    expect(await poll({}, 1)).toEqual([]);
    expectEnvelope(await older, 409, terminated);
  });

  test('setting a webhook ends a waiting poll', async () => {
    const state = keys.queueState(bot.id);
    const { answer: waiting } = await waitingPoll(1);
    await seen.redis.hset(state, 'hook', '1');
    expectEnvelope(await waiting, 409, 'Conflict: terminated by setWebhook request');
    const active =
      "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    await seen.refused(() => service.bot(bot, 'getUpdates'), 409, active);
    await seen.redis.hdel(state, 'hook');
    expect(await poll()).toEqual([]);
  });

  test('a positive offset confirms all updates with lower ids, unless the offset is above the next update id', async () => {
    for (let i = 1; i <= 5; i++) await say(`t${i}`, i % 2);
    const all = await poll();
    const [first] = all;
    const id = first?.update_id ?? 0;
    expect(id).toBeGreaterThanOrEqual(1_000_000);
    expect(id).toBeLessThan(1_000_000_000 + 10);
    expect(all.map(({ update_id }) => update_id - id)).toEqual([0, 1, 2, 3, 4]);
    const five = ['t1', 't2', 't3', 't4', 't5'];
    for (const offset of [0, '0', '', id, id - 1, 1, id + 6, id + 1_000_000, 2 ** 50])
      expect(await texts({ offset }, 1), `offset ${offset}`).toEqual(five);
    expect(await pendingCount()).toBe(5);
    expect(await texts({ offset: id + 2 })).toEqual(['t3', 't4', 't5']);
    expect(await texts({}, 1)).toEqual(['t3', 't4', 't5']);
    expect(await texts({ offset: id + 5 })).toEqual([]);
    expect(await pendingCount()).toBe(0);
    expect(await texts({ offset: id + 1 }, 1)).toEqual([]);
    await say('t6');
    expect((await poll()).map(({ update_id }) => update_id - id)).toEqual([5]);
  });

  test('an offset of -N keeps only the last N updates', async () => {
    for (let i = 1; i <= 5; i++) await say(`t${i}`);
    expect(await texts({ offset: -10 })).toHaveLength(5);
    expect(await texts({ offset: '-2' }, 1)).toEqual(['t4', 't5']);
    expect(await texts({}, 0)).toEqual(['t4', 't5']);
    expect(await texts({ offset: -1 })).toEqual(['t5']);
    expect(await pendingCount()).toBe(1);
  });

  test('getUpdates clamps limit and timeout to their ranges', async () => {
    for (let i = 1; i <= 102; i++) await say(`t${i}`);
    for (const limit of [-5, 0, 1, '1']) expect(await texts({ limit })).toEqual(['t1']);
    for (const limit of [100, 101, 1_000_000, '']) expect(await texts({ limit }, 1)).toHaveLength(100);
    expect(await texts()).toHaveLength(100);
    await resultOf(service.bot(bot, 'deleteWebhook', { drop_pending_updates: 'true' }));
    expect(await fastest(900, async () => expect(await poll({ timeout: -3 })).toEqual([]))).toBeLessThan(900);
    const started = performance.now();
    expect(await poll({ timeout: 1 })).toEqual([]);
    expect(performance.now() - started).toBeGreaterThan(950);
  });

  test('allowed_updates filters updates when they are created', async () => {
    const { message_id } = await say('before');
    const edit = (text: string) =>
      resultOf(service.app(user, 'PATCH', `/api/chats/${bot.id}/messages/${message_id}`, { text }));
    await poll({ allowed_updates: '["edited_message","no_such_kind"]' });
    await say('not wanted');
    await edit('edited');
    const shown = await poll({}, 1);
    expect(shown.map(({ message, edited_message }) => message?.text ?? edited_message?.text)).toEqual([
      'before',
      'edited',
    ]);
    expect((await resultOf(service.bot(bot, 'getWebhookInfo'))).allowed_updates).toEqual(['edited_message']);
    await poll({ allowed_updates: '[]' });
    await say('wanted again');
    expect((await texts({}, 1)).at(-1)).toBe('wanted again');
    const info = await resultOf(service.bot(bot, 'getWebhookInfo'));
    expect(info).toEqual({
      url: '',
      has_custom_certificate: false,
      pending_update_count: 3,
      last_error_date: null,
      last_error_message: null,
      max_connections: 40,
    });
  });

  test('deleteWebhook drops pending updates only on request', async () => {
    await say('waits');
    for (const drop_pending_updates of [undefined, false, 'false', 0]) {
      const { body } = await service.bot(bot, 'deleteWebhook', { drop_pending_updates });
      expect(body).toEqual({ ok: true, result: true, description: 'Webhook is already deleted' });
      expect(await pendingCount()).toBe(1);
    }
    await service.bot(bot, 'deleteWebhook', { drop_pending_updates: 1 }, 1);
    expect(await pendingCount()).toBe(0);
  });

  test('answerCallbackQuery refuses answered queries and queries of other bots', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] };
    const { message_id } = await resultOf(
      service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x', reply_markup }),
    );
    const path = `/api/chats/${bot.id}/messages/${message_id}/callback`;
    const { callback_query_id } = await resultOf(service.app(user, 'POST', path, { data: 'a' }, 1));
    const other = await service.newBot(user, 'other');
    const answer =
      (from: TestBot, id: unknown, more: object = {}) =>
      () =>
        service.bot(from, 'answerCallbackQuery', { callback_query_id: id, ...more });
    for (const id of [
      'x',
      '1',
      '0',
      '99999999999999999999',
      '1234567000',
      '1234567999',
      `${callback_query_id}1`,
      -1,
    ])
      await seen.refused(answer(bot, String(id)), 400, tooOld);
    await seen.refused(answer(other, callback_query_id), 400, tooOld);
    await seen.refused(
      answer(bot, callback_query_id, { text: 'x'.repeat(201) }),
      400,
      'Bad Request: MESSAGE_TOO_LONG',
    );
    expect(await resultOf(answer(bot, callback_query_id, { text: '👋'.repeat(200) })())).toBe(true);
    await seen.refused(answer(bot, callback_query_id), 400, tooOld);

    await seen.refused(
      () => service.app(user, 'POST', path, { data: 'b' }),
      400,
      'Bad Request: button not found',
    );
    await seen.refused(
      () => service.app(user, 'POST', path, {}),
      400,
      'Bad Request: parameter "data" is required',
    );
    const nowhere = `/api/chats/${bot.id}/messages/1000000/callback`;
    await seen.refused(
      () => service.app(user, 'POST', nowhere, { data: 'a' }),
      404,
      'Not Found: message not found',
    );
  });
});
