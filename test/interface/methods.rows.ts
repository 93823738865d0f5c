/**
 * Interface tests of the bot methods (interface §4.3). They cover every method, with the HTTP verb that the table names
 * and every field of the request.
 */
import { expect } from 'vitest';
import type { Bot, Case, Direct } from './case.js';
import { abilities } from './fields.rows.js';
import { bad, ok, type Row, row } from './row.js';
import {
  botMessage,
  botUser,
  keyboard,
  number,
  person,
  personMessage,
  photo,
  photoUrl,
  privateChat,
  video,
  videoUrl,
} from './shapes.js';

const done = () => ok(true);
const bold = [{ type: 'bold', offset: 0, length: 4 }];

const texts = [
  { field: 'name', set: 'setMyName', get: 'getMyName' },
  { field: 'description', set: 'setMyDescription', get: 'getMyDescription' },
  { field: 'short_description', set: 'setMyShortDescription', get: 'getMyShortDescription' },
] as const;

const identity: readonly Row[] = [
  row({
    title: '§4.3 GET getMe → the bot identity, first_name follows setMyName',
    async arrange(c) {
      const bot = await c.bot();
      await c.result(bot, 'setMyName', { name: 'Renamed' });
      return bot;
    },
    act: (c, bot) => c.get(bot, 'getMe'),
    answer: (bot) => ok({ ...botUser(bot), first_name: 'Renamed', ...abilities }),
  }),
  ...texts.flatMap(({ field, set, get }) => [
    row({
      title: `§4.3 POST ${set}: ${field}, language_code → true, and only the text of that language is set`,
      arrange: (c) => c.bot(),
      act: (c, bot) => c.call(bot, set, { [field]: 'По-русски', language_code: 'ru' }),
      answer: done,
      async after(c, bot) {
        expect((await c.get(bot, get, { language_code: 'ru' })).body).toEqual(ok({ [field]: 'По-русски' }));
        const unset = field === 'name' ? bot.name : '';
        expect((await c.get(bot, get)).body).toEqual(ok({ [field]: unset }));
        expect((await c.get(bot, get, { language_code: 'en' })).body).toEqual(ok({ [field]: unset }));
      },
    }),
    row({
      title: `§4.3.7 POST ${set} without language_code → true, the default is set, and a language keeps its own text`,
      async arrange(c) {
        const bot = await c.bot();
        await c.result(bot, set, { [field]: 'In English', language_code: 'en' });
        return bot;
      },
      act: (c, bot) => c.call(bot, set, { [field]: 'The default' }),
      answer: done,
      async after(c, bot) {
        expect((await c.get(bot, get)).body).toEqual(ok({ [field]: 'The default' }));
        expect((await c.get(bot, get, { language_code: 'en' })).body).toEqual(ok({ [field]: 'In English' }));
      },
    }),
    row({
      title: `§4.3 POST ${set} without ${field} → refused`,
      arrange: (c) => c.bot(),
      act: (c, bot) => c.call(bot, set, { language_code: 'ru' }),
      answer: () => bad(`parameter "${field}" is required`),
    }),
    row({
      title: `§4.3.7 GET ${get} without language_code → the default`,
      async arrange(c) {
        const bot = await c.bot();
        await c.result(bot, set, { [field]: 'In Uzbek', language_code: 'uz' });
        await c.result(bot, set, { [field]: 'The default' });
        return bot;
      },
      act: (c, bot) => c.get(bot, get),
      answer: () => ok({ [field]: 'The default' }),
    }),
    row({
      title: `§4.3 GET ${get} with query language_code → the text in that language`,
      async arrange(c) {
        const bot = await c.bot();
        await c.result(bot, set, { [field]: 'In Tatar', language_code: 'tt' });
        return bot;
      },
      act: (c, bot) => c.get(bot, get, { language_code: 'tt' }),
      answer: () => ok({ [field]: 'In Tatar' }),
    }),
  ]),
];

interface Sent extends Direct {
  readonly message_id: number;
}

async function sentText(c: Case): Promise<Sent> {
  const at = await c.direct();
  const message_id = await c.send(at.bot, at.chat, 'Before', { reply_markup: keyboard('Old') });
  return { ...at, message_id };
}

async function sentPhoto(c: Case): Promise<Sent> {
  const at = await c.direct();
  const given = { photo: photoUrl, caption: 'Before', reply_markup: keyboard('Old') };
  const { message_id } = await c.result(at.bot, 'sendPhoto', { chat_id: at.chat, ...given });
  return { ...at, message_id };
}

/**
 * Makes a row for an edit of the bot's own message. `shown` contains the fields of the message after the edit, except
 * sender, chat, id and dates.
 */
const edit = (title: string, arrange: typeof sentText, method: string, given: object, shown: object) =>
  row({
    title,
    arrange,
    act: (c, { bot, chat, message_id }) => c.call(bot, method, { chat_id: chat, message_id, ...given }),
    answer: ({ bot, message_id }, c) =>
      ok({ ...botMessage(bot, c.ann, message_id), edit_date: number, ...shown }),
    async after(c, { bot }, { body }) {
      const { edit_date, date } = body.result;
      expect(edit_date).toBeGreaterThanOrEqual(date);
      const [newest] = await c.history(c.ann, bot.id);
      const { from: _, chat: __, photo: ___, ...rest } = body.result;
      expect(newest).toMatchObject(rest);
      expect(Object.keys(newest)).toEqual(Object.keys(body.result));
    },
  });

const reply_markup = keyboard('New');

const edits: readonly Row[] = [
  edit(
    '§4.3 POST editMessageText: text → the edited Message',
    ...([sentText, 'editMessageText', { text: 'After' }, { text: 'After' }] as const),
  ),
  edit(
    '§4.3 POST editMessageText: parse_mode HTML → entities',
    ...([sentText, 'editMessageText', { text: '<b>bold</b>', parse_mode: 'HTML' }] as const),
    { text: 'bold', entities: bold },
  ),
  edit(
    '§4.3 POST editMessageText: parse_mode MarkdownV2 → entities',
    ...([sentText, 'editMessageText', { text: '*bold*', parse_mode: 'MarkdownV2' }] as const),
    { text: 'bold', entities: bold },
  ),
  edit(
    '§4.3.5 POST editMessageText: reply_markup → the keyboard is recreated',
    ...([
      sentText,
      'editMessageText',
      { text: 'After', reply_markup },
      { text: 'After', reply_markup },
    ] as const),
  ),
  edit(
    '§4.3 POST editMessageCaption: caption → the edited Message, the media stay',
    ...([sentPhoto, 'editMessageCaption', { caption: 'After' }, { photo, caption: 'After' }] as const),
  ),
  ...(['HTML', 'MarkdownV2'] as const).map((parse_mode) =>
    edit(
      `§4.3 POST editMessageCaption: parse_mode ${parse_mode} → entities`,
      ...([sentPhoto, 'editMessageCaption'] as const),
      { caption: parse_mode === 'HTML' ? '<b>bold</b>' : '*bold*', parse_mode },
      { photo, caption: 'bold', caption_entities: bold },
    ),
  ),
  edit(
    '§4.3.5 POST editMessageMedia: photo to video → the media are replaced entirely, with their caption',
    ...([sentPhoto, 'editMessageMedia', { media: { type: 'video', media: videoUrl } }, { video }] as const),
  ),
  edit(
    '§4.3 POST editMessageReplyMarkup: reply_markup of a text → the keyboard is replaced, the text stays',
    ...([sentText, 'editMessageReplyMarkup', { reply_markup }, { text: 'Before', reply_markup }] as const),
  ),
  edit(
    '§4.3 POST editMessageReplyMarkup: reply_markup of a photo → the caption stays',
    ...([sentPhoto, 'editMessageReplyMarkup', { reply_markup }] as const),
    { photo, caption: 'Before', reply_markup },
  ),
  row({
    title:
      '§4.3.6 Streaming: the first chunk by sendMessage, later ones by editMessageText of the same message',
    async arrange(c) {
      const at = await c.direct();
      const message_id = await c.send(at.bot, at.chat, 'One');
      await c.result(at.bot, 'editMessageText', { chat_id: at.chat, message_id, text: 'One two' });
      await new Promise((resolve) => setTimeout(resolve, 1_050));
      return { ...at, message_id };
    },
    act: (c, { bot, chat, message_id }) =>
      c.call(bot, 'editMessageText', { chat_id: chat, message_id, text: 'One two three' }),
    answer: ({ bot, message_id }, c) =>
      ok({ ...botMessage(bot, c.ann, message_id), edit_date: number, text: 'One two three' }),
    async after(c, { bot, message_id }) {
      const shown = (await c.history(c.ann, bot.id)).map((message) => [message.message_id, message.text]);
      expect(shown).toEqual([
        [message_id, 'One two three'],
        [message_id - 1, '/start'],
      ]);
    },
  }),
];

interface Others {
  readonly bot: Bot;
  readonly chat: number;
  readonly message_id: number;
}

/** Sends a message from the owner to a group in which the bot has these rights (§4.3.5). */
const othersMessage =
  (rights: Readonly<Record<string, boolean>>) =>
  async (c: Case): Promise<Others> => {
    const bot = await c.bot();
    const chat = await c.group([bot], rights);
    const message_id = await c.say(c.owner, chat, 'Of the owner');
    await c.updates(bot, 1);
    return { bot, chat, message_id };
  };

const othersEdits: readonly Row[] = [
  row({
    title:
      "§4.3.5 editMessageText of another's message by an admin with the edit right → edited, and the sender stays the same",
    arrange: othersMessage({ can_edit_messages: true }),
    act: (c, { bot, chat, message_id }) =>
      c.call(bot, 'editMessageText', { chat_id: chat, message_id, text: 'Corrected' }),
    answer: ({ chat, message_id }, c) =>
      ok({
        ...personMessage(c.owner, { id: chat, type: 'group', title: 'The group' }, message_id),
        ...{ edit_date: number, text: 'Corrected' },
      }),
    async after(c, { chat, message_id }) {
      const [newest] = await c.history(c.owner, chat);
      expect(newest).toMatchObject({ message_id, text: 'Corrected', from: person(c.owner) });
    },
  }),
];

const webhook: readonly Row[] = [
  row({
    title: '§4.3 GET getWebhookInfo of a bot without pending updates → the webhook info',
    arrange: (c) => c.bot(),
    act: (c, bot) => c.get(bot, 'getWebhookInfo'),
    answer: () =>
      ok({
        ...{ url: '', has_custom_certificate: false, pending_update_count: 0 },
        ...{ last_error_date: null, last_error_message: null, max_connections: 40 },
      }),
  }),
  row({
    title: '§4.3 GET deleteWebhook: drop_pending_updates → true, and no updates are pending',
    async arrange(c) {
      const at = await c.direct();
      await c.say(c.ann, at.bot.id, 'waits');
      return at;
    },
    act: (c, { bot }) => c.get(bot, 'deleteWebhook', { drop_pending_updates: 'true' }),
    answer: () => ({ ...ok(true), description: 'Webhook is already deleted' }),
    after: async (c, { bot }) => expect(await c.updates(bot, 0)).toEqual([]),
  }),
  row({
    title: '§4.3 getUpdates: updates confirmed by offset are not returned again',
    async arrange(c) {
      const at = await c.direct();
      await c.say(c.ann, at.bot.id, 'one');
      await c.say(c.ann, at.bot.id, 'two');
      return { ...at, first: (await c.updates(at.bot, 2))[0].update_id as number };
    },
    act: (c, { bot, first }) => c.call(bot, 'getUpdates', { offset: first + 1 }),
    answer: ({ first }, c) =>
      ok([{ update_id: first + 1, message: { ...personMessage(c.ann, privateChat(c.ann)), text: 'two' } }]),
  }),
];

export const methodRows: readonly Row[] = [...identity, ...edits, ...othersEdits, ...webhook];
