/** Checks of text messages: sending, keyboards, edits, pins, forwards, copies and deletions. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.js';
import { type Check, expectLike, expectRefusal, expectTrue, type Session, show } from './check.js';
import { type Answer, Failed } from './client.js';
import { encodings, type Given } from './encodings.js';

const check = (proves: string, run: Check['run'], needs: Check['needs'] = ['chat']): Check => ({
  subject: 'messages',
  proves,
  needs,
  run,
});

/** The number of edits in a row. At least two of them are less than a second apart. */
const edits_max = 5;
const stored_s_max = 10;

const unknownMessage = 999_999_999;

const keyboard = (...buttons: readonly object[]) => ({ inline_keyboard: [buttons] });
const button = { text: 'Press', callback_data: 'pressed' };

async function sends(s: Session): Promise<void> {
  const text = 'é & + % = 😀 "quoted"\nsecond line';
  for (const encoding of encodings) {
    const sent = await s.result('sendMessage', { chat_id: s.chat, text }, { encoding });
    const expected = { text, chat: { id: s.chat }, date: Number.isInteger, message_id: Number.isInteger };
    expectLike(sent, expected, `the message sent as ${encoding}`);
  }
}

async function formats(s: Session): Promise<void> {
  const bold = [{ type: 'bold', offset: 2, length: 2 }];
  for (const given of [
    { text: '😀<b>ab</b>', parse_mode: 'HTML' },
    { text: '😀*ab*', parse_mode: 'MarkdownV2' },
    { text: '😀*ab*', parse_mode: 'Markdown' },
    { text: '😀ab', entities: bold },
  ])
    expectLike(
      await s.result('sendMessage', { chat_id: s.chat, ...given }),
      { text: '😀ab', entities: bold },
      show(given),
    );
  await s.refused(
    'sendMessage',
    { chat_id: s.chat, text: 'x', parse_mode: 'other' },
    'parse_mode_unsupported',
  );
  const { status, body } = await s.call('sendMessage', { chat_id: s.chat, text: '<b>x', parse_mode: 'HTML' });
  const isRefused = (text: unknown) => /^Bad Request: can't parse entities: ./.test(String(text));
  expectLike(
    { status, ...body },
    { status: 400, ok: false, error_code: 400, description: isRefused },
    'a tag without an end',
  );
}

async function lengths(s: Session): Promise<void> {
  const longest = 'я'.repeat(4_096);
  expectLike(await s.result('sendMessage', { chat_id: s.chat, text: longest }), { text: longest }, 'it');
  await s.refused('sendMessage', { chat_id: s.chat, text: `${longest}я` }, 'text_too_long');
  await s.refused('sendMessage', { chat_id: s.chat, text: ' \n' }, 'text_empty');
}

async function inlineKeyboards(s: Session): Promise<void> {
  const link = { text: 'Open', url: 'https://example.org/' };
  const reply_markup = keyboard(button, link);
  const { message_id, ...sent } = await s.result('sendMessage', { chat_id: s.chat, text: 'x', reply_markup });
  expectLike(sent, { reply_markup }, 'the message');
  const refused = (wrong: object, kind: ConstructorParameters<typeof ApiError>[0]) =>
    s.refused('sendMessage', { chat_id: s.chat, text: 'x', reply_markup: wrong }, kind);
  await refused(keyboard({ text: 'x', callback_data: 'x'.repeat(65) }), 'button_data_invalid');
  await refused(keyboard({ text: 'x' }), 'button_type_invalid');
  await refused(keyboard(...Array.from({ length: 101 }, () => button)), 'keyboard_too_large');
  const other = keyboard({ text: 'Other', callback_data: 'other' });
  const at = { chat_id: s.chat, message_id };
  const edited = await s.result('editMessageReplyMarkup', { ...at, reply_markup: other });
  expectLike(edited, { message_id, text: 'x', reply_markup: other, edit_date: Number.isInteger }, 'the edit');
}

async function replyKeyboards(s: Session): Promise<void> {
  for (const reply_markup of [
    { keyboard: [[{ text: 'Yes' }, 'No']], resize_keyboard: true },
    { force_reply: true, input_field_placeholder: 'Answer' },
    { remove_keyboard: true },
  ])
    await s.send('x', { reply_markup });
  const empty = { keyboard: [[{ text: '' }]] };
  await s.refused(
    'sendMessage',
    { chat_id: s.chat, text: 'x', reply_markup: empty },
    'reply_button_text_empty',
  );
}

async function replies(s: Session): Promise<void> {
  const message_id = await s.send('first');
  const to = { chat_id: s.chat, text: 'second' };
  const like = { reply_to_message: { message_id, text: 'first' } };
  expectLike(await s.result('sendMessage', { ...to, reply_parameters: { message_id } }), like, 'the reply');
  expectLike(await s.result('sendMessage', { ...to, reply_to_message_id: message_id }), like, 'the reply');
  const reply_parameters = { message_id: unknownMessage };
  await s.refused('sendMessage', { ...to, reply_parameters }, 'reply_not_found');
  const allowing = { ...reply_parameters, allow_sending_without_reply: true };
  const alone = await s.result('sendMessage', { ...to, reply_parameters: allowing });
  expectTrue(alone.reply_to_message === undefined, `the message replies to something: ${show(alone)}`);
}

/** Edits a message repeatedly. Returns the first answer that is an error. */
async function earlyEdit(s: Session, at: Given): Promise<Answer> {
  for (let i = 0; i < edits_max; i++) {
    const answer = await s.call('editMessageText', { ...at, text: `${i}` }, { once: true });
    if (answer.status !== 200) return answer;
  }
  throw new Failed(`${edits_max} edits one after another were all accepted`);
}

async function edits(s: Session): Promise<void> {
  const at = { chat_id: s.chat, message_id: await s.send('first') };
  const edited = await s.result('editMessageText', { ...at, text: 'second' });
  expectLike(edited, { message_id: at.message_id, text: 'second', edit_date: Number.isInteger }, 'the edit');
  await s.refused('editMessageText', { ...at, text: 'second' }, 'message_not_modified');
  expectRefusal(
    await earlyEdit(s, at),
    new ApiError('too_many_requests', { retry_after: 1 }),
    'an edit within a second',
  );
  await s.refused('editMessageCaption', { ...at, caption: 'x' }, 'no_caption_to_edit');
  await s.refused(
    'editMessageText',
    { ...at, text: 'x', message_id: unknownMessage },
    'message_to_edit_not_found',
  );
}

async function coalesces(s: Session): Promise<void> {
  const at = { chat_id: s.chat, message_id: await s.send('first') };
  let last = { text: 'first', edit_pending: false };
  for (let i = 0; i < edits_max && last.edit_pending !== true; i++)
    last = await s.result('editMessageText', { ...at, text: `edit ${i}`, coalesce: true });
  expectTrue(last.edit_pending === true, `${edits_max} edits one after another were all stored at once`);
  const copy = { ...at, from_chat_id: s.chat };
  for (let seconds = 0; (await s.result('forwardMessage', copy)).text !== last.text; seconds++) {
    expectTrue(seconds < stored_s_max, `a pending edit was not stored within ${stored_s_max} s`);
    await sleep(1_000);
  }
}

async function pins(s: Session): Promise<void> {
  const chat_id = s.chat;
  const [first, second] = [await s.send('first'), await s.send('second')];
  const pinned = async () => (await s.result('getChat', { chat_id })).pinned_message?.message_id;
  for (const message_id of [first, second]) {
    await s.result('pinChatMessage', { chat_id, message_id, disable_notification: true });
    expectTrue((await pinned()) === message_id, `getChat does not show message ${message_id} as pinned`);
  }
  await s.refused('unpinChatMessage', { chat_id, message_id: first }, 'message_to_unpin_not_found');
  await s.result('unpinChatMessage', { chat_id });
  expectTrue((await pinned()) === undefined, 'getChat shows an unpinned message');
  await s.refused('unpinChatMessage', { chat_id }, 'message_to_unpin_not_found');
  await s.refused('pinChatMessage', { chat_id, message_id: unknownMessage }, 'message_to_pin_not_found');
  await s.result('pinChatMessage', { chat_id, message_id: first, disable_notification: true });
  await s.result('unpinAllChatMessages', { chat_id });
  expectTrue((await pinned()) === undefined, 'getChat shows a message after all were unpinned');
  await s.result('unpinAllChatMessages', { chat_id });
}

async function forwards(s: Session): Promise<void> {
  const both = { chat_id: s.chat, from_chat_id: s.chat };
  const [first, second] = [await s.send('first'), await s.send('second')];
  const forwarded = await s.result('forwardMessage', { ...both, message_id: first });
  expectLike(
    forwarded,
    { text: 'first', forward_origin: { type: 'user', sender_user: { id: s.me.id } } },
    'it',
  );
  const message_ids = [first, second];
  const many = await s.result('forwardMessages', { ...both, message_ids });
  expectTrue(many.length === 2 && many[0].message_id < many[1].message_id, `forwards are ${show(many)}`);
  await s.refused('forwardMessage', { ...both, message_id: unknownMessage }, 'message_to_forward_not_found');
  await s.refused('forwardMessages', { ...both, message_ids: [unknownMessage] }, 'nothing_to_forward');
  const tooMany = Array.from({ length: 101 }, (_, i) => i + 1);
  await s.refused('forwardMessages', { ...both, message_ids: tooMany }, 'too_many_message_ids');
}

async function copies(s: Session): Promise<void> {
  const both = { chat_id: s.chat, from_chat_id: s.chat };
  const [first, second] = [await s.send('first'), await s.send('second')];
  const { message_id } = await s.result('copyMessage', {
    ...both,
    message_id: first,
    reply_markup: keyboard(button),
  });
  const edited = await s.result('editMessageText', { chat_id: s.chat, message_id, text: 'own' });
  expectTrue(edited.forward_origin === undefined, `the copy shows a source: ${show(edited)}`);
  const many = await s.result('copyMessages', { ...both, message_ids: [first, unknownMessage, second] });
  expectTrue(many.length === 2, `copies of two messages and an unknown one are ${show(many)}`);
  await s.refused('copyMessage', { ...both, message_id: unknownMessage }, 'message_to_copy_not_found');
}

async function protects(s: Session): Promise<void> {
  const both = { chat_id: s.chat, from_chat_id: s.chat };
  const sent = await s.result('sendMessage', { chat_id: s.chat, text: 'secret', protect_content: true });
  expectLike(sent, { has_protected_content: true }, 'the message');
  const { message_id } = sent;
  await s.refused('forwardMessage', { ...both, message_id }, 'forward_protected');
  await s.refused('copyMessage', { ...both, message_id }, 'copy_protected');
  await s.refused('forwardMessages', { ...both, message_ids: [message_id] }, 'forward_protected');
  await s.refused('copyMessages', { ...both, message_ids: [message_id] }, 'copy_protected');
}

async function deletes(s: Session): Promise<void> {
  const chat_id = s.chat;
  const [first, second, third] = [await s.send(), await s.send(), await s.send()];
  await s.result('deleteMessage', { chat_id, message_id: first });
  await s.refused('deleteMessage', { chat_id, message_id: first }, 'message_to_delete_not_found');
  await s.refused('editMessageText', { chat_id, message_id: first, text: 'x' }, 'message_to_edit_not_found');
  await s.result('deleteMessages', { chat_id, message_ids: [second, third, unknownMessage] });
  await s.refused('deleteMessage', { chat_id, message_id: third }, 'message_to_delete_not_found');
}

async function repeats(s: Session): Promise<void> {
  const headers = { 'idempotency-key': `petrel-conformance-${Date.now()}` };
  const params = { chat_id: s.chat, text: 'once' };
  const first = await s.result('sendMessage', params, { headers });
  const again = await s.result('sendMessage', params, { headers });
  expectTrue(show(first) === show(again), `the repeated call answered ${show(again)}, not ${show(first)}`);
  await s.refused('sendMessage', { ...params, text: 'other' }, 'idempotency_key_reused', {}, { headers });
}

async function durable(s: Session): Promise<void> {
  const params = { chat_id: s.chat, text: 'durable' };
  const sent = await s.result('sendMessage', params, { headers: { prefer: 'durable' } });
  expectLike(sent, { text: 'durable' }, 'the message');
}

async function drafts(s: Session): Promise<void> {
  const draft = { chat_id: s.chat, draft_id: Date.now() % 1_000_000_000 };
  await s.result('sendMessageDraft', { ...draft, text: 'Once upon' });
  await s.result('sendMessageDraft', { ...draft, text: '<b>Once</b> upon a time', parse_mode: 'HTML' });
  await s.refused('sendMessageDraft', { ...draft, text: 'я'.repeat(4_097) }, 'text_too_long');
}

export const messageChecks: readonly Check[] = [
  check('sendMessage sends the same text in every encoding', sends),
  check('sendMessage formats texts', formats),
  check('sendMessage sends up to 4,096 characters', lengths),
  check('inline keyboards are sent, edited and limited', inlineKeyboards),
  check('reply keyboards are shown and removed', replyKeyboards),
  check('messages reply to messages', replies),
  check('editMessageText edits a message once a second', edits),
  check('editMessageText with coalesce stores the last text', coalesces),
  check('messages are pinned and unpinned', pins),
  check('messages are forwarded with their source', forwards),
  check('messages are copied without their source', copies),
  check('protected messages are neither forwarded nor copied', protects),
  check('messages are deleted', deletes),
  check('a call with an idempotency key runs once', repeats),
  check('a durable call is answered', durable),
  check('sendMessageDraft shows a draft', drafts, ['direct']),
  check('sendChatAction shows an action', async (s) => {
    await s.result('sendChatAction', { chat_id: s.chat, action: 'typing' });
    await s.refused('sendChatAction', { chat_id: s.chat, action: 'sleeping' }, 'chat_action_invalid');
  }),
];
