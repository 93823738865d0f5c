/** Runs a random workload of all calls that change chats. Keeps a record of the acknowledged changes. */
import { ApiError } from '../../src/errors.js';
import type { Content, Media } from '../../src/store/core/codec.js';
import type { User } from '../../src/store/core/control.js';
import { type ChatRef, isDirect } from '../../src/store/core/keys.js';
import type { Edit, NewMessage, Sender } from '../../src/store/messages/messages.js';
import { makeBot, makeDirect, makeUser, type Person, type TestNode, text } from './store.js';

/** The random number generator mulberry32. With the seed, a failure can be repeated. */
export function numbersFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export type Acked = { readonly content: Content; readonly markup: unknown } | null;

export interface Room {
  readonly chat: ChatRef;
  readonly people: readonly Sender[];
  readonly messages: Map<number, Acked>;
  readonly posts: Map<number, number>;
  pinned: number;
  readonly reactions: Map<number, Map<number, Set<string>>>;
  readonly next: () => number;
}

const media: Media = { type: 'photo', id: 'f', unique: 'u', url: 'https://example.org/a.jpg' };
const allEmoji = ['👍', '🔥', '❤', '🎉'];
const refusals = new Set([
  'too_many_requests',
  'message_to_edit_not_found',
  'message_cant_be_edited',
  'message_not_modified',
  'no_text_to_edit',
  'no_caption_to_edit',
  'media_cant_be_edited',
  'message_to_delete_not_found',
  'message_cant_be_deleted',
  'message_to_pin_not_found',
  'message_to_unpin_not_found',
  'service_cant_be_pinned',
  'reply_not_found',
  'button_not_found',
  'message_not_found',
  'post_not_found',
  // The error of a call that changed nothing, because the records that it needs were evicted at each attempt.
  'unavailable',
]);

/** Returns the answer of a call, or null for a refusal that this workload expects. */
export async function attempt<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    // After a call with an unknown outcome, the change may or may not be stored.
    const cause = error instanceof Error ? (error.cause as Error | undefined) : undefined;
    const known = !/is unknown|unreachable/.test(cause?.message ?? '');
    if (error instanceof ApiError && refusals.has(error.kind) && known) return null;
    throw error;
  }
}

/** These users need no member records, because every signed-in user sees a public channel. */
const reactors: User[] = Array.from({ length: 6 }, (_, i) => ({
  id: 8_000_000_000 + i,
  externalId: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
  ...{
    firstName: 'P',
    lastName: null,
    username: null,
    languageCode: null,
    tokens: [],
    addToGroups: 'everyone' as const,
    startChats: 'everyone' as const,
    avatar: [],
  },
}));

/** Makes one call in a room. Each room has one call at a time, so that acknowledged changes have an order. */
export async function act(nodes: readonly TestNode[], room: Room): Promise<void> {
  const { chat, people, messages, next } = room;
  const pick = <T>(from: readonly T[]) => from[Math.floor(next() * from.length)] as T;
  const { store } = pick(nodes);
  const who = pick(people);
  const id = messages.size === 0 ? 1 : pick([...messages.keys()]);
  const word = `w${Math.floor(next() * 1e6)} 🙂`;
  const made = (): NewMessage => ({
    ...text(word, next() < 0.3 ? 'go' : undefined),
    ...(next() < 0.3 ? { content: { text: word, media } } : {}),
    replyTo: next() < 0.2 ? id : 0,
    flags: next() < 0.2 ? 2 : 0,
  });
  const noteSent = (sent: { id: number; record: { content: Content; markup: unknown; post: number } }) => {
    messages.set(sent.id, { content: sent.record.content, markup: sent.record.markup });
    if (sent.record.post !== 0) room.posts.set(sent.record.post, sent.id);
  };
  const noteRemoved = (removed: number) => {
    if (messages.has(removed)) messages.set(removed, null);
    if (room.pinned === removed) room.pinned = 0;
  };
  const what = pick([
    'send',
    'send',
    'many',
    'edit',
    'edit',
    'remove',
    'removeMany',
    'pin',
    'unpin',
    'unpinAll',
    'press',
    'react',
    'react',
    'react',
  ]);
  switch (what) {
    case 'send': {
      const sent = await attempt(store.messages.send(chat, who, made()));
      if (sent) noteSent(sent);
      return;
    }
    case 'many': {
      const batch = [made(), { ...made(), replyTo: 0 }];
      const many = await attempt(store.messages.sendMany(chat, who, batch));
      for (const sent of many?.messages ?? []) noteSent(sent);
      return;
    }
    case 'edit': {
      const kind = pick(['text', 'caption', 'media', 'markup'] as const);
      const { markup } = text(word, next() < 0.5 ? 'go' : undefined);
      const contents = { text: { text: word }, caption: { text: word }, media: { text: word, media } };
      const change: Edit =
        kind === 'markup' ? { what: kind, markup } : { what: kind, content: contents[kind], markup };
      const edited = await attempt(store.messages.edit(chat, who, id, change));
      if (edited) messages.set(id, { content: edited.record.content, markup: edited.record.markup });
      return;
    }
    case 'remove': {
      if ((await attempt(store.messages.remove(chat, who, id).then(() => true))) !== null) noteRemoved(id);
      return;
    }
    case 'removeMany': {
      const ids = [id, pick([...messages.keys(), 1]), 999_999];
      if ((await attempt(store.messages.removeMany(chat, who, ids).then(() => true))) !== null)
        ids.forEach(noteRemoved);
      return;
    }
    case 'pin': {
      if ((await attempt(store.pins.pin(chat, who, id, next() < 0.5).then(() => true))) !== null)
        room.pinned = id;
      return;
    }
    case 'unpin': {
      const target = next() < 0.5 ? null : id;
      if ((await attempt(store.pins.unpin(chat, who, target).then(() => true))) !== null) room.pinned = 0;
      return;
    }
    case 'unpinAll': {
      await store.pins.unpinAll(chat, who);
      room.pinned = 0;
      return;
    }
    case 'press': {
      if (who.isBot) return;
      const query = await attempt(store.callbacks.press(chat, who.profile, id, 'go'));
      const bot = isDirect(chat) ? chat.id : null;
      if (query && bot) await store.callbacks.answer(bot, query, { text: word });
      return;
    }
    case 'react': {
      if (room.posts.size === 0) return;
      const post = pick([...room.posts.keys()]);
      const user = pick(reactors);
      const emoji = pick(allEmoji);
      const change = pick([
        { what: 'set', emoji },
        { what: 'set', emoji },
        { what: 'remove', emoji },
        { what: 'clear' },
      ] as const);
      const state = await attempt(store.posts.react(post, user, change));
      if (!state) return;
      const byUser = room.reactions.get(post) ?? new Map<number, Set<string>>();
      room.reactions.set(post, byUser.set(user.id, new Set(state.own)));
    }
  }
}

export async function makeRooms(a: TestNode, next: () => number): Promise<Room[]> {
  const rights = {
    can_pin_messages: true,
    can_edit_messages: true,
    can_post_messages: true,
    can_delete_messages: true,
  };
  const room = (chat: ChatRef, people: readonly Person[]): Room => ({
    ...{ chat, people: people.map(({ sender }) => sender), messages: new Map(), posts: new Map(), pinned: 0 },
    ...{ reactions: new Map(), next: numbersFrom(Math.floor(next() * 2 ** 31)) },
  });
  const rooms: Room[] = [];
  for (let i = 0; i < 2; i++) {
    const direct = await makeDirect(a);
    rooms.push(room(direct.chat, [direct.user, direct.bot]));
    const owner = await makeUser(a);
    const bot = await makeBot(a, owner);
    for (const type of ['group', 'channel'] as const) {
      const chat = await a.store.chats.create(type, type, owner.id);
      await a.store.chats.putMember(chat, { id: bot.id, is_bot: true }, 'administrator', rights);
      rooms.push(room(chat, [owner, bot]));
    }
  }
  return rooms;
}
