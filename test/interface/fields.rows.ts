/** Interface tests of every field in the tables of interface §2. */
import { expect } from 'vitest';
import { languages } from '../../src/rules/identity_texts.js';
import type { Case, Direct } from './case.js';
import { bad, ok, type Row, refusal, row } from './row.js';
import {
  botMessage,
  botUser,
  heart,
  number,
  person,
  personMessage,
  photo,
  photoUrl,
  post,
  privateChat,
  reaction,
  reactions,
  uuid,
  videoUrl,
} from './shapes.js';

export const freshPost = async (c: Case) => ({ post: await c.post() });

const reacting: readonly Row[] = [
  row({
    title: '§2 Reaction entry: emoji, count, the UUIDs of all users who set it, the caller first',
    async arrange(c) {
      const at = await freshPost(c);
      const path = `/api/posts/${at.post.external_id}/reactions`;
      await c.app(c.ann, 'POST', path, { emoji: '👍' });
      return path;
    },
    act: (c, path) => c.app(c.ben, 'POST', path, { emoji: '👍' }),
    answer: (_, c) => reactions([reaction('👍', c.ben, c.ann)], ['👍']),
    async after(_, __, { body }) {
      expect(body.reactions[0].user_ids).toEqual([uuid, uuid]);
    },
  }),
  row({
    title: '§2 Reaction entry: emoji is exactly one emoji, and two are refused',
    arrange: freshPost,
    act: (c, at) => c.app(c.ann, 'POST', `/api/posts/${at.post.id}/reactions`, { emoji: '👍🔥' }),
    answer: () => bad('invalid reaction specified'),
  }),
  row({
    title:
      "§2 Post reaction payload: ok, all reactions on the post, and my_reactions with only the caller's reactions",
    async arrange(c) {
      const at = await freshPost(c);
      const path = `/api/posts/${at.post.id}/reactions`;
      await c.app(c.ann, 'POST', path, { emoji: '🔥' });
      await c.app(c.ann, 'POST', path, { emoji: '👍' });
      return path;
    },
    act: (c, path) => c.app(c.ben, 'POST', path, { emoji: '👍' }),
    answer: (_, c) => reactions([reaction('👍', c.ben, c.ann), reaction('🔥', c.ann)], ['👍']),
  }),
  row({
    title: '§2 Post object: liked_by_me is true for a user who set the heart, also with U+FE0F',
    async arrange(c) {
      const at = await freshPost(c);
      await c.app(c.ann, 'POST', `/api/posts/${at.post.id}/reactions`, { emoji: `${heart}\ufe0f` });
      return at;
    },
    act: (c, at) => c.app(c.ann, 'GET', `/api/posts/${at.post.external_id}`),
    answer: (at, c) => ok(post(c, at.post, [reaction(heart, c.ann)], true)),
  }),
  row({
    title: '§2 Post object: liked_by_me is false for a user who set another emoji while others set the heart',
    async arrange(c) {
      const at = await freshPost(c);
      const path = `/api/posts/${at.post.id}/reactions`;
      await c.app(c.ann, 'POST', path, { emoji: heart });
      await c.app(c.ben, 'POST', path, { emoji: '👍' });
      return at;
    },
    act: (c, at) => c.app(c.ben, 'GET', `/api/posts/${at.post.id}`),
    answer: (at, c) => ok(post(c, at.post, [reaction(heart, c.ann), reaction('👍', c.ben)], false)),
  }),
];

const envelopes: readonly Row[] = [
  row({
    title: '§2 Envelope: a success has ok true and result, and nothing else',
    arrange: (c) => c.bot(),
    act: (c, bot) => c.call(bot, 'getMyDescription'),
    answer: () => ({ ok: true, result: { description: '' } }),
  }),
  row({
    title: '§2 Envelope: an error has ok false, error_code and description, and no result',
    arrange: (c) => c.bot(),
    act: (c, bot) => c.call(bot, 'sendMessage', { chat_id: c.ben.id, text: 'hello' }),
    answer: () => ({
      ok: false,
      error_code: 403,
      description: "Forbidden: bot can't initiate conversation with a user",
    }),
  }),
  row({
    title: '§2 Bot identity: id, is_bot true, first_name, username',
    arrange: (c) => c.bot(),
    act: (c, bot) => c.get(bot, 'getMe'),
    answer: (bot) => ok({ ...botUser(bot), ...abilities }),
  }),
];

/** Fields of the getMe result that client libraries read although the interface does not list them (behaviour §2). */
export const abilities = {
  can_join_groups: true,
  can_read_all_group_messages: true,
  supports_inline_queries: false,
};

/**
 * The three texts with which a bot describes itself. Each item names the field, the methods that set and get the text,
 * and the field of the bot page that shows the text.
 */
const identityTexts = [
  { field: 'name', set: 'setMyName', get: 'getMyName', page: 'name' },
  { field: 'description', set: 'setMyDescription', get: 'getMyDescription', page: 'description' },
  {
    field: 'short_description',
    set: 'setMyShortDescription',
    get: 'getMyShortDescription',
    page: 'short_description',
  },
] as const;

const textRows: readonly Row[] = identityTexts.flatMap(({ field, set, get, page }) => [
  ...languages.map((language_code) =>
    row({
      title: `§2 Bot identity texts: ${field} in ${language_code} is separate from the default, and shown to speakers of the language`,
      async arrange(c) {
        const bot = await c.bot();
        await c.result(bot, set, { [field]: 'The default' });
        await c.result(bot, set, { [field]: `In ${language_code}`, language_code });
        return { bot, reader: await c.person(language_code) };
      },
      act: (c, { bot }) => c.get(bot, get, { language_code }),
      answer: () => ok({ [field]: `In ${language_code}` }),
      async after(c, { bot, reader }) {
        expect((await c.get(bot, get)).body).toEqual(ok({ [field]: 'The default' }));
        const shown = await c.appResult(reader, 'GET', `/api/bots/${bot.username}`);
        expect(shown[page]).toBe(`In ${language_code}`);
      },
    }),
  ),
  row({
    title: `§2 Bot identity texts: ${field} without language_code is the default for languages without a text`,
    async arrange(c) {
      const bot = await c.bot();
      await c.result(bot, set, { [field]: 'Default' });
      await c.result(bot, set, { [field]: 'По-русски', language_code: 'ru' });
      return { bot, reader: await c.person('kk') };
    },
    act: (c, { bot }) => c.get(bot, get, { language_code: 'kk' }),
    answer: () => ok({ [field]: 'Default' }),
    async after(c, { bot, reader }) {
      const shown = await c.appResult(reader, 'GET', `/api/bots/${bot.username}`);
      expect(shown[page]).toBe('Default');
    },
  }),
  row({
    title: `§2 Bot identity texts: ${field} in a language that is not supported is refused`,
    arrange: (c) => c.bot(),
    act: (c, bot) => c.call(bot, set, { [field]: 'Auf Deutsch', language_code: 'de' }),
    answer: () => bad('invalid language code specified'),
  }),
]);

const shownTexts: readonly Row[] = [
  row({
    title: '§2 Bot identity texts: the page before Start shows all three',
    async arrange(c) {
      const bot = await c.bot();
      for (const { field, set } of identityTexts) await c.result(bot, set, { [field]: `The ${field}` });
      return bot;
    },
    act: (c, bot) => c.app(c.ann, 'GET', `/api/bots/${bot.username}`),
    answer: ({ id, username }) =>
      ok({
        ...{ id, username, name: 'The name' },
        ...{ description: 'The description', short_description: 'The short_description' },
        can_write: true,
      }),
  }),
  row({
    title:
      '§2 Bot identity texts: the name in the header of the chat and in lists, in the language of the user',
    async arrange(c) {
      const reader = await c.person('hy');
      const bot = await c.bot();
      await c.result(bot, 'setMyName', { name: 'Անուն', language_code: 'hy' });
      await c.appResult(reader, 'POST', `/api/bots/${bot.username}/start`, {});
      return { reader, bot };
    },
    act: (c, { reader, bot }) => c.app(reader, 'GET', `/api/chats/${bot.id}`),
    answer: ({ reader, bot }) => {
      const header = { id: bot.id, type: 'private', first_name: 'Անուն', username: bot.username };
      const start = {
        ...{ message_id: number, date: number, kind: 'text', text: '/start' },
        from: { ...person(reader), external_id: reader.external_id },
      };
      return ok({ ...header, can_pin: true, last_message: start });
    },
    async after(c, { reader, bot }) {
      const [listed] = (await c.appResult(reader, 'GET', '/api/chats')).items;
      expect(listed).toMatchObject({ id: bot.id, first_name: 'Անուն' });
    },
  }),
  ...['setMyProfilePhoto', 'setMyStartPicture'].map((method) =>
    row({
      title: `§2 Other identity items: bots cannot set start picture and avatar, because there is no ${method}`,
      arrange: (c) => c.bot(),
      act: (c, bot) => c.call(bot, method, { photo: photoUrl }),
      answer: () => refusal(404, 'Not Found: method not found'),
    }),
  ),
];

const updates: readonly Row[] = [
  row({
    title: '§2 Update: has a message and an update_id, which is unique and increases',
    async arrange(c) {
      const at = await c.direct();
      return { ...at, ids: [await c.say(c.ann, at.bot.id, 'one'), await c.say(c.ann, at.bot.id, 'two')] };
    },
    act: (c, { bot }) => c.call(bot, 'getUpdates'),
    answer: ({ ids }, c) =>
      ok(
        ids.map((id, i) => ({
          update_id: number,
          message: { ...personMessage(c.ann, privateChat(c.ann), id), text: ['one', 'two'][i] },
        })),
      ),
    async after(_, __, { body }) {
      const [first, second] = body.result;
      expect(second.update_id).toBe(first.update_id + 1);
    },
  }),
  row({
    title:
      '§2 Message: message_id, from with id and first_name, chat with id and type, date in seconds, text',
    arrange: (c) => c.direct(),
    act: (c, { bot, chat }) => c.call(bot, 'sendMessage', { chat_id: chat, text: 'Hello' }),
    answer: ({ bot }, c) => ok({ ...botMessage(bot, c.ann), text: 'Hello' }),
    async after(c, { bot }, { body }) {
      const { message_id, date } = body.result;
      expect([Number.isInteger(message_id), Number.isInteger(date)]).toEqual([true, true]);
      expect(Math.abs(date - Date.now() / 1000)).toBeLessThan(60);
      const [newest] = await c.history(c.ann, bot.id);
      expect(newest).toMatchObject({ message_id, date, text: 'Hello' });
    },
  }),
  row({
    title:
      '§2 Webhook info: url, has_custom_certificate, pending_update_count, no last error, max_connections',
    async arrange(c) {
      const at = await c.direct();
      await c.say(c.ann, at.bot.id, 'one');
      await c.say(c.ann, at.bot.id, 'two');
      return at;
    },
    act: (c, { bot }) => c.get(bot, 'getWebhookInfo'),
    answer: () =>
      ok({
        ...{ url: '', has_custom_certificate: false, pending_update_count: 2 },
        ...{ last_error_date: null, last_error_message: null, max_connections: 40 },
      }),
  }),
];

async function sentPhoto(c: Case): Promise<Direct & { readonly message_id: number }> {
  const at = await c.direct();
  const sent = await c.result(at.bot, 'sendPhoto', { chat_id: at.chat, photo: videoUrl, caption: 'Old' });
  return { ...at, message_id: sent.message_id };
}
const edited = { edit_date: number };

const button = (text: string, callback_data: string) => ({ text, callback_data });
const twoRows = { inline_keyboard: [[button('A', 'a'), button('B', 'b')], [button('C', 'c')]] };

const media: readonly Row[] = [
  row({
    title: '§2 Media descriptor: type photo, media by URL, caption',
    arrange: sentPhoto,
    act: (c, { bot, chat, message_id }) =>
      c.call(bot, 'editMessageMedia', {
        ...{ chat_id: chat, message_id },
        media: { type: 'photo', media: photoUrl, caption: 'New' },
      }),
    answer: ({ bot, message_id }, c) =>
      ok({ ...botMessage(bot, c.ann, message_id), ...edited, photo, caption: 'New' }),
    async after(c, { bot }) {
      const [newest] = await c.history(c.ann, bot.id);
      expect(newest).toMatchObject({ caption: 'New', photo: [{ url: photoUrl }] });
    },
  }),
  row({
    title: '§2 Media descriptor: caption is optional, and media without it have none',
    arrange: sentPhoto,
    act: (c, { bot, chat, message_id }) =>
      c.call(bot, 'editMessageMedia', {
        chat_id: chat,
        message_id,
        media: { type: 'photo', media: photoUrl },
      }),
    answer: ({ bot, message_id }, c) => ok({ ...botMessage(bot, c.ann, message_id), ...edited, photo }),
  }),
  ...(['type', 'media'] as const).map((missing) =>
    row({
      title: `§2 Media descriptor: a descriptor without ${missing} is refused`,
      arrange: sentPhoto,
      act: (c, { bot, chat, message_id }) => {
        const { [missing]: _, ...rest } = { type: 'photo', media: photoUrl };
        return c.call(bot, 'editMessageMedia', { chat_id: chat, message_id, media: rest });
      },
      answer: () => bad(`parameter "media.${missing}" is required`),
    }),
  ),
  row({
    title: '§2 Inline keyboard: has rows of buttons with text and callback_data',
    arrange: (c) => c.direct(),
    act: (c, { bot, chat }) =>
      c.call(bot, 'sendMessage', { chat_id: chat, text: 'Choose', reply_markup: twoRows }),
    answer: ({ bot }, c) => ok({ ...botMessage(bot, c.ann), text: 'Choose', reply_markup: twoRows }),
    async after(c, { bot }) {
      const [newest] = await c.history(c.ann, bot.id);
      expect(newest.reply_markup).toEqual(twoRows);
    },
  }),
];

export const fieldRows = [...reacting, ...envelopes, ...textRows, ...shownTexts, ...updates, ...media];
