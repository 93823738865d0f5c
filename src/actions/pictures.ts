/** Stores, removes and shows the pictures of bots and the avatars of people. */
import type { z } from 'zod';
import { type ErrorName, fail } from '../errors.js';
import { newKey } from '../files/blob_store.js';
import type { Files } from '../files/files.js';
import { fileLimits as limits } from '../files/limits.js';
import type { PictureKind } from '../files/pictures.js';
import type { BotPictures, StoredPicture } from '../store/bots/pictures.js';
import type { User } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import type { picture } from '../wire/results.js';

export const pictureErrors = [
  'file_empty',
  'picture_type_invalid',
  'picture_animated',
  'picture_too_large',
  'photo_invalid',
] as const satisfies readonly ErrorName[];

interface Context {
  readonly store: Store;
  readonly files: Files;
}

type PictureView = z.output<typeof picture>;

function viewSize(files: Files, { key, size, width, height }: StoredPicture) {
  const id = files.idOf({ type: 'photo', key, size, mime: 'image/webp', width, height });
  return { url: `/api/files/${id}`, width, height, file_size: size };
}

export function viewPicture(files: Files, [large, small]: readonly StoredPicture[]): PictureView {
  if (large === undefined) throw new Error('a picture has at least one size');
  return { ...viewSize(files, large), ...(small && { small: viewSize(files, small) }) };
}

export function viewPictures(files: Files, { avatar, start_picture }: BotPictures) {
  return {
    ...(avatar && { avatar: viewPicture(files, avatar) }),
    ...(start_picture && { start_picture: viewPicture(files, start_picture) }),
  };
}

/** Returns the person's avatar as a field, or no field if the person has no avatar. */
export const viewAvatar = (files: Files, { avatar }: Pick<User, 'avatar'>) =>
  avatar.length > 0 ? { avatar: viewPicture(files, avatar) } : {};

export async function discard(store: Store, files: Files, pictures: readonly StoredPicture[]): Promise<void> {
  const gone: string[] = [];
  for (const { key } of pictures) if (await files.remove(key)) gone.push(key);
  // Ignores the error, because the sweep of unused files removes the records of these files later.
  await store.pictures.removed(gone).catch(() => undefined);
}

/** Stores the files of a picture. They count as unused until a record contains their keys. */
export async function writeFiles(
  store: Store,
  files: Files,
  made: Awaited<ReturnType<Files['pictures']['make']>>,
): Promise<StoredPicture[]> {
  const sizes = made.map(({ bytes, width, height }) => ({
    bytes,
    stored: { key: newKey(store.random), size: bytes.length, width, height },
  }));
  await store.pictures.announce(sizes.map(({ stored }) => stored.key));
  for (const { bytes, stored } of sizes) await files.put(stored.key, bytes);
  return sizes.map(({ stored }) => stored);
}

/**
 * Makes a picture from the bytes, sets it as the bot's picture and removes the files of the previous picture. Checks
 * the ownership before decoding the bytes. Errors: `bot_not_found`, `not_bot_owner`, those of `Pictures.make`,
 * `too_large` above `limits.picture_bytes_max`.
 */
export async function putPicture(
  { store, files }: Context,
  owner: number,
  bot: number,
  kind: PictureKind,
  bytes: Buffer,
): Promise<PictureView> {
  await store.bots.owned(owner, bot);
  if (bytes.length > limits.picture_bytes_max) fail('too_large');
  const stored = await writeFiles(store, files, await files.pictures.make(owner, kind, bytes));
  // If setting the new picture fails, the new files stay. The sweep of unused files removes them later unless a record
  // uses them.
  const { present, former } = await store.pictures.set(owner, bot, kind, stored);
  if (former) await discard(store, files, former);
  return viewPicture(files, present ?? stored);
}

/** Removes a bot's picture. Errors: `bot_not_found`, `not_bot_owner`, `picture_not_found`. */
export async function removePicture(
  { store, files }: Context,
  owner: number,
  bot: number,
  kind: PictureKind,
): Promise<void> {
  await store.bots.owned(owner, bot);
  const { former } = await store.pictures.set(owner, bot, kind, null);
  if (former === null) return fail('picture_not_found');
  await discard(store, files, former);
}

/**
 * Makes an avatar from the bytes, sets it as the person's avatar and removes the files of the previous avatar. Errors:
 * those of `Pictures.make`, `too_large` above `limits.picture_bytes_max`, `too_many_requests`.
 */
export async function putAvatar(
  { store, files }: Context,
  user: number,
  bytes: Buffer,
): Promise<PictureView> {
  if (bytes.length > limits.picture_bytes_max) fail('too_large');
  await store.profiles.takeChange(user);
  const stored = await writeFiles(store, files, await files.pictures.make(user, 'avatar', bytes));
  // If setting the new avatar fails, the new files stay. The sweep of unused files removes them later unless a record
  // uses them.
  const { present, former } = await store.profiles.setAvatar(user, stored);
  if (former) await discard(store, files, former);
  return viewPicture(files, present ?? stored);
}

/** Removes the person's avatar. Errors: `picture_not_found`, `too_many_requests`. */
export async function removeAvatar({ store, files }: Context, user: number): Promise<void> {
  await store.profiles.takeChange(user);
  const { former } = await store.profiles.setAvatar(user, null);
  if (former === null) return fail('picture_not_found');
  await discard(store, files, former);
}
