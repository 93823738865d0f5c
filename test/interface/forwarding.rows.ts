/** Interface tests of forwards and copies (interface §4.3), protected content (§7) and the size of a batch (§8). */
import { expect } from 'vitest';
import type { Bot, Case } from './case.js';
import { bad, ok, type Row, row } from './row.js';
import {
  botMessage,
  botUser,
  groupChat,
  keyboard,
  number,
  person,
  photo,
  photoUrl,
  texts,
  videoUrl,
} from './shapes.js';

interface Source {
  readonly bot: Bot;
  readonly chat_id: number;
  readonly from_chat_id: number;
  readonly message_id: number;
}

async function twoChats(c: Case) {
  const { bot, chat } = await c.direct();
  return { bot, chat_id: await c.group([bot]), from_chat_id: chat };
}

async function annsText(c: Case): Promise<Source> {
  const at = await twoChats(c);
  return { ...at, message_id: await c.say(c.ann, at.bot.id, 'The original') };
}

const botsOwn =
  (method: string, given: object) =>
  async (c: Case): Promise<Source> => {
    const at = await twoChats(c);
    const sent = await c.result(at.bot, method, { chat_id: at.from_chat_id, ...given });
    return { ...at, message_id: sent.message_id };
  };

const call =
  (method: string, given: object = {}) =>
  (c: Case, { bot, ...at }: Source) =>
    c.call(bot, method, { ...at, ...given });

const forwardOf = (sender: object) => ({
  forward_origin: { type: 'user', sender_user: sender, date: number },
  ...{ forward_from: sender, forward_date: number },
});

const sentBy = ({ bot, chat_id }: Source) => ({
  ...{ message_id: number, from: botUser(bot), chat: groupChat(chat_id), date: number },
});

const newest = async (c: Case, chat: number) => (await c.history(c.owner, chat))[0];
const withoutFile = { photo: [{ width: 0, height: 0, url: photoUrl }] };

const forwards: readonly Row[] = [
  row({
    title:
      '§4.3 POST forwardMessage → the Message; §4.3.1 the recipient sees who the message was forwarded from',
    arrange: annsText,
    act: call('forwardMessage'),
    answer: (at, c) => ok({ ...sentBy(at), ...forwardOf(person(c.ann)), text: 'The original' }),
    async after(c, { chat_id }) {
      const shown = await newest(c, chat_id);
      expect(shown).toMatchObject({ text: 'The original', ...forwardOf(person(c.ann)) });
    },
  }),
  row({
    title: '§4.3.1 forwardMessage keeps the media and the caption of the original, without its keyboard',
    arrange: botsOwn('sendPhoto', { photo: photoUrl, caption: 'Words', reply_markup: keyboard('Press') }),
    act: call('forwardMessage'),
    answer: (at) => ok({ ...sentBy(at), ...forwardOf(botUser(at.bot)), photo, caption: 'Words' }),
    async after(c, { chat_id }) {
      const shown = await newest(c, chat_id);
      expect(shown).toMatchObject({ ...withoutFile, caption: 'Words' });
      expect(shown).not.toHaveProperty('reply_markup');
    },
  }),
  row({
    title: '§4.3.1 forwardMessage of a forward → attribution to the original author',
    async arrange(c) {
      const at = await annsText(c);
      const { message_id } = await c.result(at.bot, 'forwardMessage', {
        ...{ chat_id: at.from_chat_id, from_chat_id: at.from_chat_id, message_id: at.message_id },
      });
      return { ...at, message_id };
    },
    act: call('forwardMessage'),
    answer: (at, c) => ok({ ...sentBy(at), ...forwardOf(person(c.ann)), text: 'The original' }),
  }),
  row({
    title: '§4.3.1 forwardMessage of a channel post → attribution to the channel',
    async arrange(c) {
      const { bot, chat } = await c.direct();
      const from_chat_id = await c.newChannel([bot]);
      return { bot, chat_id: chat, from_chat_id, message_id: await c.send(bot, from_chat_id, 'News') };
    },
    act: call('forwardMessage'),
    answer({ bot, from_chat_id, message_id }, c) {
      const channel = { id: from_chat_id, type: 'channel', title: 'The channel' };
      return ok({
        ...botMessage(bot, c.ann),
        forward_origin: { type: 'channel', chat: channel, message_id, date: number },
        ...{ forward_from_chat: channel, forward_from_message_id: message_id, forward_date: number },
        text: 'News',
      });
    },
  }),
  row({
    title: '§4.3.3 forwardMessage: protect_content → has_protected_content, and re-forwarding is forbidden',
    arrange: annsText,
    act: call('forwardMessage', { protect_content: true }),
    answer: (at, c) =>
      ok({
        ...{ ...sentBy(at), ...forwardOf(person(c.ann)) },
        ...{ has_protected_content: true, text: 'The original' },
      }),
    async after(c, { bot, chat_id, from_chat_id }, { body }) {
      const again = { chat_id: from_chat_id, from_chat_id: chat_id, message_id: body.result.message_id };
      expect((await c.call(bot, 'forwardMessage', again)).body).toEqual(bad(texts.cantForward));
    },
  }),
  ...[true, false].map((disable_notification) =>
    row({
      title: `§4.3 POST forwardMessage: disable_notification ${disable_notification} → the user is ${disable_notification ? 'not notified' : 'notified'}`,
      async arrange(c) {
        const { bot, chat } = await c.direct();
        return { bot, chat_id: chat, from_chat_id: chat, message_id: await c.send(bot, chat, 'Again') };
      },
      act: call('forwardMessage', { disable_notification }),
      answer: ({ bot }, c) =>
        ok({
          ...{ ...botMessage(bot, c.ann), text: 'Again' },
          ...forwardOf(botUser(bot)),
        }),
      async after(c, { bot }) {
        const { data } = await c.events.received(
          ({ event, data: { chat, forward_from } }) =>
            event === 'message' && chat.id === bot.id && forward_from !== undefined,
        );
        expect(data.notify).toBe(!disable_notification);
      },
    }),
  ),
  row({
    title: '§4.3 POST forwardMessage of an unknown message → refused',
    arrange: annsText,
    act: (c, { bot, ...at }) => c.call(bot, 'forwardMessage', { ...at, message_id: at.message_id + 1 }),
    answer: () => bad('message to forward not found'),
  }),
];

const noSource = ['forward_origin', 'forward_from', 'forward_from_chat', 'forward_date'];

/**
 * Makes a row for a copy of a message. `shown` contains the fields of the copy that the owner sees, except sender,
 * chat, id and date.
 */
const copy = (
  title: string,
  arrange: (c: Case) => Promise<Source>,
  given: object,
  shown: Readonly<Record<string, unknown>>,
) =>
  row({
    title,
    arrange,
    act: call('copyMessage', given),
    answer: () => ok({ message_id: number }),
    async after(c, { bot, chat_id }, { body }) {
      const copied = await newest(c, chat_id);
      expect(copied).toMatchObject({ message_id: body.result.message_id, from: botUser(bot), ...shown });
      const fields = ['message_id', 'from', 'chat', 'date', ...Object.keys(shown)];
      expect(Object.keys(copied).sort()).toEqual(fields.sort());
      expect(noSource.filter((field) => field in copied)).toEqual([]);
    },
  });

const captioned = { photo: photoUrl, caption: 'Words', reply_markup: keyboard('Press') };
const copies: readonly Row[] = [
  copy(
    '§4.3 POST copyMessage of a text → the id of the copy; §4.3.2 no source for the recipient',
    annsText,
    {},
    { text: 'The original' },
  ),
  copy(
    '§4.3.2 copyMessage without caption and reply_markup keeps media, caption and keyboard',
    botsOwn('sendPhoto', captioned),
    {},
    { ...withoutFile, caption: 'Words', reply_markup: keyboard('Press') },
  ),
  copy(
    '§4.3.2 copyMessage: caption overrides the caption, the keyboard stays',
    botsOwn('sendPhoto', captioned),
    { caption: 'Other words' },
    { ...withoutFile, caption: 'Other words', reply_markup: keyboard('Press') },
  ),
  copy(
    '§4.3.2 copyMessage: reply_markup overrides the keyboard, the caption stays',
    botsOwn('sendPhoto', captioned),
    { reply_markup: keyboard('Other') },
    { ...withoutFile, caption: 'Words', reply_markup: keyboard('Other') },
  ),
  copy(
    '§4.3.2 copyMessage: caption and reply_markup together',
    botsOwn('sendVideo', { ...captioned, photo: undefined, video: videoUrl }),
    { caption: 'Other words', reply_markup: keyboard('Other') },
    {
      video: { ...{ width: 0, height: 0, duration: 0 }, url: videoUrl },
      ...{ caption: 'Other words', reply_markup: keyboard('Other') },
    },
  ),
];

async function several(c: Case) {
  const at = await twoChats(c);
  const ids: number[] = [];
  for (const text of ['one', 'two', 'three']) ids.push(await c.send(at.bot, at.from_chat_id, text));
  return { ...at, message_id: 0, message_ids: [ids[2], ids[0], ids[1]] };
}

const batches: readonly Row[] = (['forwardMessages', 'copyMessages'] as const).map((method) =>
  row({
    title: `§4.3 POST ${method}: message_ids → their ids; the order is preserved`,
    arrange: several,
    act: (c, { bot, message_id: _, ...at }) => c.call(bot, method, at),
    answer: () => ok([{ message_id: number }, { message_id: number }, { message_id: number }]),
    async after(c, { chat_id }, { body }) {
      const shown = (await c.history(c.owner, chat_id)).filter(({ text }) => text !== undefined).reverse();
      expect(shown.map(({ text }) => text)).toEqual(['three', 'one', 'two']);
      expect(shown.map(({ message_id }) => ({ message_id }))).toEqual(body.result);
    },
  }),
);

const protectedText = botsOwn('sendMessage', { text: 'Secret', protect_content: true });
const again = [
  { method: 'forwardMessage', many: false, text: texts.cantForward },
  { method: 'copyMessage', many: false, text: texts.cantCopy },
  { method: 'forwardMessages', many: true, text: texts.cantForward },
  { method: 'copyMessages', many: true, text: texts.cantCopy },
] as const;

const protection: readonly Row[] = again.flatMap(({ method, many, text }) => [
  row({
    title: `§7 Protected content: ${method} of an original with protect_content → 400`,
    arrange: protectedText,
    act: (c, { bot, message_id, ...at }) =>
      c.call(bot, method, { ...at, ...(many ? { message_ids: [message_id] } : { message_id }) }),
    answer: () => bad(text),
  }),
  row({
    title: `§4.3.3 ${method} of a forward that was made with protect_content → 400`,
    async arrange(c) {
      const at = await annsText(c);
      const { bot, from_chat_id, message_id } = at;
      const given = { chat_id: from_chat_id, from_chat_id, message_id, protect_content: true };
      return { ...at, message_id: (await c.result(bot, 'forwardMessage', given)).message_id as number };
    },
    act: (c, { bot, message_id, ...at }) =>
      c.call(bot, method, { ...at, ...(many ? { message_ids: [message_id] } : { message_id }) }),
    answer: () => bad(text),
  }),
  ...(many
    ? [
        row({
          title: `§7 Protected content: ${method}, one of three with protect_content → 400, and none is sent`,
          async arrange(c: Case) {
            const at = await several(c);
            const given = { chat_id: at.from_chat_id, text: 'Secret', protect_content: true };
            const { message_id } = await c.result(at.bot, 'sendMessage', given);
            return { ...at, message_ids: [at.message_ids[0], message_id, at.message_ids[1]] };
          },
          act: (c, { bot, message_id: _, ...at }) => c.call(bot, method, at),
          answer: () => bad(text),
        }),
      ]
    : []),
]);

/** Makes `count` message ids of one chat. Only the first id belongs to an existing message (§8). */
const batchOf = (count: number) => async (c: Case) => {
  const at = await twoChats(c);
  const first = await c.send(at.bot, at.from_chat_id, 'The first');
  return { ...at, message_ids: Array.from({ length: count }, (_, i) => first + i) };
};

const sizes: readonly Row[] = [
  row({
    title: '§8 Messages per batch: forwardMessages of 100 → accepted',
    async arrange(c) {
      const at = await batchOf(100)(c);
      // Creates 100 messages: sends ten messages, and then forwards them nine times.
      const { bot, from_chat_id, message_ids } = at;
      for (let i = 1; i < 10; i++) await c.send(bot, from_chat_id, `text ${i}`);
      const again = { chat_id: from_chat_id, from_chat_id, message_ids: message_ids.slice(0, 10) };
      for (let i = 1; i < 10; i++) await c.result(bot, 'copyMessages', again);
      return at;
    },
    act: (c, { bot, ...at }) => c.call(bot, 'forwardMessages', at),
    answer: () => ok(Array.from({ length: 100 }, () => ({ message_id: number }))),
    async after(c, { bot, chat_id }) {
      const texts = (all: readonly { readonly text: string }[]) => all.map(({ text }) => text);
      const originals = texts(await c.history(c.ann, bot.id));
      expect(new Set(originals).size).toBe(10);
      expect(texts(await c.history(c.owner, chat_id))).toEqual(originals);
    },
  }),
  row({
    title: '§8 Messages per batch: forwardMessages of 101 → refused, and none is sent',
    arrange: batchOf(101),
    act: (c, { bot, ...at }) => c.call(bot, 'forwardMessages', at),
    answer: () => bad('too many message identifiers specified'),
  }),
];

export const forwardingRows: readonly Row[] = [...forwards, ...copies, ...batches, ...protection, ...sizes];
