/** All kinds of content. A message has text, one file with an optional caption, or one object. */
import type { Content, MediaType } from '../store/core/codec.js';
import { animation } from './animation.js';
import { audio } from './audio.js';
import { contact } from './contact.js';
import { document } from './document.js';
import type { FileKind, ObjectKind } from './kind.js';
import { location } from './location.js';
import { photo } from './photo.js';
import { venue } from './venue.js';
import { video } from './video.js';
import { voice } from './voice.js';

export const fileKinds: Readonly<Record<MediaType, FileKind>> = {
  photo,
  video,
  animation,
  audio,
  voice,
  document,
};

const objectKinds = { location, venue, contact } as const;

/** An object of an unknown kind was stored by a newer version; its message is shown without it. */
const objectKindOf = (type: string): ObjectKind | undefined =>
  (objectKinds as unknown as Readonly<Record<string, ObjectKind>>)[type];

/** Schemas of all fields of a Message that carry content other than text. */
export const contentFields = Object.assign(
  {},
  ...[...Object.values(fileKinds), ...Object.values(objectKinds)].map(({ fields }) => fields),
);

/** Names of the kinds, as in previews; a text message has the kind `text`. */
export const kindNames = [...Object.keys(fileKinds), ...Object.keys(objectKinds)];

export const kindOf = ({ media, object }: Content): string => media?.type ?? object?.type ?? 'text';

/** The fields of a Message that carry a file or an object. Empty for a text. */
export function viewContent(
  { media, object }: Content,
  forPeople: boolean,
): Readonly<Record<string, unknown>> {
  if (media !== undefined) return fileKinds[media.type].view(media, forPeople);
  return (object && objectKindOf(object.type)?.view(object, forPeople)) ?? {};
}

/** Emoji and words that represent content in a notification; `words` is the caption. '' for a text. */
export function signOf({ media, object }: Content, words: string): string {
  if (media !== undefined) return `${fileKinds[media.type].sign} ${words || (media.name ?? '')}`.trim();
  const kind = object && objectKindOf(object.type);
  return kind === undefined ? '' : `${kind.sign} ${kind.title(object as never)}`.trim();
}

/** For previews: the name of a file or the title of an object. */
export const titleOf = ({ media, object }: Content): string | undefined =>
  media === undefined ? object && objectKindOf(object.type)?.title(object as never) : media.name;
