/** Lists all kinds of content. A message has text, one file with an optional caption, or one object. */
import type { Random } from '../random.js';
import type { Content, ContentObject, MediaType } from '../store/core/codec.js';
import type { Time } from '../time.js';
import { animation } from './animation.js';
import { audio } from './audio.js';
import { contact } from './contact.js';
import { dice } from './dice.js';
import { document } from './document.js';
import type { FileKind, ObjectKind } from './kind.js';
import { location } from './location.js';
import { photo } from './photo.js';
import { poll } from './poll.js';
import { sticker } from './sticker.js';
import { venue } from './venue.js';
import { video } from './video.js';
import { videoNote } from './video_note.js';
import { voice } from './voice.js';

export const fileKinds: Readonly<Record<MediaType, FileKind>> = {
  photo,
  video,
  animation,
  audio,
  voice,
  document,
  video_note: videoNote,
  sticker,
};

const objectKinds = { location, venue, contact, dice, poll } as const;

/**
 * Returns the kind of an object. Returns undefined for a kind that only newer versions know. The message is then shown
 * without the object.
 */
const objectKindOf = (type: string): ObjectKind | undefined =>
  (objectKinds as unknown as Readonly<Record<string, ObjectKind>>)[type];

export const contentFields = Object.assign(
  {},
  ...[...Object.values(fileKinds), ...Object.values(objectKinds)].map(({ fields }) => fields),
);

/** The names of the kinds that previews show. A text message has the kind `text`. */
export const kindNames = [...Object.keys(fileKinds), ...Object.keys(objectKinds)];

export const kindOf = ({ media, object }: Content): string => media?.type ?? object?.type ?? 'text';

export function viewContent(
  { media, object }: Content,
  forPeople: boolean,
  time: Time,
  bot?: number,
): Readonly<Record<string, unknown>> {
  if (media !== undefined) return fileKinds[media.type].view(media, forPeople, time);
  return (object && objectKindOf(object.type)?.view(object, forPeople, time, bot)) ?? {};
}

/** Returns the content's emoji and its caption (`words`), name or title, for a notification. Returns '' for a text. */
export function signOf({ media, object }: Content, words: string): string {
  if (media !== undefined)
    return `${fileKinds[media.type].sign} ${words || (media.name ?? media.emoji ?? '')}`.trim();
  const kind = object && objectKindOf(object.type);
  return kind === undefined ? '' : `${kind.sign} ${kind.title(object as never)}`.trim();
}

export function copyOf(content: Content, random: Random): Content {
  const copied = content.object && objectKindOf(content.object.type)?.copied;
  return copied === undefined ? content : { ...content, object: copied(content.object as never, random) };
}

export function forwardOf(content: Content): Content {
  const forwarded = content.object && objectKindOf(content.object.type)?.forwarded;
  return forwarded === undefined ? content : { ...content, object: forwarded(content.object as never) };
}

/** Starts the period of a live location at `now`, in Unix seconds. */
export function startedContent(content: Content, now: number): Content {
  const { live, ...object } = content.object ?? {};
  if (live === undefined) return content;
  return { ...content, object: { ...object, live: [live[0], now + live[0]] } as ContentObject };
}

export const titleOf = ({ media, object }: Content): string | undefined =>
  media === undefined
    ? object && objectKindOf(object.type)?.title(object as never)
    : (media.name ?? media.emoji);
