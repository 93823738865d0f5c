import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { firstWithin } from '../support/times.js';
import { eventually } from './event_source.js';
import { badRequest, type Json, type Place, type Step } from './step.js';

async function keyboards({ service, user, made, bot, app, say, answered, received, shown }: Place) {
  const asked = await say(made.id, '/menu');
  const menu = await answered(made.id, asked.message_id);
  expect(menu.reply_markup).toEqual({
    inline_keyboard: [[{ text: 'A', callback_data: 'pick:a' }], [{ text: 'B', callback_data: 'pick:b' }]],
  });
  const path = `/api/chats/${made.id}/messages/${menu.message_id}/callback`;
  const { callback_query_id } = await app('POST', path, { data: 'pick:b' });
  const query = await received('callback_query', ({ id }) => id === callback_query_id);
  expect(query).toMatchObject({
    from: { id: user.id, is_bot: false },
    message: { message_id: menu.message_id, text: 'pick one' },
    data: 'pick:b',
  });
  // The person pressed "b". The bot answered the press twice, and edited the menu. The second answer was refused with
  // this error.
  const late = badRequest(
    'answerCallbackQuery',
    'query is too old and response timeout expired or query ID is invalid',
  );
  await eventually(async () =>
    expect(await shown(made.id, menu.message_id)).toMatchObject({ text: 'picked b' }),
  );
  expect((await shown(made.id, menu.message_id)).reply_markup).toBeUndefined();
  expect(bot.lateAnswers.at(-1)).toEqual(late);
  expect(await bot.refusal(bot.calls.answerCallbackQuery('12345678', 'made up'))).toEqual(late);

  // The bot does not answer this button press before the press expires. A later answer is then refused.
  const { message_id } = await bot.calls.sendMessage(user.id, 'slow', {
    reply_markup: { inline_keyboard: [[{ text: 'x', callback_data: 'slow' }]] },
  });
  const slow = await app('POST', `/api/chats/${made.id}/messages/${message_id}/callback`, { data: 'slow' });
  await received('callback_query', ({ id }) => id === slow.callback_query_id);
  let expired = 0;
  for (const redis of openMasters(service.redis)) {
    for (const key of await redis.keys(`*:callback_query:${slow.callback_query_id}`))
      expired += await redis.pexpire(key, 1);
    redis.disconnect();
  }
  expect(expired).toBe(1);
  await sleep(5);
  expect(await bot.refusal(bot.calls.answerCallbackQuery(slow.callback_query_id, 'late'))).toEqual(late);
}

async function commands({ made, other, bot, group, user, app, say, answered, received }: Place) {
  const { setMyCommands, getMyCommands, deleteMyCommands } = bot.calls;
  const named = (...names: string[]) => names.map((command) => ({ command, description: `Does ${command}` }));
  const scopes = [
    {},
    { language_code: 'ru' },
    { scope: { type: 'all_group_chats' } },
    { scope: { type: 'all_group_chats' }, language_code: 'ru' },
    { scope: { type: 'chat', chat_id: user.id } },
    { scope: { type: 'chat_member', chat_id: group, user_id: user.id } },
  ];
  for (const [i, extra] of scopes.entries()) {
    expect(await getMyCommands(extra)).toEqual([]);
    expect(await setMyCommands(named('say', `only_${i}`), extra)).toBe(true);
  }
  for (const [i, extra] of scopes.entries())
    expect(await getMyCommands(extra)).toEqual(named('say', `only_${i}`));
  expect(await deleteMyCommands(scopes[3])).toBe(true);
  expect(await getMyCommands(scopes[3])).toEqual([]);
  expect(await getMyCommands(scopes[2])).toEqual(named('say', 'only_2'));
  expect((await app('GET', `/api/bots/${made.username}`)).commands).toEqual(named('say', 'only_4'));
  expect(await bot.refusal(setMyCommands(named('Not A Command')))).toEqual(
    badRequest('setMyCommands', 'BOT_COMMAND_INVALID'),
  );

  // The service marks commands with entities. In a group, the service also marks commands that name the bot.
  const first = await say(group, `/say@${made.username} hello`);
  expect(
    (
      await received(
        'message',
        ({ message_id, chat }) => chat.id === group && message_id === first.message_id,
      )
    ).entities,
  ).toEqual([{ type: 'bot_command', offset: 0, length: 5 + made.username.length }]);
  expect(await answered(group, first.message_id)).toMatchObject({
    text: 'hello',
    reply_to_message: { message_id: first.message_id, text: `/say@${made.username} hello` },
  });
  const foreign = await say(group, `/say@${other.username} not for us`);
  await say(group, 'say nothing of /say this');
  const last = await say(group, '/say last');
  expect(await answered(group, last.message_id)).toMatchObject({ text: 'last' });
  const { items: since } = await app('GET', `/api/chats/${group}/messages?limit=20`);
  const own = since.filter((m: Json) => m.message_id > foreign.message_id && m.from.id === made.id);
  expect(own.map(({ text }: Json) => text)).toEqual(['last']);
}

async function edits({ user, made, bot, shown }: Place) {
  const { calls, refusal } = bot;
  const keyboard = { inline_keyboard: [[{ text: 'x', callback_data: 'y' }]] };
  const send = () =>
    calls.sendMessage(user.id, '<b>bold</b> &amp; <i>slanted</i>', {
      parse_mode: 'HTML',
      reply_markup: keyboard,
    });
  expect(await shown(made.id, (await send()).message_id)).toMatchObject({
    text: 'bold & slanted',
    entities: [
      { type: 'bold', offset: 0, length: 4 },
      { type: 'italic', offset: 7, length: 7 },
    ],
  });
  const { message_id, edited, tooSoon } = await firstWithin(1_000, async () => {
    const sent = await send();
    const changed = await calls.editMessageText(user.id, sent.message_id, '*👍* ||hidden||\\.', {
      parse_mode: 'MarkdownV2',
    });
    const refused = await refusal(calls.editMessageText(user.id, sent.message_id, 'too soon'));
    return { message_id: sent.message_id, edited: changed, tooSoon: refused };
  });
  expect(edited).toMatchObject({
    message_id,
    text: '👍 hidden.',
    edit_date: expect.any(Number),
    entities: [
      { type: 'bold', offset: 0, length: 2 },
      { type: 'spoiler', offset: 3, length: 6 },
    ],
  });
  expect(edited.reply_markup).toBeUndefined();
  // An edit with the same text changes nothing and does not count against the edit rate.
  const same = await refusal(
    calls.editMessageText(user.id, message_id, '*👍* ||hidden||\\.', { parse_mode: 'MarkdownV2' }),
  );
  expect(same).toMatchObject({ error_code: 400, method: 'editMessageText' });
  expect(same.description).toMatch(/^Bad Request: message is not modified: /);
  const unclosed = calls.editMessageText(user.id, message_id, 'a *b', { parse_mode: 'MarkdownV2' });
  expect((await refusal(unclosed)).description).toMatch(/^Bad Request: can't parse entities: /);
  // The edit was refused because it came less than 1 s after another edit. The error says how many seconds the bot must
  // wait.
  expect(tooSoon).toEqual({
    error_code: 429,
    description: 'Too Many Requests: retry after 1',
    method: 'editMessageText',
    retry_after: 1,
  });
  const before = bot.waits.length;
  const marked = await bot.patiently((patient) =>
    patient.editMessageReplyMarkup(user.id, message_id, keyboard.inline_keyboard),
  );
  expect(marked).toMatchObject({ text: '👍 hidden.', reply_markup: keyboard });
  // Usually the bot waits one second after its previous edit. On a busy machine, this second may already have passed.
  expect([[1], []]).toContainEqual(bot.waits.slice(before));
  expect(await refusal(calls.editMessageText(user.id, 999_999, 'x'))).toEqual(
    badRequest('editMessageText', 'message to edit not found'),
  );
}

async function streaming({ made, bot, say, answered }: Place) {
  const before = bot.waits.length;
  const started = performance.now();
  const { message_id } = await say(made.id, '/stream an answer that grows');
  const grown = await answered(made.id, message_id, ({ text }) => text === 'an answer that grows');
  expect(grown.edit_date).toBeGreaterThanOrEqual(grown.date);
  // The bot edited the message three times. Usually the rate limit for edits delays the second and the third edit. On a
  // very busy machine, these edits may be slow enough by themselves.
  const waits = bot.waits.slice(before);
  expect([[], [1], [1, 1]]).toContainEqual(waits);
  expect(performance.now() - started).toBeGreaterThan(1_900);
}

async function replies({ user, made, bot, say, answered, shown }: Place) {
  const { calls, refusal } = bot;
  const asked = await say(made.id, '/say word');
  expect(await answered(made.id, asked.message_id)).toMatchObject({
    text: 'word',
    reply_to_message: { message_id: asked.message_id, from: { id: user.id } },
  });
  const gone = { reply_parameters: { message_id: 999_999 } };
  expect(await refusal(calls.sendMessage(user.id, 'x', gone))).toEqual(
    badRequest('sendMessage', 'message to be replied not found'),
  );
  const anyway = { reply_parameters: { message_id: 999_999, allow_sending_without_reply: true } };
  const sent = await calls.sendMessage(user.id, 'all the same', anyway);
  expect(sent.reply_to_message).toBeUndefined();
  expect(await shown(made.id, sent.message_id)).toMatchObject({ text: 'all the same' });
}

const sentBy = async ({ bot, user }: Place, ...texts: string[]): Promise<number[]> => {
  const ids: number[] = [];
  for (const text of texts) ids.push((await bot.calls.sendMessage(user.id, text)).message_id);
  return ids;
};

async function deletions(place: Place) {
  const { user, made, bot, shown } = place;
  const [a, b, c, d] = (await sentBy(place, 'a', 'b', 'c', 'd')) as [number, number, number, number];
  expect(await bot.calls.deleteMessage(user.id, a)).toBe(true);
  expect(await bot.calls.deleteMessages(user.id, [b, a, c])).toBe(true);
  for (const id of [a, b, c]) await expect(shown(made.id, id)).rejects.toThrow('not shown');
  expect(await shown(made.id, d)).toMatchObject({ text: 'd' });
  expect(await bot.refusal(bot.calls.deleteMessage(user.id, a))).toEqual(
    badRequest('deleteMessage', 'message to delete not found'),
  );
  expect(await bot.refusal(bot.calls.deleteMessages(user.id, []))).toEqual(
    badRequest('deleteMessages', 'message identifiers are not specified'),
  );
}

async function forwards(place: Place) {
  const { user, made, group, bot, say, answered, shown } = place;
  const { calls, refusal } = bot;
  const said = await say(made.id, '/again');
  const again = await answered(made.id, said.message_id);
  expect(again).toMatchObject({
    text: '/again',
    forward_origin: { type: 'user', sender_user: { id: user.id } },
  });
  const asked = await say(made.id, '/twin');
  const twin = await answered(made.id, asked.message_id);
  expect(twin).toMatchObject({ text: '/twin', from: { id: made.id } });
  expect(twin.forward_origin).toBeUndefined();

  const [one, two] = (await sentBy(place, 'one', 'two')) as [number, number];
  expect(await calls.forwardMessage(group, user.id, one)).toMatchObject({
    text: 'one',
    chat: { id: group },
    forward_origin: { type: 'user', sender_user: { id: made.id, is_bot: true }, date: expect.any(Number) },
    forward_from: { id: made.id },
  });
  const batch = await calls.forwardMessages(group, user.id, [two, 999_999, one]);
  expect(batch).toEqual([{ message_id: expect.any(Number) }, { message_id: expect.any(Number) }]);
  expect(await shown(group, batch[0].message_id)).toMatchObject({ text: 'two' });
  expect(await shown(group, batch[1].message_id)).toMatchObject({ text: 'one' });
  const keyboard = { inline_keyboard: [[{ text: 'x', callback_data: 'y' }]] };
  const copy = await calls.copyMessage(group, user.id, one, { reply_markup: keyboard });
  expect(copy).toEqual({ message_id: expect.any(Number) });
  expect(await shown(group, copy.message_id)).toMatchObject({ text: 'one', reply_markup: keyboard });
  const copies = await calls.copyMessages(group, user.id, [one, two]);
  expect((await shown(group, copies[1].message_id)).forward_origin).toBeUndefined();

  const kept = await calls.sendMessage(user.id, 'kept', { protect_content: true });
  expect(kept.has_protected_content).toBe(true);
  const id = kept.message_id;
  const cant = (method: string, done: string) =>
    badRequest(method, `message has protected content and can't be ${done}`);
  expect(await refusal(calls.forwardMessage(group, user.id, id))).toEqual(
    cant('forwardMessage', 'forwarded'),
  );
  expect(await refusal(calls.forwardMessages(group, user.id, [one, id]))).toEqual(
    cant('forwardMessages', 'forwarded'),
  );
  expect(await refusal(calls.copyMessage(group, user.id, id))).toEqual(cant('copyMessage', 'copied'));
  expect(await refusal(calls.copyMessages(group, user.id, [id]))).toEqual(cant('copyMessages', 'copied'));
  const shut = await calls.forwardMessage(group, user.id, one, { protect_content: true });
  expect(await refusal(calls.forwardMessage(user.id, group, shut.message_id))).toEqual(
    cant('forwardMessage', 'forwarded'),
  );
}

async function pins(place: Place) {
  const { user, made, group, bot, app, say, received } = place;
  const { calls, refusal } = bot;
  const kept = await say(made.id, '/keep');
  expect(
    await received('message', ({ pinned_message }) => pinned_message?.message_id === kept.message_id),
  ).toMatchObject({ from: { id: made.id }, chat: { id: user.id }, pinned_message: { text: '/keep' } });
  const [a, b] = (await sentBy(place, 'a', 'b')) as [number, number];
  expect(await calls.pinChatMessage(user.id, a, { disable_notification: true })).toBe(true);
  expect((await calls.getChat(user.id)).pinned_message).toMatchObject({ message_id: a, text: 'a' });
  expect(await refusal(calls.unpinChatMessage(user.id, b))).toEqual(
    badRequest('unpinChatMessage', 'message to unpin not found'),
  );
  expect(await calls.unpinChatMessage(user.id, a)).toBe(true);
  expect((await calls.getChat(user.id)).pinned_message).toBeUndefined();
  expect(await calls.pinChatMessage(user.id, b)).toBe(true);
  expect(await calls.unpinChatMessage(user.id)).toBe(true);
  expect(await calls.pinChatMessage(user.id, a)).toBe(true);
  expect(await calls.unpinAllChatMessages(user.id)).toBe(true);
  expect((await calls.getChat(user.id)).pinned_message).toBeUndefined();
  const { message_id } = await say(group, 'pin me');
  expect(await refusal(calls.pinChatMessage(group, message_id))).toEqual(
    badRequest('pinChatMessage', 'not enough rights to manage pinned messages in the chat'),
  );
  await app('POST', `/api/chats/${group}/pin`, { message_id });
  expect(
    await received(
      'message',
      ({ chat, pinned_message }) => chat.id === group && pinned_message !== undefined,
    ),
  ).toMatchObject({ from: { id: user.id }, pinned_message: { message_id, text: 'pin me' } });
}

export const messageSteps: readonly Step[] = [
  {
    name: 'a press of an inline button is answered and edits the message, and late answers are refused',
    run: keyboards,
  },
  { name: 'a bot sets commands by scope and language, and recognises them in groups', run: commands },
  { name: 'a bot edits text in both markups, and invalid edits are refused', run: edits },
  { name: 'a streamed answer waits after each 429', run: streaming },
  { name: 'a bot replies to messages', run: replies },
  { name: 'a bot deletes single messages and batches', run: deletions },
  { name: 'a bot forwards and copies single messages and batches, but not protected content', run: forwards },
  { name: 'a bot pins and unpins messages', run: pins },
];
