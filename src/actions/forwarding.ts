/** What becomes of messages that are forwarded or copied (interface §4.3, behaviour §6). */
import { type ErrorName, fail } from '../errors.js';
import { isTokenEntity } from '../rules/token_entity.js';
import {
  type Content,
  type ForwardOrigin,
  type InlineKeyboard,
  messageFlags,
  messageKinds,
  type Profile,
} from '../store/core/codec.js';
import { uniqueText } from '../store/core/context.js';
import type { Bot, User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { NewMessage, Sender } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';
import { botSender, chatOfBot, userSender } from './compose.js';

/** Whether the recipient sees where a message was first sent. */
export type Way = 'forward' | 'copy';

/** What a call asks of all messages that it sends. */
export interface Options {
  readonly protect_content?: boolean | undefined;
  readonly disable_notification?: boolean | undefined;
}

const protectedErrors = { forward: 'forward_protected', copy: 'copy_protected' } as const;

/** Errors that every method of this kind can answer, besides those for the messages themselves. */
export const forwardingErrors = [
  'chat_id_empty',
  'chat_not_found',
  'cant_initiate',
  'bot_blocked',
  'not_group_member',
  'not_channel_member',
  'posting_not_allowed',
  'entities_too_long',
] as const satisfies readonly ErrorName[];

/** What is sent again: by a bot, or by a person. */
interface Resending {
  readonly store: Store;
  readonly sender: Sender;
  /** Where it lies. */
  readonly from: ChatRef;
  /** Of a direct chat, as the sender sees it; a bot's own is its sender's. */
  readonly bot: Profile | null;
}

const byBot = (store: Store, bot: Bot, from: number | string): Resending => {
  const sender = botSender(bot);
  return { store, sender, from: chatOfBot(bot.id, from), bot: sender.profile };
};

/**
 * The messages that someone names in a chat that they read, in the order given; null where there is none, and where there
 * is a service message, which nobody can send again. Errors: `chat_not_found`, `not_group_member`,
 * `not_channel_member`, `not_chat_member`; `forward_protected` or `copy_protected` when one of them is protected.
 */
async function sourcesOf(
  { store, sender, from }: Resending,
  way: Way,
  ids: readonly number[],
): Promise<Array<StoredMessage | null>> {
  const found = await store.messages.readMany(from, sender, ids);
  const sources = found.map((source) => (source?.record.kind === messageKinds.service ? null : source));
  if (sources.some((source) => source && (source.record.flags & messageFlags.protected) !== 0))
    fail(protectedErrors[way]);
  return sources;
}

/** The same for a bot. */
export const readSources = (
  { store, bot }: { readonly store: Store; readonly bot: Bot },
  way: Way,
  from: number | string,
  ids: readonly number[],
): Promise<Array<StoredMessage | null>> => sourcesOf(byBot(store, bot, from), way, ids);

/** As an origin names someone: what would grow old, or is for the chat of a person alone, is left out. */
const named = ({ m: _members, g: _language, ...profile }: Profile): Profile => profile;

/** Where a message was first sent: a forward goes on telling of its own origin, a channel stands for who wrote there. */
function originOf(bot: Profile | null, { chat, id, peer, record }: StoredMessage): ForwardOrigin {
  const { date, origin, sender } = record;
  if (origin.forward) return origin.forward;
  if (peer.t === 'channel') return { chat: named(peer), message: id, date };
  // A direct chat keeps its person alone.
  const from = isDirect(chat) ? (sender === chat.id ? bot : peer) : origin.from;
  return from === undefined || from === null ? { date } : { from: named(from), date };
}

/** What a copy has instead of the original's own. */
export interface Overrides {
  readonly content?: Content;
  readonly markup?: InlineKeyboard | null;
  readonly replyTo?: number;
  readonly allowMissingReply?: boolean;
}

/**
 * The new message. A forward has no keyboard: its buttons belong to the bot that put them there. A copy is the sender's
 * own message and keeps it.
 */
export function resend(
  bot: Bot,
  way: Way,
  source: StoredMessage,
  options: Options,
  overrides: Overrides = {},
): NewMessage {
  return resentAs(botSender(bot).profile, way, source, options, overrides);
}

function resentAs(
  bot: Profile | null,
  way: Way,
  source: StoredMessage,
  options: Options,
  overrides: Overrides,
): NewMessage {
  const { content, markup } = source.record;
  const forwarded = way === 'forward';
  return {
    content: overrides.content ?? content,
    markup: overrides.markup !== undefined ? overrides.markup : forwarded ? null : markup,
    flags:
      (forwarded ? messageFlags.forwarded : 0) |
      (options.protect_content ? messageFlags.protected : 0) |
      (options.disable_notification ? messageFlags.silent : 0),
    replyTo: overrides.replyTo ?? 0,
    allowMissingReply: overrides.allowMissingReply ?? false,
    ...(forwarded ? { origin: { forward: originOf(bot, source) } } : {}),
  };
}

/** Gives messages that were of one album, when more than one of it is sent again, an album of their own. */
function keepAlbums(sources: readonly StoredMessage[], messages: readonly NewMessage[]): NewMessage[] {
  const albums = sources.map((source) => source.record.origin.group);
  const anew = new Map<string, string>();
  return messages.map((message, i) => {
    const album = albums[i];
    if (album === undefined || albums.indexOf(album) === albums.lastIndexOf(album)) return message;
    const group = anew.get(album) ?? uniqueText();
    anew.set(album, group);
    return { ...message, origin: { ...message.origin, group } };
  });
}

interface ManyParams extends Options {
  readonly chat_id: number | string;
  readonly from_chat_id: number | string;
  readonly message_ids: readonly number[];
  readonly remove_caption?: boolean | undefined;
}

/**
 * Sends messages of one chat again into another, all in one step, and returns their ids in the order given; what is
 * missing is left out. Errors: those of `readSources` and of sending, and `nothing_to_forward`.
 */
export async function resendMany(
  context: { readonly store: Store; readonly bot: Bot },
  way: Way,
  p: ManyParams,
): Promise<Array<{ readonly message_id: number }>> {
  const { store, bot } = context;
  const chat = chatOfBot(bot.id, p.chat_id);
  const { ids } = await store.messages.sendMany(chat, botSender(bot), () =>
    resentMany(byBot(store, bot, p.from_chat_id), way, p),
  );
  return ids.map((message_id) => ({ message_id }));
}

async function resentMany(
  resending: Resending,
  way: Way,
  p: Options & Pick<ManyParams, 'message_ids' | 'remove_caption'>,
): Promise<NewMessage[]> {
  const found = await sourcesOf(resending, way, p.message_ids);
  const sources = found.filter((source) => source !== null);
  if (sources.length === 0) fail('nothing_to_forward');
  const messages = sources.map((source) => {
    const { media } = source.record.content;
    const bare = p.remove_caption && media !== undefined ? { content: { media } } : {};
    return resentAs(resending.bot, way, source, p, bare);
  });
  return keepAlbums(sources, messages);
}

/** Without the place of a token: its owner is shown one where the management bot wrote it, and nowhere else. */
function withoutTokens(message: NewMessage): NewMessage {
  const { entities } = message.content;
  if (!entities?.some(isTokenEntity)) return message;
  const kept = entities.filter((entity) => !isTokenEntity(entity));
  return { ...message, content: { ...message.content, entities: kept } };
}

/**
 * Forwards messages as a person, in one step, and returns their ids in the order given; what is missing is left out. Errors:
 * those of reading the one chat and of writing to the other, `forward_protected`, `nothing_to_forward`.
 */
export async function forwardAs(
  { store, user }: { readonly store: Store; readonly user: User },
  to: ChatRef,
  from: ChatRef,
  ids: readonly number[],
): Promise<Array<{ readonly message_id: number }>> {
  const sender = userSender(user);
  const sent = await store.messages.sendMany(to, sender, async () => {
    // Named as everyone may know it: others read in other languages.
    const bot = isDirect(from) ? await store.bots.profile(from.id, null) : null;
    const made = await resentMany({ store, sender, from, bot }, 'forward', { message_ids: ids });
    return made.map(withoutTokens);
  });
  return sent.ids.map((message_id) => ({ message_id }));
}
