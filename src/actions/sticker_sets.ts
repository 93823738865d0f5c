/** Contains code that the methods for sticker sets share (behaviour §4). Only static stickers are supported. */
import { z } from 'zod';
import { viewSticker } from '../content/sticker.js';
import { type ErrorName, fail } from '../errors.js';
import { type FileIds, type MediaFile, mediaOf } from '../files/file_id.js';
import { emojiIn } from '../rules/emoji.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isLongerThan } from '../rules/text.js';
import type { MethodContext } from '../server/method.js';
import type { SetSticker, StickerSet } from '../store/bots/sticker_sets.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { answer, integer, json, optional, text } from '../wire/schema.js';
import { stickerErrors, type TakenMedia, takeMedia, withMedia } from './media.js';
import { outsider } from './moderation.js';

const noEmoji = answer('sticker_emoji_invalid');
const noKeywords = answer('sticker_keywords_invalid');

/** Accepts one emoji. Returns its stored form, which has no U+FE0F. */
export const stickerEmoji = text
  .refine((given) => emojiIn(given) !== null, { error: noEmoji })
  .transform((given) => emojiIn(given) ?? '');

export const emojiList = json(
  z
    .array(stickerEmoji, { error: noEmoji })
    .min(1, { error: noEmoji })
    .max(limits.sticker_emoji_max, { error: noEmoji }),
).describe(`1 to ${limits.sticker_emoji_max} emoji`);

const lengthOf = (words: readonly string[]) => words.reduce((sum, word) => sum + [...word].length, 0);

export const keywords = optional(
  json(
    z
      .array(text, { error: noKeywords })
      .max(limits.sticker_keywords_max, { error: noKeywords })
      .refine((words) => lengthOf(words) <= limits.sticker_keywords_length_max, { error: noKeywords }),
  ),
).describe(
  `Up to ${limits.sticker_keywords_max} words for searches, with up to ${limits.sticker_keywords_length_max} characters together`,
);

export const stickerFormat = z
  .literal('static', {
    error: ({ input }) => (input === undefined ? '' : answer('sticker_format_unsupported')),
  })
  .describe('Only `static`: a PNG or WebP');

const inputStickerFields = z.object(
  { sticker: text, format: stickerFormat, emoji_list: emojiList, keywords },
  { error: 'a sticker' },
);

export const inputSticker = json(inputStickerFields).describe(
  'A sticker: `sticker` (`attach://<name>` of an uploaded part, or a `file_id`), `format`, `emoji_list` and `keywords`',
);
export type InputSticker = z.output<typeof inputStickerFields>;

export const inputStickers = json(
  z
    .array(inputStickerFields, { error: answer('stickers_empty') })
    .min(1, { error: answer('stickers_empty') })
    .max(limits.new_stickers_max, { error: answer('too_many_stickers') }),
).describe(`1 to ${limits.new_stickers_max} stickers`);

export const stickerUser = integer().describe('Id of a person who shares a chat with the bot');
export const setName = text.describe('Name of the set');
export const setTitle = text
  .refine((given) => given.trim() !== '' && !isLongerThan(given, limits.sticker_set_title_length_max), {
    error: answer('sticker_set_title_invalid'),
  })
  .describe(`Title of 1 to ${limits.sticker_set_title_length_max} characters`);
export const stickerId = text.describe('`file_id` of a sticker from `getStickerSet`');

export const inputStickerErrors = [
  'sticker_emoji_invalid',
  'sticker_keywords_invalid',
  'sticker_format_unsupported',
  'wrong_file_id',
  'file_type_mismatch',
  'file_empty',
  'too_much_stored',
  ...stickerErrors,
] as const satisfies readonly ErrorName[];

export const setErrors = ['sticker_set_invalid'] as const satisfies readonly ErrorName[];
export const stickerOfSetErrors = [
  'wrong_file_id',
  'sticker_set_invalid',
  'sticker_set_not_modified',
] as const satisfies readonly ErrorName[];

/** Checks that `user` is a person whom the bot knows, and not a bot. Error: `sticker_user_not_found`. */
export async function checkStickerUser(store: Store, bot: Bot, user: number): Promise<void> {
  const profile = user > 0 ? await outsider(store, bot.id, null, user) : null;
  if (profile === null || profile.bot === 1) fail('sticker_user_not_found');
}

const shape = /^[a-z]\w*$/i;

/** Checks the name of a new set, which must end in `_by_` and the bot's username. Error: `sticker_set_name_invalid`. */
export function checkSetName(bot: Bot, name: string): void {
  const isShaped =
    name.length <= limits.sticker_set_name_length_max && shape.test(name) && !name.includes('__');
  if (!isShaped || !name.toLowerCase().endsWith(`_by_${bot.username.toLowerCase()}`))
    fail('sticker_set_name_invalid');
}

const setStickerOf = (
  { key, size = 0, mime = '', width = 0, height = 0 }: MediaFile,
  given: InputSticker,
) => ({
  ...{ key: key ?? fail('wrong_file_id'), size, mime, width, height },
  ...{ emoji: given.emoji_list, keywords: given.keywords ?? [] },
});

/** Returns whether the `file_id` comes from one of the bot's sticker sets, and this set still contains the file. */
async function isInOwnSet({ bot, store }: MethodContext, { set, key }: MediaFile): Promise<boolean> {
  return set !== undefined && (await store.stickerSets.contains(bot.id, set, key ?? ''));
}

/**
 * Refuses files that other accounts uploaded, because such a file counts as an upload of the other account while the
 * set keeps it. Accepts stickers from the bot's own sets, even if a former owner of the bot uploaded them. Error:
 * `wrong_file_id`.
 */
async function takeSticker(context: MethodContext, sticker: string): Promise<TakenMedia> {
  // Refuses a URL, because the server never fetches it and so cannot check the picture.
  if (sticker.includes(':') && !sticker.startsWith('attach:')) fail('wrong_file_id');
  const taken = await takeMedia(context, 'sticker', 'sticker', sticker);
  const { bot, store } = context;
  const isOwn =
    taken.uploaded ||
    (await store.uploads.isStoredBy(bot.owner, taken.file.key ?? '')) ||
    (await isInOwnSet(context, taken.file));
  return isOwn ? taken : fail('wrong_file_id');
}

/** Stores the files one after another. If one sticker is refused, removes the files that were already stored. */
async function takeStickers(context: MethodContext, given: readonly InputSticker[]): Promise<TakenMedia[]> {
  const taken: TakenMedia[] = [];
  try {
    for (const { sticker } of given) taken.push(await takeSticker(context, sticker));
    return taken;
  } catch (error) {
    for (const { file, uploaded } of taken) if (uploaded) await context.files.discard(file);
    throw error;
  }
}

export interface StickerChange {
  readonly stickers: readonly InputSticker[];
  /** Called before files are stored for a change. Rejects if the change must be refused. */
  check(): Promise<void>;
  make(stickers: readonly SetSticker[]): Promise<void>;
}

/**
 * Stores the files of new stickers, and makes a change with them. Removes the files if `make` refuses the change. Does
 * nothing if an earlier attempt of the call made the change, because a second run would store the files again and fail
 * in `check`. Errors: `inputStickerErrors`, `too_many_requests`, `unavailable`, and those of `check` and `make`.
 */
export async function changeWithStickers(
  context: MethodContext,
  { stickers, check, make }: StickerChange,
): Promise<void> {
  let isMade = true;
  await context.store.unlessApplied(async () => {
    isMade = false;
    await check();
  });
  if (isMade) return;
  await withMedia(
    context,
    () => takeStickers(context, stickers),
    async (take) => {
      const taken = await take();
      return make(taken.map(({ file }, i) => setStickerOf(file, stickers[i] as InputSticker)));
    },
  );
}

/**
 * Returns the name of the sticker set and the key of the file that a `file_id` from `getStickerSet` contains. Errors:
 * `wrong_file_id`, `sticker_set_invalid` if the file is not from a set.
 */
export function placeOfSticker(files: FileIds, id: string): { readonly set: string; readonly key: string } {
  const { type, set, key } = files.fileOf(id);
  if (type !== 'sticker' || set === undefined || key === undefined) return fail('sticker_set_invalid');
  return { set, key };
}

/**
 * Puts the name of the set and the sticker's first emoji into each `file_id`, so that messages sent with this `file_id`
 * show the set and the emoji.
 */
export function viewStickerSet(files: FileIds, { name, title, stickers }: StickerSet) {
  return {
    ...{ name, title, sticker_type: 'regular' },
    stickers: stickers.map(({ emoji: [emoji], keywords: _, ...file }) => {
      const media = mediaOf(files, {
        ...{ type: 'sticker', ...file, set: name },
        ...(emoji === undefined ? {} : { emoji }),
      });
      return viewSticker(media, false);
    }),
  };
}
