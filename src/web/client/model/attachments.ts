/**
 * Holds the files that a person has attached to the message being written, and divides them into messages when they are
 * sent. Applies the service's limits on files.
 */
import { say } from '../notes.js';
import { Signal } from '../signal.js';
import type { MessageEntity } from '../types.js';
import { sizeText } from '../view/media.js';
import { t } from '../words.js';

/** The maximum number of files in an album. */
export const files_max = 10;
/**
 * The maximum size of the files in one call, in bytes. The service accepts 50 MiB per call. 128 KiB of these are
 * reserved for the names of the files, the caption and its entities.
 */
export const files_bytes_max = 50 * 1_048_576 - 131_072;

export type FileKind = 'photo' | 'video' | 'audio' | 'voice' | 'document';

/** The MIME types that the service accepts as photos. */
const photoTypes = /^image\/(jpeg|png|gif|webp|bmp|avif|heic|heif)$/;

/**
 * Returns how a file is sent, according to its MIME type. Only a voice message recorded on this page has a MIME type
 * that names a codec.
 */
export function kindOf({ type }: File): FileKind {
  if (/^audio\/.*;\s*codecs=/.test(type)) return 'voice';
  if (photoTypes.test(type)) return 'photo';
  const [group] = type.split('/');
  return group === 'video' || group === 'audio' ? group : 'document';
}

/** Returns the chat action that announces an upload. The first file decides which action this is. */
export function uploadActionOf([file]: readonly File[]): string {
  const kind = file ? kindOf(file) : 'document';
  return `upload_${kind === 'audio' ? 'document' : kind}`;
}

export const isVisual = (file: File): boolean => ['photo', 'video'].includes(kindOf(file));

export const bytesOf = (files: readonly File[] = []): number =>
  files.reduce((sum, { size }) => sum + size, 0);

/** Returns the reason why these files cannot be sent together, or '' if they can. */
function problemOf(files: readonly File[]): string {
  const max = sizeText(files_bytes_max);
  const empty = files.find(({ size }) => size === 0);
  const large = files.find(({ size }) => size > files_bytes_max);
  if (empty) return t('attach_empty', { name: empty.name });
  if (large) return t('attach_large', { name: large.name, max });
  if (files.length > files_max) return t('attach_many', { n: files_max });
  return bytesOf(files) > files_bytes_max ? t('attach_together', { max }) : '';
}

/**
 * Holds the attached files of one chat: at most `files_max` files with `files_bytes_max` bytes together. They are lost
 * on a reload.
 */
export class Tray extends Signal {
  files: readonly File[] = [];

  /** Adds all of the files and returns true. If they cannot be sent together, shows the reason and returns false. */
  add(given: readonly File[]): boolean {
    const files = [...this.files, ...given];
    const problem = problemOf(files);
    if (problem) say(problem);
    else this.set(files);
    return problem === '';
  }

  set(files: readonly File[]): void {
    this.files = files;
    this.changed();
  }
}

/** Returns the group to which a file belongs. All files of an album must be of the same group. */
const groupOf = (file: File): string => (isVisual(file) ? 'visual' : kindOf(file));

/**
 * Divides files into messages and albums, in order. An album contains pictures and videos, only audio files, or only
 * documents. A voice message is never part of an album.
 */
export function groupsOf(files: readonly File[]): File[][] {
  const groups: File[][] = [];
  for (const file of files) {
    const last = groups.at(-1);
    if (last?.[0] && groupOf(last[0]) === groupOf(file) && kindOf(file) !== 'voice') last.push(file);
    else groups.push([file]);
  }
  return groups;
}

/**
 * Returns the body of the call that sends one file, or several files as an album. `seconds` is the length of a
 * recording.
 */
export function formOf(
  files: readonly File[],
  caption: string,
  entities: readonly MessageEntity[] | undefined,
  replyTo: number | undefined,
  seconds?: number,
): FormData {
  const form = new FormData();
  const isAlbum = files.length > 1;
  const media = files.map((file, i) => ({
    type: kindOf(file),
    media: `attach://file${i}`,
    ...(i === 0 && caption !== '' && { caption, caption_entities: entities }),
  }));
  if (isAlbum) form.append('media', JSON.stringify(media));
  else if (caption !== '') form.append('caption', caption);
  if (!isAlbum && entities) form.append('caption_entities', JSON.stringify(entities));
  if (seconds !== undefined) form.append('duration', String(seconds));
  if (replyTo !== undefined) form.append('reply_to_message_id', String(replyTo));
  for (const [i, file] of files.entries()) form.append(isAlbum ? `file${i}` : kindOf(file), file, file.name);
  return form;
}
