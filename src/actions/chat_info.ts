/** Changes the title, description or photo of a chat, for bot methods and endpoints. */
import { z } from 'zod';
import { fail } from '../errors.js';
import { type Files, wasRefused } from '../files/files.js';
import { fileLimits } from '../files/limits.js';
import { ruleLimits } from '../rules/limits.js';
import { isPermitted } from '../rules/permissions.js';
import { isLongerThan } from '../rules/text.js';
import type { StoredPicture } from '../store/bots/pictures.js';
import type { ChatRef } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import { answer } from '../wire/schema.js';

interface Context {
  readonly store: Store;
  readonly files: Files;
}

export const chatDescription = z
  .string({ error: 'a string' })
  .transform((text) => text.trim())
  .refine((text) => !isLongerThan(text, ruleLimits.chat_description_length_max), {
    error: answer('description_too_long'),
  })
  .describe(`Up to ${ruleLimits.chat_description_length_max} characters`);

const fileOf = ({ key, size, width, height }: StoredPicture) =>
  ({ type: 'photo', key, size, mime: 'image/webp', width, height }) as const;

/** Returns the sizes as PhotoSize objects, smallest first. */
export const viewSizes = (files: Files, sizes: readonly StoredPicture[]) =>
  sizes
    .map((size) => ({
      file_id: files.idOf(fileOf(size)),
      file_unique_id: files.uniqueIdOf(fileOf(size)),
      ...{ width: size.width, height: size.height, file_size: size.size },
    }))
    .reverse();

export function viewChatPhoto(files: Files, sizes: readonly StoredPicture[]) {
  const [small, big] = [sizes.at(-1), sizes[0]];
  if (small === undefined || big === undefined) return {};
  return {
    photo: {
      small_file_id: files.idOf(fileOf(small)),
      small_file_unique_id: files.uniqueIdOf(fileOf(small)),
      big_file_id: files.idOf(fileOf(big)),
      big_file_unique_id: files.uniqueIdOf(fileOf(big)),
    },
  };
}

/**
 * Makes a photo from the bytes and sets it as the chat's photo. The files count as uploads of `owner`. Files of a
 * replaced photo are kept, because a service message shows them. Errors: those of `Pictures.make` and `setPhoto`,
 * `too_large` above `limits.picture_bytes_max`, `too_much_stored`, `unavailable`.
 */
export async function putChatPhoto(
  { store, files }: Context,
  chat: ChatRef,
  by: { readonly id: number; readonly is_bot: boolean },
  owner: number,
  bytes: Buffer,
): Promise<readonly StoredPicture[]> {
  // Checks the rights before decoding the bytes, because decoding is slow. `setPhoto` checks the rights again.
  const [own, { permissions }] = await Promise.all([
    store.chats.member(chat, by.id),
    store.chats.details(chat),
  ]);
  if (!isPermitted(own, permissions, 'can_change_info')) fail('photo_not_allowed');
  if (bytes.length > fileLimits.picture_bytes_max) fail('too_large');
  const made = await files.pictures.make(owner, 'avatar', bytes);
  const stored: StoredPicture[] = [];
  try {
    for (const { bytes, width, height } of made)
      stored.push({ key: await files.write(owner, bytes), size: bytes.length, width, height });
    await store.chats.setPhoto(chat, by, stored, viewSizes(files, stored));
    return stored;
  } catch (error) {
    // Removes the files only if the photo was certainly not set.
    if (stored.length < made.length || wasRefused(error))
      await Promise.all(stored.map(({ key }) => files.remove(key)));
    throw error;
  }
}
