import { describe, expect, test } from 'vitest';
import { packMessage, unpackMessage } from '../../src/store/core/codec.js';
import { directChat, makeKeys } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { moveLastEdit } from '../support/store.js';
import type { Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';

const keys = makeKeys(64);
const hour = 3_600_000;
const notModified =
  'Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a ' +
  'current content and reply markup of the message';
const tooOften = 'Too Many Requests: retry after 1';
const cantEdit = "Bad Request: message can't be edited";

let service: Service;
let seen: Watch;
let user: TestUser;
let stranger: TestUser;
let bot: TestBot;
let outsider: TestBot;
let group: number;

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  user = await service.newUser('ann');
  stranger = await service.newUser('bob');
  bot = await service.newBot(user, 'texts');
  outsider = await service.newBot(user, 'outsider');
  await service.openChat(user, bot);
  group = await service.newGroup(user, 'Team', [bot]);
});

const call =
  (method: string, params: object, front = 0) =>
  () =>
    service.bot(bot, method, { ...params }, front);
const send = (params: object = {}) =>
  resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'x', ...params }));

describe('chats', () => {
  test('methods refuse unknown chats, chats of other bots, and chats that the bot is not in', async () => {
    const missing = 'Bad Request: chat not found';
    const outside = 'Forbidden: bot is not a member of the group chat';
    const initiate = "Forbidden: bot can't initiate conversation with a user";
    const methods = { sendMessage: { text: 'x' }, sendChatAction: { action: 'typing' }, getChat: {} };
    await seen.unchanged(async () => {
      for (const [method, params] of Object.entries(methods)) {
        for (const chat_id of [999_999_999, -999_999_999, outsider.id, bot.id])
          await seen.refused(call(method, { chat_id, ...params }), 400, missing);
        const from = () => service.bot(outsider, method, { chat_id: group, ...params });
        await seen.refused(from, 403, outside);
      }
      await seen.refused(call('sendMessage', { chat_id: stranger.id, text: 'x' }), 403, initiate);
      await seen.refused(call('sendChatAction', { chat_id: stranger.id, action: 'typing' }), 403, initiate);
      await seen.refused(call('getChat', { chat_id: stranger.id }), 400, missing);
      await seen.refused(call('getChat', {}), 400, 'Bad Request: chat_id is empty');
      const action = 'Bad Request: wrong parameter action in request';
      await seen.refused(call('sendChatAction', { chat_id: user.id, action: 'dancing' }), 400, action);
      await seen.refused(call('sendChatAction', { chat_id: user.id }), 400, action);
    });
  });

  test('sendChatAction accepts the action names of older Bot API versions', async () => {
    for (const action of ['record_audio', 'upload_audio'])
      expect(await resultOf(call('sendChatAction', { chat_id: user.id, action })())).toBe(true);
  });

  test('getChat returns the fields that libraries with static types require', async () => {
    expect(await resultOf(call('getChat', { chat_id: user.id }, 1)())).toEqual({
      id: user.id,
      type: 'private',
      first_name: 'ann',
      username: user.username,
      accent_color_id: user.id % 7,
      max_reaction_count: 0,
      accepted_gift_types: {
        unlimited_gifts: false,
        limited_gifts: false,
        unique_gifts: false,
        premium_subscription: false,
        gifts_from_channels: false,
      },
    });
    const shown = await resultOf(call('getChat', { chat_id: String(group) }, 1)());
    expect(shown).toMatchObject({ id: group, type: 'group', title: 'Team', member_count: 2 });
    expect(shown.permissions).toMatchObject({ can_pin_messages: false });
  });

  test('in a group, methods refuse a bot that was removed from the group', async () => {
    const team = await service.newGroup(user, 'Short', [bot]);
    const { message_id } = await send({ chat_id: team });
    await resultOf(service.app(user, 'DELETE', `/api/chats/${team}/members/${bot.id}`));
    const outside = 'Forbidden: bot is not a member of the group chat';
    await seen.unchanged(async () => {
      await seen.refused(call('sendMessage', { chat_id: team, text: 'x' }, 1), 403, outside);
      await seen.refused(call('editMessageText', { chat_id: team, message_id, text: 'y' }, 1), 403, outside);
      await seen.refused(call('deleteMessage', { chat_id: team, message_id }, 1), 403, outside);
      await seen.refused(call('getChat', { chat_id: team }, 1), 403, outside);
    });
  });
});

describe('texts are checked', () => {
  const empty = 'Bad Request: message text is empty';
  const refused = (params: object, text: string) =>
    seen.refused(call('sendMessage', { chat_id: user.id, text: 'x', ...params }), 400, text);

  test('CRLF in a text is stored as LF', async () => {
    const { message_id } = await send({ chat_id: user.id, text: 'one\r\ntwo' });
    const [shown] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
    expect(shown).toMatchObject({ message_id, text: 'one\ntwo' });
  });

  test('a text has 1 to 4096 code points after entities are parsed', async () => {
    await seen.unchanged(async () => {
      for (const text of ['', ' \n\t ', '\u200b\u2060', '<b></b>'])
        await refused({ text, parse_mode: 'HTML' }, empty);
      await refused({ text: 'x'.repeat(4097) }, 'Bad Request: message is too long');
      await refused({ text: '👋'.repeat(4097) }, 'Bad Request: message is too long');
      await refused(
        { text: `<b>${'x'.repeat(4097)}</b>`, parse_mode: 'HTML' },
        'Bad Request: message is too long',
      );
    });
    expect((await send({ text: '👋'.repeat(4096) })).text).toBe('👋'.repeat(4096));
    const bold = await send({ text: `<b>${'&lt;'.repeat(4096)}</b>`, parse_mode: 'HTML' });
    expect([bold.text, bold.entities]).toEqual([
      '<'.repeat(4096),
      [{ type: 'bold', offset: 0, length: 4096 }],
    ]);
  });

  test('entities that cannot be parsed are refused, and the error contains the byte offset and the reason', async () => {
    const unparsable = (reason: string) => `Bad Request: can't parse entities: ${reason}`;
    await seen.unchanged(async () => {
      await refused({ parse_mode: 'BBCode' }, 'Bad Request: unsupported parse_mode');
      await refused(
        { text: 'é<b>x', parse_mode: 'HTML' },
        unparsable('Can\'t find end tag corresponding to start tag "b"'),
      );
      await refused(
        { text: 'é<x>y', parse_mode: 'HTML' },
        unparsable('Unsupported start tag "x" at byte offset 2'),
      );
      await refused(
        { text: 'é*x', parse_mode: 'MarkdownV2' },
        unparsable("Can't find end of Bold entity at byte offset 2"),
      );
      await refused(
        { text: '1.', parse_mode: 'MarkdownV2' },
        unparsable("Character '.' is reserved and must be escaped with the preceding '\\'"),
      );
      await refused(
        { text: '*x', parse_mode: 'Markdown' },
        unparsable("Can't find end of the entity starting at byte offset 0"),
      );
      await refused(
        { entities: [{ type: 'nonsense', offset: 0, length: 1 }] },
        unparsable('Unsupported type specified'),
      );
    });
  });

  test('invalid keyboards are refused, and the largest keyboard is accepted', async () => {
    const keyboard = (...buttons: object[]) => ({ reply_markup: { inline_keyboard: [buttons] } });
    const ok = { text: 'b', callback_data: 'd' };
    const shape = "Bad Request: can't parse reply keyboard markup JSON object";
    await seen.unchanged(async () => {
      await refused(keyboard({ text: 'b', callback_data: '' }), 'Bad Request: BUTTON_DATA_INVALID');
      await refused(
        keyboard({ text: 'b', callback_data: 'x'.repeat(65) }),
        'Bad Request: BUTTON_DATA_INVALID',
      );
      await refused(
        keyboard({ text: 'b', callback_data: 'é'.repeat(33) }),
        'Bad Request: BUTTON_DATA_INVALID',
      );
      await refused(
        keyboard({ text: '', callback_data: 'x' }),
        'Bad Request: inline keyboard button text is empty',
      );
      await refused(keyboard({ text: 'b' }), 'Bad Request: BUTTON_TYPE_INVALID');
      await refused(keyboard(...Array(101).fill(ok)), 'Bad Request: reply markup is too long');
      for (const reply_markup of [
        '{',
        'x',
        '7',
        { inline_keyboard: {} },
        { inline_keyboard: [ok] },
        keyboard({ text: 7 }).reply_markup,
      ])
        await refused({ reply_markup }, shape);
    });
    const full = { inline_keyboard: Array(100).fill([{ text: 'b', callback_data: 'é'.repeat(32) }]) };
    expect((await send({ reply_markup: full })).reply_markup).toEqual(full);
    // Calendar keyboards of bots have buttons with blank texts between the days.
    const blank = keyboard({ text: ' ', callback_data: 'ignore' });
    expect(await send(blank)).toMatchObject(blank);
  });

  test.each([
    ['message_thread_id', 7],
    ['business_connection_id', 'b'],
    ['message_effect_id', '5104841245755180586'],
    ['direct_messages_topic_id', '3'],
  ])('a call with %s is refused, because Petrel does not have that feature', async (name, value) => {
    await refused({ [name]: value }, `Bad Request: parameter "${name}" is not supported`);
    for (const absent of [null, '', 0, '0', 'null'])
      expect(await send({ [name]: absent })).not.toHaveProperty(name);
  });

  test('a reply to a missing message is refused, unless allow_sending_without_reply is set', async () => {
    const gone = await send();
    await resultOf(call('deleteMessage', { chat_id: user.id, message_id: gone.message_id })());
    const missing = 'Bad Request: message to be replied not found';
    for (const message_id of [gone.message_id, 1_000_000]) {
      await refused({ reply_parameters: { message_id } }, missing);
      await refused({ reply_to_message_id: message_id }, missing);
      const leave = { message_id, allow_sending_without_reply: true };
      const sent = await send({ reply_parameters: leave });
      expect(sent.reply_to_message).toBeUndefined();
      expect((await send({ reply_to_message_id: message_id, allow_sending_without_reply: true })).text).toBe(
        'x',
      );
    }
    const target = await send({ text: 'target' });
    const reply = await send({ reply_to_message_id: target.message_id });
    expect(reply.reply_to_message).toMatchObject({ message_id: target.message_id, text: 'target' });
  });
});

describe('the checks of an edit run in a fixed order', () => {
  const edit = (message_id: number, params: object = {}, front = 0) =>
    call('editMessageText', { chat_id: user.id, message_id, text: 'y', ...params }, front);

  async function age(message_id: number, seconds: number): Promise<void> {
    const key = keys.message(directChat(bot.id, user.id), message_id);
    const bytes = await seen.redis.getBuffer(key);
    const record = unpackMessage(bytes as Buffer);
    await seen.redis.set(key, packMessage({ ...record, date: record.date - seconds }));
  }

  /**
   * Sets the time of the last edit to `ms`. A second edit is refused only within a second of the last edit, and
   * comparing the stores may take longer.
   */
  const editedAt = (message_id: number, ms: number) =>
    moveLastEdit({ keys, connection: { client: seen.redis } }, directChat(bot.id, user.id), message_id, ms);

  test('edit check 1: an unknown or deleted message is refused before all later checks', async () => {
    const { message_id } = await send();
    await resultOf(call('deleteMessage', { chat_id: user.id, message_id })());
    await seen.unchanged(async () => {
      for (const id of [message_id, 0, 1_000_000]) {
        await seen.refused(edit(id), 400, 'Bad Request: message to edit not found');
        await seen.refused(
          call('editMessageReplyMarkup', { chat_id: user.id, message_id: id }),
          400,
          'Bad Request: message to edit not found',
        );
        await seen.refused(
          call('deleteMessage', { chat_id: user.id, message_id: id }),
          400,
          'Bad Request: message to delete not found',
        );
      }
    });
  });

  test('edit check 2: an edit by anyone but the sender is refused, even if the text stays the same', async () => {
    const theirs = await resultOf(
      service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text: 'mine' }),
    );
    await seen.refused(edit(theirs.message_id), 400, cantEdit);
    await seen.refused(edit(theirs.message_id, { text: 'mine' }), 400, cantEdit);
    const own = await send();
    const path = `/api/chats/${bot.id}/messages/${own.message_id}`;
    await seen.refused(() => service.app(user, 'PATCH', path, { text: 'y' }), 400, cantEdit);
    const inGroup = await resultOf(
      service.app(user, 'POST', `/api/chats/${group}/messages`, { text: 'mine' }),
    );
    await seen.refused(
      call('editMessageText', { chat_id: group, message_id: inGroup.message_id, text: 'y' }),
      400,
      cantEdit,
    );
    await seen.refused(
      call('deleteMessage', { chat_id: group, message_id: inGroup.message_id }),
      400,
      "Bad Request: message can't be deleted",
    );
  });

  test('edit check 3: a message older than 48 hours is refused before the later checks', async () => {
    const young = await send();
    await age(young.message_id, 48 * 3_600 - 20);
    await resultOf(edit(young.message_id)());
    const old = await send();
    await age(old.message_id, 48 * 3_600 + 1);
    await seen.unchanged(async () => {
      await seen.refused(edit(old.message_id), 400, cantEdit);
      await seen.refused(edit(old.message_id, { text: 'x' }), 400, cantEdit);
      await seen.refused(
        call('editMessageReplyMarkup', { chat_id: user.id, message_id: old.message_id }),
        400,
        cantEdit,
      );
      await seen.refused(
        call('deleteMessage', { chat_id: user.id, message_id: old.message_id }),
        400,
        "Bad Request: message can't be deleted",
      );
    });
    // This edit fails two checks: the message is too old, and it was edited a moment ago. The age is checked first.
    const edited = await send();
    await resultOf(edit(edited.message_id)());
    await age(edited.message_id, 48 * 3_600 + 1);
    await seen.refused(edit(edited.message_id, { text: 'z' }, 1), 400, cantEdit);
  });

  test('edit check 5: an edit that changes nothing is refused and does not count against the edit rate', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] };
    const { message_id } = await send({ reply_markup });
    const markup = (given?: object) =>
      call('editMessageReplyMarkup', {
        chat_id: user.id,
        message_id,
        ...(given ? { reply_markup: given } : {}),
      });
    await seen.refused(edit(message_id, { text: 'x', reply_markup }), 400, notModified);
    await seen.refused(markup(reply_markup), 400, notModified);
    const edited = await resultOf(edit(message_id, { text: 'y' }, 1)());
    expect(edited).toMatchObject({ message_id, text: 'y', edit_date: expect.any(Number) });
    expect(edited.reply_markup).toBeUndefined();
    await seen.refused(edit(message_id, { text: 'y' }), 400, notModified);
    await seen.refused(markup(), 400, notModified);
  });

  test('edit check 6: a message that was edited less than 1 s ago cannot be edited, on any node and by any kind of edit', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] };
    const { message_id } = await send();
    await resultOf(edit(message_id)());
    await editedAt(message_id, Date.now() + hour);
    await seen.refused(edit(message_id, { text: 'z' }, 1), 429, tooOften);
    await seen.refused(
      call('editMessageReplyMarkup', { chat_id: user.id, message_id, reply_markup }),
      429,
      tooOften,
    );
    const other = await send();
    await resultOf(edit(other.message_id)());
    await editedAt(message_id, Date.now() - limits.edit_interval_ms_min);
    const marked = await resultOf(
      call('editMessageReplyMarkup', { chat_id: user.id, message_id, reply_markup }, 1)(),
    );
    expect(marked).toMatchObject({ text: 'y', reply_markup });
    await editedAt(message_id, Date.now() + hour);
    await seen.refused(edit(message_id, { text: 'z' }), 429, tooOften);
  });

  test('an edit with an invalid text is refused before the message is checked, and changes nothing', async () => {
    const { message_id } = await send();
    await seen.unchanged(async () => {
      await seen.refused(edit(message_id, { text: ' ' }), 400, 'Bad Request: message text is empty');
      await seen.refused(
        edit(message_id, { text: 'x'.repeat(4097) }),
        400,
        'Bad Request: message is too long',
      );
      await seen.refused(edit(message_id, { parse_mode: 'x' }), 400, 'Bad Request: unsupported parse_mode');
      await seen.refused(
        call('editMessageText', { chat_id: 999_999, message_id, text: 'y' }),
        400,
        'Bad Request: chat not found',
      );
    });
  });

  test('an administrator needs the right to edit messages of others', async () => {
    const team = await service.newGroup(user, 'Edited', [bot]);
    const rank = (rights: object) =>
      resultOf(
        service.app(user, 'PUT', `/api/chats/${team}/members/${bot.id}`, { status: 'administrator', rights }),
      );
    const { message_id } = await resultOf(
      service.app(user, 'POST', `/api/chats/${team}/messages`, { text: 'mine' }),
    );
    const attempt = call('editMessageText', { chat_id: team, message_id, text: 'ours' }, 1);
    await rank({ can_pin_messages: true });
    await seen.refused(attempt, 400, cantEdit);
    await rank({ can_edit_messages: true });
    expect(await resultOf(attempt())).toMatchObject({ message_id, text: 'ours', from: { id: user.id } });
  });
});
