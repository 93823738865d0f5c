/** Turns parameters into what the store keeps: message content, chats and senders. */
import { type ErrorName, fail } from '../errors.js';
import { limits } from '../limits.js';
import { type EntityInput, formatText } from '../rules/entities/format.js';
import { checkKeyboard } from '../rules/keyboard.js';
import { captionText, messageText } from '../rules/text.js';
import { userProfile } from '../store/chats/chats.js';
import type { Content, Entity, InlineKeyboard } from '../store/core/codec.js';
import type { Bot, User } from '../store/core/control.js';
import { type ChatRef, directChat, sharedChat } from '../store/core/keys.js';
import { botProfile } from '../store/core/profiles.js';
import type { Sender } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';

/** Errors of calls on a chat that the bot must be in. */
export const chatErrors = [
  'chat_id_empty',
  'chat_not_found',
  'cant_initiate',
  'not_group_member',
  'not_channel_member',
] as const satisfies readonly ErrorName[];

/** Errors of an inline keyboard. */
export const keyboardErrors = [
  'keyboard_unparsable',
  'keyboard_too_large',
  'button_data_invalid',
  'button_text_empty',
  'button_type_invalid',
] as const satisfies readonly ErrorName[];

const botSenders = new WeakMap<Bot, Sender>();

export function botSender(bot: Bot): Sender {
  const known = botSenders.get(bot);
  if (known) return known;
  const sender: Sender = { id: bot.id, isBot: true, profile: botProfile(bot) };
  botSenders.set(bot, sender);
  return sender;
}

export const userSender = (user: User): Sender => ({ id: user.id, isBot: false, profile: userProfile(user) });

/** Resolves the chat id in a bot's call. `chat_names.ts` has already replaced usernames by ids. Error: `chat_not_found`. */
export function chatOfBot(bot: number, chatId: number | string): ChatRef {
  if (typeof chatId === 'string' || chatId === 0 || chatId === bot) return fail('chat_not_found');
  return chatId > 0 ? directChat(bot, chatId) : sharedChat(chatId);
}

/** Resolves the chat id in a person's call. A direct chat has the id of its bot. Error: `chat_not_found`. */
export function chatOfUser(user: number, chatId: number): ChatRef {
  if (chatId === 0 || chatId === user) return fail('chat_not_found');
  return chatId > 0 ? directChat(chatId, user) : sharedChat(chatId);
}

/** The author of a text and the chat it is for. */
export interface Writer {
  readonly id: number;
  readonly isBot: boolean;
  /** Null while the chat is unknown: an edited post is looked up later. */
  readonly chat: ChatRef | null;
}

/**
 * Attaches a copy of the mentioned profile to each mention by id. Drops mentions of unknown ids and of people who share
 * no chat with the writer, so that a mention does not reveal a stranger. Each lookup counts as a call of the writer.
 * Error: `too_many_requests`.
 */
async function resolveMentions(store: Store, writer: Writer, entities: readonly Entity[]): Promise<Entity[]> {
  const idOf = (entity: Entity) => (entity.user as { id: number }).id;
  const mentioned = [...new Set(entities.filter(({ type }) => type === 'text_mention').map(idOf))];
  await store.fairUse?.more(writer, mentioned.length);
  const known = await store.chats.acquaintances(writer.id, writer.chat, mentioned);
  const users = new Map(
    await Promise.all([...known].map(async (id) => [id, await store.users.find(id)] as const)),
  );
  return entities.flatMap((entity) => {
    if (entity.type !== 'text_mention') return [entity];
    const user = users.get(idOf(entity));
    return user ? [{ ...entity, user: userProfile(user) }] : [];
  });
}

/**
 * The content of a text message. Refuses sources over `limits.markup_length_max` code units before parsing, because
 * parsing them would delay all other calls. The bound fits the longest text with the most and longest links. Errors:
 * `text_empty`, `text_too_long`, `parse_mode_unsupported`, `entities_unparsable`.
 */
export function textContent(
  store: Store,
  writer: Writer,
  given: {
    readonly text: string;
    readonly parse_mode?: string | undefined;
    readonly entities?: readonly EntityInput[] | undefined;
  },
): Content | Promise<Content> {
  // Forms send line breaks as CRLF, JSON as LF. Both must give the same text.
  const source = given.text.includes('\r') ? given.text.replaceAll('\r', '') : given.text;
  if (source.length > limits.markup_length_max) fail('text_too_long');
  const { text, entities } = formatText(source, given.parse_mode, given.entities);
  messageText(text);
  return contentOf(store, writer, text, entities as readonly Entity[]);
}

function contentOf(
  store: Store,
  writer: Writer,
  text: string,
  entities: readonly Entity[],
): Content | Promise<Content> {
  if (entities.length === 0) return { text };
  if (!entities.some((entity) => entity.type === 'text_mention')) return { text, entities };
  return resolveMentions(store, writer, entities).then((resolved) =>
    resolved.length === 0 ? { text } : { text, entities: resolved },
  );
}

/**
 * The caption of a message with media. Has no text when the caption is absent or blank. Errors: `caption_too_long`,
 * `parse_mode_unsupported`, `entities_unparsable`.
 */
export function captionContent(
  store: Store,
  writer: Writer,
  given: {
    readonly caption?: string | undefined;
    readonly parse_mode?: string | undefined;
    readonly caption_entities?: readonly EntityInput[] | undefined;
  },
): Content | Promise<Content> {
  const source = (given.caption ?? '').replaceAll('\r', '');
  if (source.length > limits.markup_length_max) fail('caption_too_long');
  const { text, entities } = formatText(source, given.parse_mode, given.caption_entities);
  return captionText(text) === '' ? {} : contentOf(store, writer, text, entities as readonly Entity[]);
}

/** The inline keyboard of a call; null for none. Errors: see `checkKeyboard`. */
export function keyboard(
  markup: { readonly inline_keyboard?: Parameters<typeof checkKeyboard>[0] } | undefined,
): InlineKeyboard | null {
  return checkKeyboard(markup?.inline_keyboard);
}
