/** The interface of a kind of content. Each file of this folder defines one kind; `kinds.ts` lists them. */
import type { z } from 'zod';
import type { ContentObject, Media } from '../store/core/codec.js';

/** Stored content of type `S`: a file, or an object without a file, such as a location. */
interface Kind<S> {
  /** Fields of a Message that carry this content, with their schemas. */
  readonly fields: Readonly<Record<string, z.ZodType>>;
  /** Values of those fields. Only people get the `url` of media stored by URL. */
  view(stored: S, forPeople: boolean): Readonly<Record<string, unknown>>;
  /** An emoji that marks the kind in notifications, whose language is unknown. */
  readonly sign: string;
}

export interface FileKind extends Kind<Media> {
  /** Name of the kind in errors: "can't use file of type {typeName} as …". */
  readonly typeName: string;
}

/** Content of a message that is neither text nor a file. It has no caption, and only its keyboard can be edited. */
export interface ObjectKind<S extends ContentObject = ContentObject> extends Kind<S> {
  /** Text for notifications and previews. */
  title(stored: S): string;
}
