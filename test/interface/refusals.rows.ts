/**
 * Interface tests of edits that are forbidden or too frequent (interface §7), and of limits (§8). For each limit, one
 * test uses the maximum value, and another test exceeds the maximum by one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Bot, type Case, inDirect, inShared } from './case.js';
import { bad, ok, type Row, row, tooOften } from './row.js';
import { botMessage, keyboard, number, photo, photoUrl, texts, video, videoUrl } from './shapes.js';

interface Sent {
  readonly bot: Bot;
  readonly chat: number;
  readonly message_id: number;
}

async function sentText(c: Case): Promise<Sent> {
  const at = await c.direct();
  return { ...at, message_id: await c.send(at.bot, at.chat, 'Before') };
}

async function sentPhoto(c: Case): Promise<Sent> {
  const at = await c.direct();
  const sent = await c.result(at.bot, 'sendPhoto', { chat_id: at.chat, photo: photoUrl, caption: 'Before' });
  return { ...at, message_id: sent.message_id };
}

/** Each edit method, with the message that it edits. `first` is the edit that comes before the tested edit. */
const edits = [
  {
    ...{ method: 'editMessageText', sent: sentText, first: { text: 'First' }, given: { text: 'Second' } },
    shown: { text: 'Second' },
  },
  {
    ...{ method: 'editMessageCaption', sent: sentPhoto, first: { caption: 'First' } },
    ...{ given: { caption: 'Second' }, shown: { photo, caption: 'Second' } },
  },
  {
    ...{ method: 'editMessageMedia', sent: sentPhoto },
    first: { media: { type: 'photo', media: `${photoUrl}?1` } },
    ...{ given: { media: { type: 'video', media: videoUrl } }, shown: { video } },
  },
  {
    ...{ method: 'editMessageReplyMarkup', sent: sentText, first: { reply_markup: keyboard('First') } },
    given: { reply_markup: keyboard('Second') },
    shown: { text: 'Before', reply_markup: keyboard('Second') },
  },
] as const;

const call =
  (method: string, given: object) =>
  (c: Case, { bot, chat, message_id }: Sent) =>
    c.call(bot, method, { chat_id: chat, message_id, ...given });

const edited =
  (shown: object) =>
  ({ bot, message_id }: Sent, c: Case) =>
    ok({ ...botMessage(bot, c.ann, message_id), edit_date: number, ...shown });

const editedOnce = (sent: typeof sentText, method: string, first: object) => async (c: Case) => {
  const at = await sent(c);
  await c.result(at.bot, method, { chat_id: at.chat, message_id: at.message_id, ...first });
  return at;
};

const hours48_s = 48 * 3_600;
const margin_s = 45;

const frequency: readonly Row[] = edits.flatMap(({ method, sent, first, given, shown }) => [
  row({
    title: `§7 Edit frequency: ${method} within a second of an edit of that message → 429`,
    arrange: editedOnce(sent, method, first),
    holds_ms: 700,
    act: call(method, given),
    answer: () => tooOften,
  }),
  row({
    title: `§8 Edit frequency: ${method} a second after an edit of that message → edited`,
    async arrange(c) {
      const at = await editedOnce(sent, method, first)(c);
      await sleep(1_005);
      return at;
    },
    act: call(method, given),
    answer: edited(shown),
  }),
]);

const perMessage = row({
  title:
    '§8 Edit frequency: it applies per message, so another message of the chat can be edited within the second',
  async arrange(c) {
    const at = await editedOnce(sentText, 'editMessageText', { text: 'First' })(c);
    return { ...at, message_id: await c.send(at.bot, at.chat, 'Before') };
  },
  holds_ms: 700,
  act: call('editMessageText', { text: 'Second' }),
  answer: edited({ text: 'Second' }),
});

/** The rows on §7 "changing the type of a message". */
const types: readonly Row[] = [
  row({
    title: '§7 Forbidden edit: type, editMessageMedia of a text (text to photo) → refused',
    arrange: sentText,
    act: call('editMessageMedia', { media: { type: 'photo', media: photoUrl } }),
    answer: () => bad(texts.noMedia),
  }),
  row({
    title: '§7 Forbidden edit: type, editMessageText of a photo (photo to text) → refused',
    arrange: sentPhoto,
    act: call('editMessageText', { text: 'Now a text' }),
    answer: () => bad(texts.noText),
  }),
  row({
    title: '§7 Forbidden edit: type, editMessageCaption of a text → refused',
    arrange: sentText,
    act: call('editMessageCaption', { caption: 'A caption' }),
    answer: () => bad(texts.noCaption),
  }),
];

/**
 * The roles in which a bot tries to edit a message of the owner. Each role lacks the necessary right (§7 "another
 * user's message without admin rights").
 */
const roles = [
  ['a member of the group', 'group', undefined],
  ['an administrator of the group with only can_pin_messages', 'group', { can_pin_messages: true }],
  ['an administrator of the channel with only can_post_messages', 'channel', { can_post_messages: true }],
] as const;

const others: readonly Row[] = edits.flatMap(({ method, given }) => [
  ...roles.map(([who, kind, rights]) =>
    row({
      title: `§7 Forbidden edit: ${method} of another's message by ${who} → refused`,
      async arrange(c) {
        const bot = await c.bot();
        const chat = await (kind === 'group' ? c.group : c.newChannel)([bot], rights);
        const message_id = await c.say(c.owner, chat, 'Of the owner');
        await c.updates(bot, 1);
        return { bot, chat, message_id };
      },
      act: call(method, given),
      answer: () => bad(texts.cantEdit),
    }),
  ),
  row({
    title: `§7 Forbidden edit: ${method} of the user's message in a direct chat → refused`,
    async arrange(c) {
      const at = await c.direct();
      return { ...at, message_id: await c.say(c.ann, at.bot.id, 'Mine') };
    },
    act: call(method, given),
    answer: () => bad(texts.cantEdit),
  }),
]);

const ages: readonly Row[] = edits.flatMap(({ method, sent, given, shown }) => {
  const aged = (seconds: number) => async (c: Case) => {
    const { bot, chat, message_id } = await sent(c);
    await c.age(inDirect({ bot, chat }), message_id, seconds);
    return { bot, chat, message_id };
  };
  return [
    row({
      title: `§7 Forbidden edit: ${method} of a message older than 48 hours → refused`,
      ...{ arrange: aged(hours48_s + 1), act: call(method, given), answer: () => bad(texts.cantEdit) },
    }),
    row({
      title: `§8 Editable age: ${method} of a message of almost 48 hours → edited`,
      ...{ arrange: aged(hours48_s - margin_s), act: call(method, given), answer: edited(shown) },
    }),
  ];
});

const oldOfOthers = row({
  title:
    "§7 Forbidden edit: another's message older than 48 hours, by an admin with the edit right → refused",
  async arrange(c) {
    const bot = await c.bot();
    const chat = await c.group([bot], { can_edit_messages: true });
    const message_id = await c.say(c.owner, chat, 'Of the owner');
    await c.updates(bot, 1);
    await c.age(inShared(chat), message_id, hours48_s + 1);
    return { bot, chat, message_id };
  },
  act: call('editMessageText', { text: 'Second' }),
  answer: () => bad(texts.cantEdit),
});

/** Lengths are counted in code points (§8). A code point outside the basic plane is two UTF-16 units. */
const characters = [
  ['in the basic plane', 'я'],
  ['outside the basic plane', '𝒳'],
] as const;
const lengths = [
  {
    ...{ limit: 'Bot name length', set: 'setMyName', get: 'getMyName', field: 'name', max: 64 },
    text: 'name is too long',
  },
  {
    ...{ limit: 'Description length', set: 'setMyDescription', get: 'getMyDescription' },
    ...{ field: 'description', max: 512, text: 'description is too long' },
  },
  {
    ...{ limit: 'Short description length', set: 'setMyShortDescription', get: 'getMyShortDescription' },
    ...{ field: 'short_description', max: 120, text: 'short description is too long' },
  },
] as const;

const textLengths: readonly Row[] = lengths.flatMap(({ limit, set, get, field, max, text }) =>
  characters.flatMap(([where, character]) => [
    row({
      title: `§8 ${limit}: ${max} characters ${where} → set`,
      arrange: (c) => c.bot(),
      act: (c, bot) => c.call(bot, set, { [field]: character.repeat(max) }),
      answer: () => ok(true),
      async after(c, bot) {
        expect((await c.get(bot, get)).body).toEqual(ok({ [field]: character.repeat(max) }));
      },
    }),
    row({
      title: `§8 ${limit}: ${max + 1} characters ${where} → refused`,
      async arrange(c) {
        const bot = await c.bot();
        await c.result(bot, set, { [field]: 'Before' });
        return bot;
      },
      act: (c, bot) => c.call(bot, set, { [field]: character.repeat(max + 1) }),
      answer: () => bad(text),
      async after(c, bot) {
        expect((await c.get(bot, get)).body).toEqual(ok({ [field]: 'Before' }));
      },
    }),
  ]),
);

const pins = row({
  title:
    '§8 Pinned messages per chat: of three pinned messages only the last stays pinned, and one unpin leaves none',
  async arrange(c) {
    const { bot, chat } = await c.direct();
    for (const text of ['A', 'B', 'C']) {
      const message_id = await c.send(bot, chat, text);
      await c.result(bot, 'pinChatMessage', { chat_id: chat, message_id });
    }
    const { pinned_message } = await c.result(bot, 'getChat', { chat_id: chat });
    expect(pinned_message.text).toBe('C');
    return { bot, chat };
  },
  act: (c, { bot, chat }) => c.call(bot, 'unpinChatMessage', { chat_id: chat }),
  answer: () => ok(true),
  async after(c, { bot, chat }) {
    expect(await c.result(bot, 'getChat', { chat_id: chat })).not.toHaveProperty('pinned_message');
    expect((await c.call(bot, 'unpinChatMessage', { chat_id: chat })).body).toEqual(bad(texts.noUnpin));
  },
});

const connections = row({
  title: '§8 max_connections: 40 is the default',
  arrange: (c) => c.bot(),
  act: (c, bot) => c.get(bot, 'getWebhookInfo'),
  answer: () => ok(expect.objectContaining({ max_connections: 40 })),
});

export const refusalRows: readonly Row[] = [
  ...[...frequency, perMessage, ...types, ...others, ...ages, oldOfOthers],
  ...[...textLengths, pins, connections],
];
