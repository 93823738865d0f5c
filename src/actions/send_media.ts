/** Contains the code shared by the methods and endpoints that send media (behaviour §4). */
import { z } from 'zod';
import { type ErrorName, fail } from '../errors.js';
import { mediaOf } from '../files/file_id.js';
import type { MethodContext } from '../server/method.js';
import { type Content, type MediaType, mediaTypes } from '../store/core/codec.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { NewMessage, Sender } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import { boolean, entities, integer, json, optional, parseMode, replyMarkup, text } from '../wire/schema.js';
import {
  botSender,
  captionContent,
  chatErrors,
  chatOfBot,
  keyboardErrors,
  markupOf,
  type SendingParams,
  sendingOf,
  sendingParams,
} from './compose.js';
import { type MediaContext, takeMedia, thumbnailErrors, withMedia } from './media.js';

/**
 * Accepts a URL, a `file_id` or `attach://<name>`. The parameter is absent if the call uploads a part with the
 * parameter's name.
 */
export const media = optional(text).describe(
  'An uploaded part, `attach://<name>` of an uploaded part, an HTTPS URL, or a `file_id`',
);

export const spoiler = optional(boolean).describe('Covers the media until the viewer reveals it');

export const thumbnail = optional(text).describe(
  'A PNG, JPEG or WebP that represents the file: an uploaded part or `attach://<name>`. Scaled to 320 pixels. Used only for an uploaded file',
);

export const captionAbove = optional(boolean).describe('Shows the caption above the media');

export const visualParams = { has_spoiler: spoiler, show_caption_above_media: captionAbove };

/** Accepts a width, height or duration given by the client. 0 means unknown. */
export const amount = optional(integer().transform((n) => Math.min(10_000_000, Math.max(0, n)))).describe(
  'In pixels, or in seconds for a duration. Used only if Petrel cannot measure the file itself',
);

export const movingParams = {
  width: amount,
  height: amount,
  duration: amount,
  thumbnail,
  ...visualParams,
};

export const captionParams = {
  caption: optional(text),
  parse_mode: parseMode,
  caption_entities: entities,
};

export const describedMedia = {
  media: text,
  ...captionParams,
  has_spoiler: spoiler,
  show_caption_above_media: captionAbove,
  width: amount,
  height: amount,
  duration: amount,
  performer: optional(text),
  title: optional(text),
  thumbnail,
};

/** The types of a media descriptor. A video note can only be sent by its own method. */
const describedTypes = ['photo', 'video', 'audio', 'document', 'animation', 'voice'] as const;

/**
 * Parses a media descriptor (interface §2). `media` is a URL, a `file_id`, or `attach://<name>` of an uploaded part.
 */
export const mediaDescriptor = json(
  z.object(
    {
      type: z.enum(describedTypes, { error: `one of: ${describedTypes.join(', ')}` }),
      ...describedMedia,
    },
    { error: 'a media descriptor' },
  ),
);
export type MediaDescriptor = z.infer<typeof mediaDescriptor>;

/** The types of files that people can send. */
export const personFileTypes = mediaTypes.filter((type) => type !== 'sticker');

/**
 * Returns the kind of content that a call contains, or undefined if it contains none. An uploaded part whose name is a
 * kind counts as content of this kind, unless a parameter refers to the part. Error: `parameter_wrong` for several
 * kinds.
 */
export function onlyKind<K extends string>(
  kinds: readonly K[],
  p: { readonly [name in K]?: unknown },
  uploads: MediaContext['uploads'],
): K | undefined {
  const named = new Set(kinds.map((kind) => p[kind]));
  const [kind, second] = kinds.filter(
    (one) => p[one] !== undefined || (uploads.has(one) && !named.has(`attach://${one}`)),
  );
  if (kind !== undefined && second !== undefined)
    fail('parameter_wrong', { name: second, what: `absent if "${kind}" is given` });
  return kind;
}

export const mediaParams = { ...sendingParams, ...captionParams, reply_markup: replyMarkup };

/** The errors of files and captions that bots or people send. */
export const fileErrors = [
  'sending_not_permitted',
  'caption_too_long',
  'parse_mode_unsupported',
  'entities_unparsable',
  'entities_too_long',
  'reply_not_found',
  'wrong_file_id',
  'file_type_mismatch',
  'file_empty',
  'too_much_stored',
  'photo_invalid',
  ...thumbnailErrors,
] as const satisfies readonly ErrorName[];

export const mediaErrors = [
  ...chatErrors,
  'bot_blocked',
  'posting_not_allowed',
  ...keyboardErrors,
  ...fileErrors,
] as const satisfies readonly ErrorName[];

type FileParams = Omit<MediaDescriptor, 'type' | 'media'> & { readonly emoji?: string | undefined };

type MediaParams = SendingParams & FileParams & { readonly reply_markup?: Parameters<typeof markupOf>[0] };

export interface Sending {
  readonly chat: ChatRef;
  readonly sender: Sender;
  readonly rest: Omit<NewMessage, 'content'>;
}

/**
 * Passes to `use` a function that builds the content from the media and the caption. Stores an uploaded file only when
 * this function is called. Errors: those of `takeMedia`.
 */
export function withDescribed<T>(
  context: MethodContext,
  described: MediaDescriptor,
  words: Content,
  use: (make: () => Promise<Content>) => Promise<T>,
): Promise<T> {
  return withMedia(
    context,
    () => takeMedia(context, described.type, 'media', described.media, described),
    (take) =>
      use(async () => ({
        ...words,
        media: mediaOf(context.files, (await take()).file, described.has_spoiler),
      })),
  );
}

/**
 * Sends one message with media, as a bot or a person. `type` is also the name of the parameter or of the multipart part
 * that contains the file. Runs all checks that do not need the file before it stores an uploaded file. Errors:
 * `fileErrors` and those of `store.messages.send`.
 */
export async function sendFile(
  context: MediaContext & { readonly store: Store },
  { chat, sender, rest }: Sending,
  type: MediaType,
  value: string | undefined,
  p: FileParams,
): Promise<StoredMessage> {
  const { store, files } = context;
  const words = await captionContent(store, { id: sender.id, isBot: sender.isBot, chat }, p);
  return withMedia(
    context,
    () => takeMedia(context, type, type, value, p),
    (take) =>
      store.messages.send(chat, sender, async () => ({
        content: { ...words, media: mediaOf(files, (await take()).file, p.has_spoiler) },
        ...rest,
      })),
  );
}

/** Sends one message with media as a bot. Errors: `mediaErrors`. */
export async function sendMedia(
  context: MethodContext,
  type: MediaType,
  value: string | undefined,
  p: MediaParams,
): Promise<MessageView> {
  const sender = botSender(context.bot);
  const chat = chatOfBot(context.bot.id, p.chat_id);
  const rest = { ...markupOf(p.reply_markup), ...sendingOf(p) };
  const sent = await sendFile(context, { chat, sender, rest }, type, value, p);
  return viewMessage(sent, { isBot: true, bot: sender.profile }, context.store.time);
}
