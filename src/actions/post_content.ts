/** Builds the content of a bot's post: text, or media with a caption (behaviour §8). */
import type { z } from 'zod';
import type { ErrorName } from '../errors.js';
import { fail } from '../errors.js';
import type { MethodContext } from '../server/method.js';
import type { Content } from '../store/core/codec.js';
import type { ChatRef } from '../store/core/keys.js';
import { entities, optional, text } from '../wire/schema.js';
import { captionContent, textContent } from './compose.js';
import { captionParams, type MediaDescriptor, mediaDescriptor, withDescribed } from './send_media.js';

export const postContentParams = {
  text: optional(text).describe('Text of the post, or the caption when `media` is given'),
  entities,
  media: optional(mediaDescriptor).describe('Media of the post'),
  ...captionParams,
  caption: text.nullish().describe('An empty text removes the caption'),
};

export const postContentErrors = [
  'text_empty',
  'text_too_long',
  'caption_too_long',
  'parse_mode_unsupported',
  'entities_unparsable',
  'entities_too_long',
  'wrong_file_id',
  'file_type_mismatch',
  'file_empty',
  'photo_invalid',
] as const satisfies readonly ErrorName[];

type Given = z.infer<z.ZodObject<typeof postContentParams>>;

function captionOf(p: Given, media: MediaDescriptor): Parameters<typeof captionContent>[2] {
  const parse_mode = media.parse_mode ?? p.parse_mode;
  if (media.caption !== undefined) return { ...media, parse_mode };
  if (p.caption) return { ...p, caption: p.caption };
  return { caption: p.text, parse_mode: p.parse_mode, caption_entities: p.entities };
}

export type PostContent = { readonly what: 'text' | 'caption' | 'media'; readonly content: Content };

/**
 * Runs `use` with a function that builds the content. The content is built only if `use` calls this function. Errors:
 * `postContentErrors`.
 */
export async function withPostContent<T>(
  context: MethodContext,
  chat: ChatRef | null,
  p: Given,
  use: (make: () => Promise<PostContent>) => Promise<T>,
): Promise<T> {
  const { bot, store } = context;
  const writer = { id: bot.id, isBot: true, chat };
  if (p.media !== undefined) {
    const words = await captionContent(store, writer, captionOf(p, p.media));
    return withDescribed(context, p.media, words, (make) =>
      use(async () => ({ what: 'media', content: await make() })),
    );
  }
  const caption = p.caption ?? undefined;
  if (p.text === undefined && caption !== undefined)
    return use(async () => ({
      what: 'caption',
      content: await captionContent(store, writer, { ...p, caption }),
    }));
  const text = p.text ?? fail('text_empty');
  return use(async () => ({ what: 'text', content: await textContent(store, writer, { ...p, text }) }));
}
