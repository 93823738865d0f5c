/** Shared parts of the six methods that send media (behaviour §4). */
import { z } from 'zod';
import type { ErrorName } from '../errors.js';
import { mediaOf } from '../files/file_id.js';
import type { MethodContext } from '../server/method.js';
import {
  type Content,
  type InlineKeyboard,
  type MediaType,
  mediaTypes,
  messageFlags,
} from '../store/core/codec.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import {
  boolean,
  chatId,
  entities,
  integer,
  json,
  messageId,
  optional,
  parseMode,
  replyMarkup,
  replyParameters,
  text,
} from '../wire/schema.js';
import { botSender, captionContent, chatOfBot, keyboard, keyboardErrors } from './compose.js';
import { takeMedia, withMedia } from './media.js';

/** A URL, a `file_id` or `attach://<name>`. Absent when the file is the part named like the parameter. */
export const media = optional(text).describe(
  'An uploaded part, `attach://<name>` of an uploaded part, an HTTPS URL, or a `file_id`',
);

export const spoiler = optional(boolean).describe('Covers the media until the viewer reveals it');

/** A width, height or duration given by the client. 0 means unknown. */
export const amount = optional(integer().transform((n) => Math.min(10_000_000, Math.max(0, n)))).describe(
  'Pixels, or seconds for a duration. Used when the server cannot measure the file',
);

export const captionParams = {
  caption: optional(text),
  parse_mode: parseMode,
  caption_entities: entities,
};

/** A media descriptor (interface §2). `media` is a URL, a `file_id`, or `attach://<name>` of an uploaded part. */
export const mediaDescriptor = json(
  z.object(
    {
      type: z.enum(mediaTypes, { error: `one of: ${mediaTypes.join(', ')}` }),
      media: text,
      ...captionParams,
      has_spoiler: optional(boolean),
      ...{ width: amount, height: amount, duration: amount },
      ...{ performer: optional(text), title: optional(text) },
    },
    { error: 'a media descriptor' },
  ),
);
export type MediaDescriptor = z.infer<typeof mediaDescriptor>;

/** Parameters of every send method besides the content. */
export const sendingParams = {
  chat_id: chatId,
  reply_parameters: replyParameters,
  reply_to_message_id: optional(messageId),
  allow_sending_without_reply: optional(boolean),
  disable_notification: optional(boolean),
  protect_content: optional(boolean),
};

export const mediaParams = { ...sendingParams, ...captionParams, reply_markup: replyMarkup };

export const mediaErrors = [
  'chat_id_empty',
  'chat_not_found',
  'cant_initiate',
  'bot_blocked',
  'not_group_member',
  'not_channel_member',
  'posting_not_allowed',
  'caption_too_long',
  'parse_mode_unsupported',
  'entities_unparsable',
  'entities_too_long',
  ...keyboardErrors,
  'reply_not_found',
  'wrong_file_id',
  'file_type_mismatch',
  'file_empty',
  'too_much_stored',
  'photo_invalid',
] as const satisfies readonly ErrorName[];

export interface SendingParams {
  readonly chat_id: number | string;
  readonly reply_parameters?:
    | { readonly message_id: number; readonly allow_sending_without_reply?: boolean | undefined }
    | undefined;
  readonly reply_to_message_id?: number | undefined;
  readonly allow_sending_without_reply?: boolean | undefined;
  readonly disable_notification?: boolean | undefined;
  readonly protect_content?: boolean | undefined;
}

interface MediaParams extends SendingParams {
  readonly caption?: string | undefined;
  readonly parse_mode?: string | undefined;
  readonly caption_entities?: Parameters<typeof captionContent>[2]['caption_entities'];
  readonly reply_markup?: Parameters<typeof keyboard>[0];
  readonly has_spoiler?: boolean | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly duration?: number | undefined;
  readonly performer?: string | undefined;
  readonly title?: string | undefined;
}

/** Flags, reply and keyboard of a new message. */
export const sendingOf = (p: SendingParams) => ({
  flags:
    (p.protect_content ? messageFlags.protected : 0) | (p.disable_notification ? messageFlags.silent : 0),
  replyTo: p.reply_parameters?.message_id ?? p.reply_to_message_id ?? 0,
  allowMissingReply:
    p.reply_parameters?.allow_sending_without_reply ?? p.allow_sending_without_reply ?? false,
});

/**
 * Passes media and caption to `make`, which builds the message. Uploads are stored only when `make` asks for the content. Errors: those of `takeMedia`.
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
 * Sends one message with media. The file is parameter `type`, or the uploaded part of that name. All checks that do not
 * need the file run before an upload is stored. Errors: `mediaErrors`.
 */
export async function sendMedia(
  context: MethodContext,
  type: MediaType,
  value: string | undefined,
  p: MediaParams,
): Promise<MessageView> {
  const { bot, store, files } = context;
  const sender = botSender(bot);
  const chat = chatOfBot(bot.id, p.chat_id);
  const markup: InlineKeyboard | null = keyboard(p.reply_markup);
  const words = await captionContent(store, { id: bot.id, isBot: true, chat }, p);
  const sent = await withMedia(
    context,
    () => takeMedia(context, type, type, value, p),
    (take) =>
      store.messages.send(chat, sender, async () => ({
        content: { ...words, media: mediaOf(files, (await take()).file, p.has_spoiler) },
        markup,
        ...sendingOf(p),
      })),
  );
  return viewMessage(sent, { isBot: true, bot: sender.profile });
}
