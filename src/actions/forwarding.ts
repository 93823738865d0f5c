/** Builds messages that are forwards or copies (interface §4.3, behaviour §6). */

import { copyOf, forwardOf } from '../content/kinds.js';
import { pollIn } from '../content/poll.js';
import { type ErrorName, fail } from '../errors.js';
import type { Random } from '../random.js';
import { isTokenEntity } from '../rules/token_entity.js';
import {
  type Content,
  type ForwardOrigin,
  type InlineKeyboard,
  messageFlags,
  messageKinds,
  type Profile,
} from '../store/core/codec.js';
import type { Bot, User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { NewMessage, Sender } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';
import { newGroup } from './albums.js';
import { botSender, chatOfBot, userSender } from './compose.js';
import { assertPollAllowed, mayCopy, withCopiedPolls, withNewPolls, withResults } from './polls.js';

/** A forward shows where the original message was sent. A copy does not. */
export type Way = 'forward' | 'copy';

export interface Options {
  readonly protect_content?: boolean | undefined;
  readonly disable_notification?: boolean | undefined;
}

const protectedErrors = { forward: 'forward_protected', copy: 'copy_protected' } as const;

export const forwardingErrors = [
  'chat_id_empty',
  'chat_not_found',
  'cant_initiate',
  'bot_blocked',
  'not_group_member',
  'not_channel_member',
  'posting_not_allowed',
  'sending_not_permitted',
  'entities_too_long',
  'poll_public_in_channel',
] as const satisfies readonly ErrorName[];

interface Resending {
  readonly store: Store;
  readonly sender: Sender;
  readonly from: ChatRef;
  readonly to: ChatRef;
  /** The profile of a direct chat's bot, as the sender sees it. The sender may be this bot. */
  readonly bot: Profile | null;
}

interface Chats {
  readonly chat_id: number | string;
  readonly from_chat_id: number | string;
}

const byBot = (store: Store, bot: Bot, { chat_id, from_chat_id }: Chats): Resending => {
  const sender = botSender(bot);
  const [from, to] = [chatOfBot(bot.id, from_chat_id), chatOfBot(bot.id, chat_id)];
  return { store, sender, from, to, bot: sender.profile };
};

/**
 * Reads the given messages in the given order from a chat that the sender may read. The entry of a missing message or a
 * service message is null. Polls have their current results. Errors: `chat_not_found`, `not_group_member`,
 * `not_channel_member`, `not_chat_member`, `forward_protected` or `copy_protected` if a message is protected,
 * `poll_public_in_channel`.
 */
async function sourcesOf(
  { store, sender, from, to }: Resending,
  way: Way,
  ids: readonly number[],
): Promise<Array<StoredMessage | null>> {
  const found = await store.messages.readMany(from, sender, ids);
  const sources = found.map((source) => (source?.record.kind === messageKinds.service ? null : source));
  if (sources.some((source) => source && (source.record.flags & messageFlags.protected) !== 0))
    fail(protectedErrors[way]);
  const hasNamedPoll = sources.some((source) => source && pollIn(source.record.content)?.named);
  await assertPollAllowed(store, to, hasNamedPoll);
  const shown = await withResults(
    store,
    { id: 0, isBot: true },
    sources.filter((source) => source !== null),
  );
  const byId = new Map(shown.map((source) => [source.id, source]));
  return sources.map((source) => source && (byId.get(source.id) ?? source));
}

export const readSources = (
  { store, bot }: { readonly store: Store; readonly bot: Bot },
  way: Way,
  chats: Chats,
  ids: readonly number[],
): Promise<Array<StoredMessage | null>> => sourcesOf(byBot(store, bot, chats), way, ids);

/**
 * Removes the fields that become outdated or depend on the viewer, because the result is stored as a message's origin.
 */
const named = ({ m: _members, g: _language, ...profile }: Profile): Profile => profile;

/**
 * Returns the origin to store in a forward of this message. If the message is itself a forward, keeps the first origin.
 * The origin of a channel post is the channel, not the author.
 */
function originOf(bot: Profile | null, { chat, id, peer, record }: StoredMessage): ForwardOrigin {
  const { date, origin, sender } = record;
  if (origin.forward) return origin.forward;
  if (peer.t === 'channel') return { chat: named(peer), message: id, date };
  // In a direct chat, takes the bot's profile from `bot`, because message records there do not contain the profile.
  const from = isDirect(chat) ? (sender === chat.id ? bot : peer) : origin.from;
  return from === undefined || from === null ? { date } : { from: named(from), date };
}

export interface Overrides {
  readonly content?: Content;
  readonly markup?: InlineKeyboard | null;
  readonly origin?: NewMessage['origin'];
  readonly replyTo?: number;
  readonly allowMissingReply?: boolean;
}

const keyboardIn = ({ origin }: Overrides) => (origin === undefined ? {} : { origin });

/**
 * Builds the new message. A forward has no keyboard, because the buttons belong to the bot that made them. A copy keeps
 * the keyboard, because a copy is a message of the sender.
 */
export function resend(
  { bot, store }: { readonly bot: Bot; readonly store: Store },
  way: Way,
  source: StoredMessage,
  options: Options,
  overrides: Overrides = {},
): NewMessage {
  return resentAs(store.random, botSender(bot).profile, way, source, options, overrides);
}

/** If the message was an inline result, the forward still shows which bot made the result. */
const forwardedOrigin = (bot: Profile | null, source: StoredMessage): NonNullable<NewMessage['origin']> => {
  const { via } = source.record.origin;
  return { forward: originOf(bot, source), ...(via === undefined ? {} : { via }) };
};

function resentAs(
  random: Random,
  bot: Profile | null,
  way: Way,
  source: StoredMessage,
  options: Options,
  overrides: Overrides,
): NewMessage {
  const { content, markup } = source.record;
  const forwarded = way === 'forward';
  return {
    content: overrides.content ?? (forwarded ? forwardOf(content) : copyOf(content, random)),
    markup: overrides.markup !== undefined ? overrides.markup : forwarded ? null : markup,
    flags:
      (forwarded ? messageFlags.forwarded : 0) |
      (options.protect_content ? messageFlags.protected : 0) |
      (options.disable_notification ? messageFlags.silent : 0),
    replyTo: overrides.replyTo ?? 0,
    allowMissingReply: overrides.allowMissingReply ?? false,
    ...(forwarded ? { origin: forwardedOrigin(bot, source) } : keyboardIn(overrides)),
  };
}

/** Puts several messages that come from the same album into one new album. */
function keepAlbums(
  random: Random,
  sources: readonly StoredMessage[],
  messages: readonly NewMessage[],
): NewMessage[] {
  const albums = sources.map((source) => source.record.origin.group);
  const newAlbums = new Map<string, string>();
  return messages.map((message, i) => {
    const album = albums[i];
    if (album === undefined || albums.indexOf(album) === albums.lastIndexOf(album)) return message;
    const group = newAlbums.get(album) ?? newGroup(random);
    newAlbums.set(album, group);
    return { ...message, origin: { ...message.origin, group } };
  });
}

/** Sends copies as a bot. Each poll in a copy becomes a new poll. */
export const sendCopies = <T>(
  store: Store,
  bot: Bot,
  chat: ChatRef,
  make: () => Promise<NewMessage[]>,
  send: (given: () => Promise<NewMessage[]>) => Promise<T>,
): Promise<T> =>
  withNewPolls(store, (create) =>
    send(async () =>
      withCopiedPolls(await make(), { bot: bot.id, now: store.time.nowSeconds() }, (draft) =>
        create(chat, draft),
      ),
    ),
  );

interface ManyParams extends Options, Chats {
  readonly message_ids: readonly number[];
  readonly remove_caption?: boolean | undefined;
}

/**
 * Forwards or copies several messages from one chat in one script. Returns the new ids in the given order. Skips
 * missing messages. Errors: those of `readSources` and of sending, and `nothing_to_forward`.
 */
export async function resendMany(
  context: { readonly store: Store; readonly bot: Bot },
  way: Way,
  p: ManyParams,
): Promise<Array<{ readonly message_id: number }>> {
  const { store, bot } = context;
  const chat = chatOfBot(bot.id, p.chat_id);
  const send = (given: () => Promise<NewMessage[]>) => store.messages.sendMany(chat, botSender(bot), given);
  const make = () => resentMany(byBot(store, bot, p), way, p);
  const { ids } = await (way === 'forward' ? send(make) : sendCopies(store, bot, chat, make, send));
  return ids.map((message_id) => ({ message_id }));
}

async function resentMany(
  resending: Resending,
  way: Way,
  p: Options & Pick<ManyParams, 'message_ids' | 'remove_caption'>,
): Promise<NewMessage[]> {
  const found = await sourcesOf(resending, way, p.message_ids);
  const { id } = resending.sender;
  const { random, time } = resending.store;
  const now = time.nowSeconds();
  const sources = found.filter(
    (source): source is StoredMessage => source !== null && (way === 'forward' || mayCopy(source, id, now)),
  );
  if (sources.length === 0) fail('nothing_to_forward');
  const messages = sources.map((source) => {
    const { media } = source.record.content;
    const bare = p.remove_caption && media !== undefined ? { content: { media } } : {};
    return resentAs(random, resending.bot, way, source, p, bare);
  });
  return keepAlbums(random, sources, messages);
}

/**
 * Removes token placeholders. Only the management bot's original message shows the token, and only to the bot's owner.
 */
function withoutTokens(message: NewMessage): NewMessage {
  const { entities } = message.content;
  if (!entities?.some(isTokenEntity)) return message;
  const kept = entities.filter((entity) => !isTokenEntity(entity));
  return { ...message, content: { ...message.content, entities: kept } };
}

/**
 * Forwards messages as a person, in one script. Returns the new ids in the given order. Skips missing messages. Errors:
 * those of reading the source chat and of writing to the target, `forward_protected`, `nothing_to_forward`.
 */
export async function forwardAs(
  { store, user }: { readonly store: Store; readonly user: User },
  to: ChatRef,
  from: ChatRef,
  ids: readonly number[],
): Promise<Array<{ readonly message_id: number }>> {
  const sender = userSender(user);
  const sent = await store.messages.sendMany(to, sender, async () => {
    // Uses the bot's default profile, because readers of the target chat may use other languages than the sender.
    const bot = isDirect(from) ? await store.bots.profile(from.id, null) : null;
    const made = await resentMany({ store, sender, from, to, bot }, 'forward', { message_ids: ids });
    return made.map(withoutTokens);
  });
  return sent.ids.map((message_id) => ({ message_id }));
}
