/** Turns parameters into values for the store: message content, chats and senders. */
import type { z } from 'zod';
import { type ErrorName, fail } from '../errors.js';
import { type EntityInput, formatText } from '../rules/entities/format.js';
import { checkKeyboard, checkReplyKeyboard, type ReplyKeyboardInput } from '../rules/keyboard.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { captionText, isBlank, messageText } from '../rules/text.js';
import { userProfile } from '../store/chats/chats.js';
import {
  type Content,
  type Entity,
  type InlineKeyboard,
  type LinkPreviewOptions,
  messageFlags,
} from '../store/core/codec.js';
import type { Bot, User } from '../store/core/control.js';
import { type ChatRef, directChat, sharedChat } from '../store/core/keys.js';
import { botProfile } from '../store/core/profiles.js';
import type { NewMessage, Sender } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';
import {
  boolean,
  chatId,
  type linkPreviewParams,
  messageId,
  optional,
  replyParameters,
} from '../wire/schema.js';

export const chatErrors = [
  'chat_id_empty',
  'chat_not_found',
  'cant_initiate',
  'not_group_member',
  'not_channel_member',
] as const satisfies readonly ErrorName[];

export const writingErrors = [
  'chat_not_found',
  'not_chat_member',
  'bot_blocked_by_you',
  'cant_write_to_person',
  'cant_write_to_bot',
  'bot_not_found',
] as const satisfies readonly ErrorName[];

export const inlineKeyboardErrors = [
  'keyboard_unparsable',
  'keyboard_too_large',
  'button_data_invalid',
  'button_text_empty',
  'button_type_invalid',
  'button_url_invalid',
  'button_copy_text_invalid',
  'button_query_invalid',
] as const satisfies readonly ErrorName[];

export const keyboardErrors = [
  ...inlineKeyboardErrors,
  'reply_button_text_empty',
  'placeholder_too_long',
] as const satisfies readonly ErrorName[];

export const replyAndFlags = {
  reply_parameters: replyParameters,
  reply_to_message_id: optional(messageId),
  allow_sending_without_reply: optional(boolean),
  disable_notification: optional(boolean),
  protect_content: optional(boolean),
};

export const sendingParams = { chat_id: chatId, ...replyAndFlags };
export type SendingParams = z.infer<z.ZodObject<typeof sendingParams>>;

export const sendingOf = (p: SendingParams) => ({
  flags:
    (p.protect_content ? messageFlags.protected : 0) | (p.disable_notification ? messageFlags.silent : 0),
  replyTo: p.reply_parameters?.message_id ?? p.reply_to_message_id ?? 0,
  allowMissingReply:
    p.reply_parameters?.allow_sending_without_reply ?? p.allow_sending_without_reply ?? false,
});

const botSenders = new WeakMap<Bot, Sender>();

export function botSender(bot: Bot): Sender {
  const known = botSenders.get(bot);
  if (known) return known;
  const sender: Sender = { id: bot.id, isBot: true, profile: botProfile(bot) };
  botSenders.set(bot, sender);
  return sender;
}

export const userSender = (user: User): Sender => ({ id: user.id, isBot: false, profile: userProfile(user) });

/**
 * Returns the chat whose id a bot's call contains. `chat_names.ts` has already replaced usernames with ids. Error:
 * `chat_not_found`.
 */
export function chatOfBot(bot: number, chatId: number | string): ChatRef {
  if (typeof chatId === 'string' || chatId === 0 || chatId === bot) return fail('chat_not_found');
  return chatId > 0 ? directChat(bot, chatId) : sharedChat(chatId);
}

/**
 * Returns the chat whose id a person's call contains. The id of a direct chat is the id of its bot. Error:
 * `chat_not_found`.
 */
export function chatOfUser(user: number, chatId: number): ChatRef {
  if (chatId === 0 || chatId === user) return fail('chat_not_found');
  return chatId > 0 ? directChat(chatId, user) : sharedChat(chatId);
}

export interface Writer {
  readonly id: number;
  readonly isBot: boolean;
  /** The chat for which the content is written. Null while the chat is unknown, for instance for an inline result. */
  readonly chat: ChatRef | null;
}

/**
 * Adds the profile of the mentioned person or bot to each mention that contains an id. Drops mentions of unknown ids
 * and of people who share no chat with the writer, so that a mention does not reveal a stranger. Each lookup counts as
 * a call by the writer. Error: `too_many_requests`.
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
 * Builds the content of a text message. Refuses text over `limits.markup_length_max` code units before parsing, because
 * parsing it would delay all other calls. Errors: `text_empty`, `text_too_long`, `parse_mode_unsupported`,
 * `entities_unparsable`.
 */
export function textContent(store: Store, writer: Writer, given: GivenText): Content | Promise<Content> {
  const { text, entities } = parseText(given);
  messageText(text);
  const words = contentOf(store, writer, text, entities);
  const preview = previewOptionsOf(given);
  if (preview === undefined) return words;
  return words instanceof Promise
    ? words.then((resolved) => ({ ...resolved, preview }))
    : { ...words, preview };
}

/**
 * Builds the content of a draft. An absent or blank text becomes ''. Errors: those of `textContent` except
 * `text_empty`.
 */
export function draftContent(store: Store, writer: Writer, given: GivenText): Content | Promise<Content> {
  const { text, entities } = parseText(given);
  return isBlank(text) ? { text: '' } : contentOf(store, writer, messageText(text), entities);
}

interface GivenText {
  readonly text: string;
  readonly parse_mode?: string | undefined;
  readonly entities?: readonly EntityInput[] | undefined;
  readonly link_preview_options?: z.output<typeof linkPreviewParams.link_preview_options>;
  readonly disable_web_page_preview?: boolean | undefined;
}

/** Returns the link preview options that are set to true, or undefined if there are none. */
function previewOptionsOf(given: GivenText): LinkPreviewOptions | undefined {
  const options = given.link_preview_options;
  if (options === undefined) return given.disable_web_page_preview ? { is_disabled: true } : undefined;
  const on = Object.entries(options).filter(([, value]) => value !== undefined && value !== false);
  return on.length === 0 ? undefined : Object.fromEntries(on);
}

function parseText(given: GivenText): { readonly text: string; readonly entities: readonly Entity[] } {
  // Converts CRLF to LF. Forms send line breaks as CRLF and JSON sends them as LF, but both must give the same text.
  const source = given.text.includes('\r') ? given.text.replaceAll('\r', '') : given.text;
  if (source.length > limits.markup_length_max) fail('text_too_long');
  const { text, entities } = formatText(source, given.parse_mode, given.entities);
  return { text, entities: entities as readonly Entity[] };
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

const aboveMedia = (words: Content): Content => ({ ...words, above: true });

/**
 * Builds the caption of a media message. If the caption is absent or blank, the content has no text. Errors:
 * `caption_too_long`, `parse_mode_unsupported`, `entities_unparsable`.
 */
export function captionContent(
  store: Store,
  writer: Writer,
  given: {
    readonly caption?: string | undefined;
    readonly parse_mode?: string | undefined;
    readonly caption_entities?: readonly EntityInput[] | undefined;
    readonly show_caption_above_media?: boolean | undefined;
  },
): Content | Promise<Content> {
  const source = (given.caption ?? '').replaceAll('\r', '');
  if (source.length > limits.markup_length_max) fail('caption_too_long');
  const { text, entities } = formatText(source, given.parse_mode, given.caption_entities);
  if (captionText(text) === '') return {};
  const words = contentOf(store, writer, text, entities as readonly Entity[]);
  if (!given.show_caption_above_media) return words;
  return words instanceof Promise ? words.then(aboveMedia) : aboveMedia(words);
}

/** Returns the inline keyboard of a call, or null if there is none. Throws the errors of `checkKeyboard`. */
export function keyboard(
  markup: { readonly inline_keyboard?: Parameters<typeof checkKeyboard>[0] } | undefined,
): InlineKeyboard | null {
  return checkKeyboard(markup?.inline_keyboard);
}

type Markup = ReplyKeyboardInput & NonNullable<Parameters<typeof keyboard>[0]>;

/**
 * Returns the inline keyboard or the reply keyboard of a new message. Throws the errors of `checkKeyboard` and
 * `checkReplyKeyboard`.
 */
export function markupOf(given: Markup | undefined): Pick<NewMessage, 'markup' | 'origin'> {
  const markup = keyboard(given);
  if (given === undefined || markup !== null) return { markup };
  const shown = checkReplyKeyboard(given);
  return shown === null ? { markup } : { markup, origin: { keyboard: shown } };
}
