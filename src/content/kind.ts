/**
 * Defines the interface of a kind of content. Each other file in this folder defines one kind, and `kinds.ts` lists
 * them.
 */
import type { z } from 'zod';
import type { Random } from '../random.js';
import type { ContentObject, Media } from '../store/core/codec.js';
import type { Time } from '../time.js';

interface Kind<S> {
  readonly fields: Readonly<Record<string, z.ZodType>>;
  /**
   * Returns the values of the kind's fields. Only people get the `url` of media stored by URL. `bot` is the id of the
   * bot that views a poll, if known.
   */
  view(stored: S, forPeople: boolean, time: Time, bot?: number): Readonly<Record<string, unknown>>;
  /**
   * The emoji that stands for this kind of content in notifications. It replaces a text, which would have to be in the
   * reader's language.
   */
  readonly sign: string;
}

export interface FileKind extends Kind<Media> {
  /** The name of the kind in the error "can't use file of type {typeName} as …". */
  readonly typeName: string;
}

/** Content that is neither text nor a file. Such a message has no caption, and only its keyboard can be edited. */
export interface ObjectKind<S extends ContentObject = ContentObject> extends Kind<S> {
  title(stored: S): string;
  copied?(stored: S, random: Random): S;
  forwarded?(stored: S): S;
}
