/**
 * Interface tests of pins (interface §3), of the methods that set pins (§4.3), and of the service message about a pin
 * (§6).
 */
import { expect } from 'vitest';
import type { Bot, Case, Direct } from './case.js';
import { bad, ok, type Row, row } from './row.js';
import {
  botMessage,
  botUser,
  channelChat,
  groupChat,
  known,
  number,
  person,
  personMessage,
  privateChat,
  texts,
} from './shapes.js';

interface Pinned extends Direct {
  readonly a: number;
  readonly b: number;
}

/**
 * Creates a direct chat with two messages, and pins the given messages in the given order. Afterwards the bot has no
 * pending updates.
 */
const chatWith =
  (...pinned: ReadonlyArray<'a' | 'b'>) =>
  async (c: Case): Promise<Pinned> => {
    const at = await c.direct();
    const both = { a: await c.send(at.bot, at.chat, 'A'), b: await c.send(at.bot, at.chat, 'B') };
    for (const which of pinned)
      await c.result(at.bot, 'pinChatMessage', { chat_id: at.chat, message_id: both[which] });
    await c.drop(at.bot);
    return { ...at, ...both };
  };

/** Returns the pinned message as the bot and Ann see it, or undefined if no message is pinned. */
async function pinned(c: Case, { bot, chat }: Direct): Promise<object | undefined> {
  const { pinned_message: shown } = await c.result(bot, 'getChat', { chat_id: chat });
  const { pinned_message: seen } = await c.appResult(c.ann, 'GET', `/api/chats/${bot.id}`);
  expect(seen?.message_id).toBe(shown?.message_id);
  return shown;
}

const pinnedA = ({ bot, a }: Pinned, c: Case) => ({ ...botMessage(bot, c.ann, a), text: 'A' });
const pinnedB = ({ bot, b }: Pinned, c: Case) => ({ ...botMessage(bot, c.ann, b), text: 'B' });

/** Checks the update that the bot gets about its own pin, and the message that Ann sees. */
async function serviceMessage(c: Case, at: Pinned, of: object): Promise<void> {
  const expected = { ...botMessage(at.bot, c.ann), pinned_message: of };
  expect(await c.updates(at.bot, 1)).toEqual([{ update_id: number, message: expected }]);
  const [newest] = await c.history(c.ann, at.bot.id);
  expect(newest).toMatchObject({ from: botUser(at.bot), pinned_message: { text: expect.any(String) } });
}

const nothingHeard = async (c: Case, { bot }: Direct) => expect(await c.updates(bot, 0)).toEqual([]);

const call = (method: string, more: (at: Pinned) => object) => (c: Case, at: Pinned) =>
  c.call(at.bot, method, { chat_id: at.chat, ...more(at) });

const pinB = call('pinChatMessage', ({ b }) => ({ message_id: b }));
const done = () => ok(true);

const transitions: readonly Row[] = [
  row({
    title: '§3 Chat pin: none pinned, pinChatMessage → pinned, with a service message',
    arrange: chatWith(),
    ...{ act: pinB, answer: done },
    async after(c, at) {
      expect(await pinned(c, at)).toEqual(pinnedB(at, c));
      await serviceMessage(c, at, pinnedB(at, c));
    },
  }),
  row({
    title: '§3 Chat pin: none pinned, pinChatMessage of a message of the user → pinned',
    async arrange(c) {
      const at = await c.direct();
      return { ...at, message_id: await c.say(c.ann, at.bot.id, 'mine') };
    },
    act: (c, { bot, chat, message_id }) => c.call(bot, 'pinChatMessage', { chat_id: chat, message_id }),
    answer: done,
    async after(c, at) {
      const mine = { ...personMessage(c.ann, privateChat(c.ann), at.message_id), text: 'mine' };
      expect(await pinned(c, at)).toEqual(mine);
    },
  }),
  row({
    title: '§3 Chat pin: A pinned, pinChatMessage B → B pinned, A unpinned',
    arrange: chatWith('a'),
    ...{ act: pinB, answer: done },
    async after(c, at) {
      expect(await pinned(c, at)).toEqual(pinnedB(at, c));
      await serviceMessage(c, at, pinnedB(at, c));
      expect((await call('unpinChatMessage', ({ a }) => ({ message_id: a }))(c, at)).status).toBe(400);
    },
  }),
  row({
    title: '§3 Chat pin: B pinned, pinChatMessage B → B pinned, and nothing else changes',
    arrange: chatWith('b'),
    ...{ act: pinB, answer: done },
    async after(c, at) {
      expect(await pinned(c, at)).toEqual(pinnedB(at, c));
      await nothingHeard(c, at);
    },
  }),
  row({
    title: '§3 Chat pin: pinned, unpinChatMessage with message_id → that message is unpinned',
    arrange: chatWith('b'),
    act: call('unpinChatMessage', ({ b }) => ({ message_id: b })),
    answer: done,
    after: async (c, at) => expect(await pinned(c, at)).toBeUndefined(),
  }),
  row({
    title: '§3 Chat pin: A pinned, unpinChatMessage with the message_id of B → refused, A stays pinned',
    arrange: chatWith('a'),
    act: call('unpinChatMessage', ({ b }) => ({ message_id: b })),
    answer: () => bad(texts.noUnpin),
    after: async (c, at) => expect(await pinned(c, at)).toEqual(pinnedA(at, c)),
  }),
  row({
    title:
      '§3 Chat pin: pinned, §4.3.4 unpinChatMessage without message_id → the currently pinned message is unpinned',
    arrange: chatWith('a', 'b'),
    act: call('unpinChatMessage', () => ({})),
    answer: done,
    after: async (c, at) => expect(await pinned(c, at)).toBeUndefined(),
  }),
  row({
    title: '§3 Chat pin: none pinned, unpinChatMessage without message_id → refused',
    arrange: chatWith(),
    act: call('unpinChatMessage', () => ({})),
    answer: () => bad(texts.noUnpin),
  }),
  row({
    title: '§3 Chat pin: pinned, unpinAllChatMessages → none pinned',
    arrange: chatWith('a', 'b'),
    act: call('unpinAllChatMessages', () => ({})),
    answer: done,
    async after(c, at) {
      expect(await pinned(c, at)).toBeUndefined();
      await nothingHeard(c, at);
    },
  }),
  row({
    title: '§3 Chat pin: none pinned, unpinAllChatMessages → none pinned',
    arrange: chatWith(),
    act: call('unpinAllChatMessages', () => ({})),
    answer: done,
    after: async (c, at) => expect(await pinned(c, at)).toBeUndefined(),
  }),
  row({
    title: '§3 Chat pin: none pinned, pinChatMessage of an unknown message → refused',
    arrange: chatWith(),
    act: call('pinChatMessage', ({ b }) => ({ message_id: b + 1 })),
    answer: () => bad(texts.noPin),
  }),
];

const required = (method: string, missing: string, description: string) =>
  row({
    title: `§4.3 POST ${method} without ${missing} → refused`,
    arrange: chatWith('a'),
    act(c, { bot, chat, b }) {
      const { [missing]: _, ...given }: Record<string, number> = { chat_id: chat, message_id: b };
      return c.call(bot, method, given);
    },
    answer: () => bad(description),
  });
const requirements = [
  required('pinChatMessage', 'chat_id', 'chat_id is empty'),
  required('pinChatMessage', 'message_id', 'parameter "message_id" is required'),
  required('unpinChatMessage', 'chat_id', 'chat_id is empty'),
  required('unpinAllChatMessages', 'chat_id', 'chat_id is empty'),
];

/**
 * The two kinds of shared chats. Each item names the right that allows a bot to pin in this kind of chat. The right
 * `other` allows pinning only in the other kind of chat (§3).
 */
const places = [
  { kind: 'group', right: 'can_pin_messages', other: 'can_edit_messages', shape: groupChat },
  { kind: 'channel', right: 'can_edit_messages', other: 'can_pin_messages', shape: channelChat },
] as const;

interface Place {
  readonly bot: Bot;
  readonly chat: number;
  readonly message_id: number;
}

const rightRows = places.flatMap(({ kind, right, other, shape }) => {
  const place = (rights: Readonly<Record<string, boolean>> | undefined, pin: boolean) => async (c: Case) => {
    const bot = await c.bot();
    const chat = await (kind === 'group' ? c.group : c.newChannel)([bot], rights);
    const message_id = await c.say(c.owner, chat, 'of the owner');
    if (pin) await c.appResult(c.owner, 'POST', `/api/chats/${chat}/pin`, { message_id });
    // In a group or channel, the bot gets its updates a moment after the call was answered.
    await c.updates(bot, pin ? 2 : 1);
    return { bot, chat, message_id };
  };
  const now = async (c: Case, { bot, chat }: Place) =>
    (await c.result(bot, 'getChat', { chat_id: chat })).pinned_message;
  const methods = [
    { method: 'pinChatMessage', needs: false, more: (at: Place) => ({ message_id: at.message_id }) },
    { method: 'unpinChatMessage', needs: true, more: () => ({}) },
    { method: 'unpinAllChatMessages', needs: true, more: () => ({}) },
  ];
  return methods.flatMap(({ method, needs, more }) => {
    const act = (c: Case, at: Place) => c.call(at.bot, method, { chat_id: at.chat, ...more(at) });
    const refused = (who: string, rights: Readonly<Record<string, boolean>> | undefined) =>
      row({
        title: `§3 Chat pin: ${method} in a ${kind} by ${who} → refused`,
        ...{ arrange: place(rights, needs), act, answer: () => bad(texts.noPinRight) },
        after: async (c, at) =>
          expect((await now(c, at))?.message_id).toBe(needs ? at.message_id : undefined),
      });
    return [
      row({
        title: `§3 Chat pin: ${method} in a ${kind} by an administrator with ${right} → true`,
        ...{ arrange: place({ [right]: true }, needs), act, answer: done },
        async after(c, at) {
          const from = kind === 'group' ? personMessage(c.owner, shape(at.chat), at.message_id) : undefined;
          const post = {
            ...{ message_id: at.message_id, from: person(c.owner), sender_chat: shape(at.chat) },
            ...{ chat: shape(at.chat), date: number },
          };
          const shown = { ...(from ?? post), text: 'of the owner' };
          expect(await now(c, at)).toEqual(needs ? undefined : shown);
        },
      }),
      refused(`an administrator with ${other} alone`, { [other]: true }),
      ...(kind === 'group' ? [refused('a member', undefined)] : []),
    ];
  });
});

/** Makes a row that tests the notification about a pin (§6) and the optional parameter disable_notification (§4.3). */
const loud = (title: string, given: object, notify: boolean) =>
  row({
    title,
    arrange: chatWith(),
    act: call('pinChatMessage', ({ b }) => ({ message_id: b, ...given })),
    answer: done,
    async after(c, at) {
      const ofThis = ({ data }: { data: { chat?: { id?: number }; pinned_message?: object } }) =>
        data.chat?.id === at.bot.id && data.pinned_message !== undefined;
      const { data } = await c.events.received((each) => each.event === 'message' && ofThis(each));
      const bot = botUser(at.bot);
      const chat = {
        ...{ id: at.bot.id, type: 'private', first_name: at.bot.name, username: at.bot.username },
      };
      expect(data).toEqual({
        ...{ message_id: number, from: bot, chat, date: number, notify },
        pinned_message: { message_id: at.b, from: bot, chat, date: number, text: 'B' },
      });
      await serviceMessage(c, at, pinnedB(at, c));
    },
  });

const events: readonly Row[] = [
  loud('§6 pinned_message: in the chat, and users get a push notification', {}, true),
  loud(
    '§6 pinned_message: disable_notification false → a push notification',
    { disable_notification: false },
    true,
  ),
  loud(
    '§6 pinned_message: disable_notification true → in the chat without a push notification',
    { disable_notification: true },
    false,
  ),
  row({
    title: '§6 pinned_message: the user pins → the bot gets a service message from the user',
    arrange: chatWith(),
    act: (c, at) => c.app(c.ann, 'POST', `/api/chats/${at.bot.id}/pin`, { message_id: at.b }),
    answer: done,
    async after(c, at) {
      const expected = { ...personMessage(c.ann, privateChat(c.ann)), pinned_message: pinnedB(at, c) };
      expect(await c.updates(at.bot, 1)).toEqual([{ update_id: number, message: expected }]);
      const [newest] = await c.history(c.ann, at.bot.id);
      expect(newest.from).toEqual(known(c.ann));
    },
  }),
  row({
    title: '§6 pinned_message: a bot pins in a group → it gets the service message, and other bots do not',
    async arrange(c) {
      const [bot, other] = [await c.bot(), await c.bot()];
      const chat = await c.group([bot, other], { can_pin_messages: true });
      const message_id = await c.send(bot, chat, 'A');
      for (const each of [bot, other]) await c.drop(each);
      return { bot, other, chat, message_id };
    },
    act: (c, { bot, chat, message_id }) => c.call(bot, 'pinChatMessage', { chat_id: chat, message_id }),
    answer: done,
    async after(c, { bot, other, chat, message_id }) {
      const sent = { from: botUser(bot), chat: groupChat(chat), date: number };
      const expected = { message_id: number, ...sent, pinned_message: { message_id, ...sent, text: 'A' } };
      expect(await c.updates(bot, 1)).toEqual([{ update_id: number, message: expected }]);
      // The first update of the second bot is about this message. This shows that the second bot got no update about
      // the earlier pin.
      await c.say(c.owner, chat, 'after');
      expect(await c.updates(other, 1)).toMatchObject([{ message: { text: 'after' } }]);
    },
  }),
];

export const pinRows: readonly Row[] = [...transitions, ...requirements, ...rightRows, ...events];
