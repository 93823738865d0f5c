/** Tests edits with `coalesce` (decision 0066). */
import { Bot } from 'grammy';
import type { Redis } from 'ioredis';
import { request } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { unpackMessage } from '../../src/store/core/codec.js';
import { openMasters } from '../support/cluster.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { firstWithin } from '../support/times.js';
import { onWatchedService } from './texts_service.js';

let service: Service;
let masters: Redis[];
let user: TestUser;
let bot: TestBot;
let other: TestBot;

/** The maximum delay of an edit on a busy machine, in ms. */
const late_ms_max = 4_000;
const patience = { interval: 50 };

// Without a flusher, the journal keeps every stored version of a message.
onWatchedService(async (watched) => {
  ({ service } = watched);
  masters = openMasters(service.redis);
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'writer');
  other = await service.newBot(user, 'listener');
  await service.openChat(user, bot);
});
afterAll(() => {
  for (const client of masters ?? []) client.disconnect();
});

const call = (method: string, params: object, front = 0) => service.bot(bot, method, { ...params }, front);
const send = async (chat_id: number, more: object = {}): Promise<number> =>
  (await resultOf(call('sendMessage', { chat_id, text: 'start', ...more }))).message_id;
const edit = (chat_id: number, message_id: number, text: string, more: object = {}, front = 0) =>
  call('editMessageText', { chat_id, message_id, text, coalesce: true, ...more }, front);

/** Every stored version of a message of the bot, oldest first. */
async function versionsOf(chat_id: number, id: number) {
  const entity = `msg:${chat_id > 0 ? `${bot.id}.${chat_id}` : chat_id}:${id}`;
  const found = [];
  for (const client of masters)
    for (const key of await client.keys('*}:journal'))
      for (const [, [, name, , image]] of await client.xrangeBuffer(key, '-', '+'))
        if (String(name) === entity) found.push(unpackMessage(image as Buffer));
  return found.sort((a, b) => a.version - b.version);
}
const textsOf = async (chat_id: number, id: number) =>
  (await versionsOf(chat_id, id)).map(({ content }) => content.text);

/** Counts pending edits in all partitions. */
async function pendingCount(): Promise<number> {
  let count = 0;
  for (const client of masters)
    for (const key of await client.keys('*}:edits_due')) count += await client.zcard(key);
  return count;
}
const nothingPending = () => expect.poll(pendingCount, patience).toBe(0);

async function expectOneASecond(chat_id: number, id: number): Promise<void> {
  const times = (await versionsOf(chat_id, id)).slice(1).map(({ editedAt }) => editedAt);
  for (const [i, at] of times.slice(1).entries()) {
    expect(at - (times[i] as number)).toBeGreaterThanOrEqual(limits.edit_interval_ms_min);
    expect(at - (times[i] as number)).toBeLessThan(limits.edit_interval_ms_min + late_ms_max);
  }
}

test('edits on two fronts within two seconds are all accepted, one edit per second is stored, and the last text remains', async () => {
  const message_id = await send(user.id);
  const answers: Answer[] = [];
  const began = performance.now();
  for (let i = 0; i < 50 || performance.now() - began < 2_000; i++)
    answers.push(await edit(user.id, message_id, `text ${i}`, {}, i % 2));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  for (const [i, { body }] of answers.entries())
    expect(body.result).toMatchObject({ message_id, text: `text ${i}`, edit_date: expect.any(Number) });
  const last = `text ${answers.length - 1}`;
  await expect.poll(async () => (await textsOf(user.id, message_id)).at(-1), patience).toBe(last);
  await expectOneASecond(user.id, message_id);
  const versions = await versionsOf(user.id, message_id);
  // If an answer has no `edit_pending`, the edit was applied immediately.
  const atOnce = answers.filter(({ body }) => !('edit_pending' in body.result));
  expect(atOnce[0]).toBe(answers[0]);
  expect(atOnce.length).toBeLessThan(versions.length);
  const [shown] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
  expect(shown).toMatchObject({ message_id, text: last });
  expect('edit_pending' in shown).toBe(false);
  await nothingPending();
});

test('without `coalesce`, a message that was edited less than 1 s ago cannot be edited', async () => {
  for (const coalesce of [undefined, false]) {
    const second = await firstWithin(1_000, async () => {
      const message_id = await send(user.id);
      const change = (text: string) =>
        call('editMessageText', { chat_id: user.id, message_id, text, coalesce });
      await resultOf(change('a'));
      return change('b');
    });
    expect(second.body).toEqual({
      ...{ ok: false, error_code: 429, description: 'Too Many Requests: retry after 1' },
      parameters: { retry_after: 1 },
    });
  }
});

test('an unmodified grammY client can turn on coalescing of its edits with a request header', async () => {
  const message_id = await send(user.id);
  const fetchWithHeader: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set('X-Service-Coalesce', '1');
    return fetch(url, { ...init, headers });
  };
  const client = new Bot(bot.token, {
    client: { apiRoot: service.fronts[0].url, fetch: fetchWithHeader as never },
  });
  for (let i = 0; i < 10; i++)
    expect(await client.api.editMessageText(user.id, message_id, `part ${i}`)).toMatchObject({
      text: `part ${i}`,
    });
  await expect.poll(async () => (await textsOf(user.id, message_id)).at(-1), patience).toBe('part 9');
  await expectOneASecond(user.id, message_id);
  // The parameter `coalesce: false` turns off coalescing, even though the header turns it on.
  await nothingPending();
  await expect(
    Promise.all(
      ['x', 'y'].map((text) =>
        client.api.editMessageText(user.id, message_id, text, { coalesce: false } as never),
      ),
    ),
  ).rejects.toThrow('429');
});

test('if a front with a pending edit is killed, another node applies the edit', async () => {
  const { message_id, ...last } = await firstWithin(1_000, async () => {
    const id = await send(user.id);
    await resultOf(edit(user.id, id, 'first', {}, 1));
    return resultOf(edit(user.id, id, 'last', {}, 1));
  });
  expect(last).toMatchObject({ edit_pending: true });
  // Stops the front immediately, which also stops the timers of pending edits.
  service.fronts[1]?.pause();
  await service.fronts[1]?.kill();
  await expect.poll(() => textsOf(user.id, message_id), patience).toEqual(['start', 'first', 'last']);
  await expectOneASecond(user.id, message_id);
  await service.fronts[1]?.start();
});

test('edits in groups and channels are coalesced, and other bots in the channel get updates only for stored edits', async () => {
  const group = await service.newGroup(user, 'Team', [bot, other]);
  const { id: channel } = await resultOf(
    service.app(user, 'POST', '/api/chats', { type: 'channel', title: 'News' }),
  );
  for (const { id } of [bot, other])
    await resultOf(
      service.app(user, 'PUT', `/api/chats/${channel}/members/${id}`, {
        status: 'administrator',
        rights: { can_post_messages: true },
      }),
    );
  const stored: unknown[] = [];
  for (const chat of [group, channel]) {
    const message_id = await send(chat);
    for (let i = 0; i < 5; i++) await resultOf(edit(chat, message_id, `${i}`, {}, i % 2));
    await expect.poll(async () => (await textsOf(chat, message_id)).at(-1), patience).toBe('4');
    await expectOneASecond(chat, message_id);
    if (chat === channel) stored.push(...(await textsOf(chat, message_id)).slice(1));
  }
  const seen: string[] = [];
  await expect
    .poll(async () => {
      const updates = await resultOf(service.bot(other, 'getUpdates', {}));
      for (const { edited_channel_post: post } of updates) if (post) seen.push(post.text);
      const last = updates.at(-1)?.update_id;
      if (last) await resultOf(service.bot(other, 'getUpdates', { offset: last + 1 }));
      return seen;
    }, patience)
    .toEqual(stored);
});

test('a pending edit is dropped if its message is deleted or its bot leaves the group', async () => {
  const message_id = await send(user.id);
  await resultOf(edit(user.id, message_id, 'one'));
  await resultOf(edit(user.id, message_id, 'two'));
  await resultOf(call('deleteMessage', { chat_id: user.id, message_id }));
  expect((await edit(user.id, message_id, 'three')).body.description).toBe(
    'Bad Request: message to edit not found',
  );
  const group = await service.newGroup(user, 'Left', [bot]);
  const inGroup = await send(group);
  await resultOf(edit(group, inGroup, 'one'));
  await resultOf(edit(group, inGroup, 'two'));
  await resultOf(service.app(user, 'DELETE', `/api/chats/${group}/members/${bot.id}`));
  await nothingPending();
  expect((await versionsOf(user.id, message_id)).at(-1)?.kind).toBe(0);
});

test('a button press allows one immediate edit, which replaces the pending edit', async () => {
  const reply_markup = { inline_keyboard: [[{ text: 'go', callback_data: 'go' }]] };
  const changed = { inline_keyboard: [[{ text: 'done', callback_data: 'done' }]] };
  const press = (id: number) =>
    resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages/${id}/callback`, { data: 'go' }));
  const begin = async () => {
    const message_id = await send(user.id, { reply_markup });
    await resultOf(edit(user.id, message_id, 'one', { reply_markup }));
    await resultOf(edit(user.id, message_id, 'two', { reply_markup }));
    await press(message_id);
    return { chat_id: user.id, message_id };
  };
  const normal = await begin();
  await resultOf(call('editMessageText', { ...normal, text: 'normal' }));
  const again = await begin();
  const atOnce = await resultOf(edit(user.id, again.message_id, 'at once', { reply_markup }));
  expect('edit_pending' in atOnce).toBe(false);
  // An edit of the keyboard immediately stores the pending text and the new keyboard.
  const menu = await begin();
  expect(await resultOf(call('editMessageReplyMarkup', { ...menu, reply_markup: changed }))).toMatchObject({
    text: 'two',
    reply_markup: changed,
  });
  await nothingPending();
  const last = async (id: number) => (await versionsOf(user.id, id)).at(-1);
  expect(await last(normal.message_id)).toMatchObject({ content: { text: 'normal' }, markup: null });
  expect(await last(again.message_id)).toMatchObject({ content: { text: 'at once' }, markup: reply_markup });
  expect(await last(menu.message_id)).toMatchObject({ content: { text: 'two' }, markup: changed });
});

test('a refused edit gets the same error with coalescing as without', async () => {
  const message_id = await send(user.id);
  await resultOf(edit(user.id, message_id, 'one'));
  await resultOf(edit(user.id, message_id, 'two'));
  const descriptions = await Promise.all(
    [
      edit(user.id, message_id, 'two'),
      edit(user.id, message_id, '<b>x', { parse_mode: 'HTML' }),
      edit(user.id, message_id, 'x'.repeat(4_097)),
      edit(user.id, message_id + 1_000, 'x'),
    ].map(async (answer) => (await answer).body.description),
  );
  expect(descriptions).toEqual([
    expect.stringMatching(/^Bad Request: message is not modified/),
    expect.stringMatching(/^Bad Request: can't parse entities: /),
    'Bad Request: message is too long',
    'Bad Request: message to edit not found',
  ]);
  // A new text is compared with the pending text, not with the stored text. The bot can therefore change the message
  // back to the stored text.
  expect(await resultOf(edit(user.id, message_id, 'one'))).toMatchObject({ text: 'one' });
  await nothingPending();
  expect((await textsOf(user.id, message_id)).at(-1)).toBe('one');
});

test('a coalesced edit that is repeated with its idempotency key gets the first answer again and does not replace a later edit', async () => {
  const keyed = async (message_id: number, front: number) => {
    const url = `${service.fronts[front]?.url}/bot${bot.token}/editMessageText`;
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `edit ${message_id}` },
      body: JSON.stringify({ chat_id: user.id, message_id, text: 'keyed', coalesce: true }),
    });
    return [statusCode, await body.json()];
  };
  const { message_id, first } = await firstWithin(1_000, async () => {
    const id = await send(user.id);
    await resultOf(edit(user.id, id, 'one'));
    return { message_id: id, first: await keyed(id, 0) };
  });
  expect(first).toMatchObject([200, { result: { text: 'keyed', edit_pending: true } }]);
  await resultOf(edit(user.id, message_id, 'last'));
  expect(await keyed(message_id, 1)).toEqual(first);
  await nothingPending();
  expect((await textsOf(user.id, message_id)).at(-1)).toBe('last');
});
