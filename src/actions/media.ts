/**
 * Finds or stores the files that parameters name. A parameter names a file by an HTTPS URL, by the `file_id` of an
 * earlier message, or as an uploaded part (behaviour §1, §4).
 */
import { fileKinds } from '../content/kinds.js';
import { fail } from '../errors.js';
import type { MediaFile } from '../files/file_id.js';
import { type Described, type Files, wasRefused } from '../files/files.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isRefusedPort } from '../rules/ports.js';
import type { UploadedFile } from '../server/params.js';
import type { MediaType } from '../store/core/codec.js';

export interface MediaContext {
  readonly files: Files;
  readonly bot?: { readonly owner: number };
  readonly user?: { readonly id: number };
  readonly uploads: ReadonlyMap<string, UploadedFile>;
}

const attached = 'attach://';

export const stickerErrors = ['file_too_big', 'sticker_type_invalid', 'sticker_sides_invalid'] as const;

export const thumbnailErrors = ['picture_type_invalid', 'picture_animated', 'picture_too_large'] as const;

/** Accepts only HTTPS URLs. The server stores them unchanged and never fetches them. Error: `wrong_file_id`. */
export function httpsUrl(url: string): string {
  if (url.length > limits.media_url_length_max || !URL.canParse(url)) return fail('wrong_file_id');
  const { protocol, hostname, port, username, password } = new URL(url);
  if (protocol !== 'https:' || hostname === '' || username !== '' || password !== '')
    return fail('wrong_file_id');
  if (port !== '' && isRefusedPort(Number(port))) return fail('wrong_file_id');
  return url;
}

const short = (words: string | undefined) =>
  words &&
  [...words.slice(0, 2 * limits.media_title_length_max)].slice(0, limits.media_title_length_max).join('');

const given = ({ width, height, duration, performer, title, emoji }: Described) =>
  Object.fromEntries(
    Object.entries({
      width,
      height,
      duration,
      performer: short(performer),
      title: short(title),
      emoji,
    }).filter(([, value]) => value),
  ) as { readonly [K in keyof Described]: NonNullable<Described[K]> };

/**
 * Returns the uploaded part that a call names as its thumbnail. A method with one file also accepts a part named
 * `thumbnail`. Ignores a value that does not begin with `attach://`, as the reference server does. Error:
 * `wrong_file_id` for a missing part.
 */
function thumbnailOf(
  uploads: MediaContext['uploads'],
  type: MediaType,
  name: string,
  { thumbnail }: { readonly thumbnail?: string | undefined },
): UploadedFile | undefined {
  if (type === 'photo' || type === 'voice' || type === 'sticker') return undefined;
  if (thumbnail === undefined) return name === type ? uploads.get('thumbnail') : undefined;
  if (!thumbnail.startsWith(attached)) return undefined;
  return uploads.get(thumbnail.slice(attached.length)) ?? fail('wrong_file_id');
}

export interface TakenMedia {
  readonly file: MediaFile;
  readonly uploaded: boolean;
}

/**
 * Returns the file that the parameter `name` gives, either in its value or as the uploaded part with this name.
 * Measures and stores an uploaded file. Errors: `parameter_required`, `wrong_file_id`, `file_type_mismatch`,
 * `file_empty`, `photo_invalid`, `video_note_invalid`, `stickerErrors`, `file_too_big`, `thumbnailErrors`,
 * `too_many_requests`, `too_much_stored`, `unavailable`.
 */
export async function takeMedia(
  { files, uploads, bot, user }: MediaContext,
  type: MediaType,
  name: string,
  value: string | undefined,
  said: Described & { readonly thumbnail?: string | undefined } = {},
): Promise<TakenMedia> {
  const owner = bot?.owner ?? user?.id ?? 0;
  const keep = async (upload: UploadedFile): Promise<TakenMedia> => ({
    file: await files.keep(owner, type, upload, said, thumbnailOf(uploads, type, name, said)),
    uploaded: true,
  });
  if (value === undefined) return keep(uploads.get(name) ?? fail('parameter_required', { name }));
  if (value.startsWith(attached))
    return keep(uploads.get(value.slice(attached.length)) ?? fail('wrong_file_id'));
  // Refuses a URL for a video note, as the reference server does.
  if (value.includes(':') && type === 'video_note') fail('wrong_file_id');
  if (value.includes(':')) return { file: { type, url: httpsUrl(value), ...given(said) }, uploaded: false };
  const file = files.fileOf(value);
  if (file.type !== type)
    fail('file_type_mismatch', { name: fileKinds[file.type].typeName, what: fileKinds[type].typeName });
  await files.stillThere(file);
  return { file, uploaded: false };
}

/**
 * Stores several files. If one file is refused, removes the files that were already stored. Errors: those of
 * `takeMedia`.
 */
export async function takeAll(
  { files }: MediaContext,
  takes: ReadonlyArray<Promise<TakenMedia>>,
): Promise<TakenMedia[]> {
  const settled = await Promise.allSettled(takes);
  const refused = settled.find((one) => one.status === 'rejected');
  const taken = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (!refused) return taken;
  await Promise.all(taken.filter((one) => one.uploaded).map((one) => files.discard(one.file)));
  throw refused.reason;
}

/**
 * Runs `use` with a function that takes the files. `use` calls this function only if no earlier attempt of the same
 * call has created the message. If the message is refused, removes the stored files. After any other error, keeps the
 * files, because the message may exist.
 */
export async function withMedia<M extends TakenMedia | readonly TakenMedia[], T>(
  { files }: MediaContext,
  take: () => Promise<M>,
  use: (take: () => Promise<M>) => Promise<T>,
): Promise<T> {
  let taken: readonly TakenMedia[] = [];
  const taking = async () => {
    const made = await take();
    taken = [made].flat() as TakenMedia[];
    return made;
  };
  try {
    return await use(taking);
  } catch (error) {
    if (wasRefused(error))
      await Promise.all(taken.filter((t) => t.uploaded).map((t) => files.discard(t.file)));
    throw error;
  }
}
