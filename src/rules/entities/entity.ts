/** The entities of a text, and the failures that parsing one can end in (behaviour §4). */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';

const styleTypes = ['bold', 'italic', 'underline', 'strikethrough', 'spoiler'] as const;
const quoteTypes = ['blockquote', 'expandable_blockquote'] as const;
const codeTypes = ['code', 'pre'] as const;
const linkTypes = ['text_link', 'text_mention', 'custom_emoji'] as const;
const computedTypes = ['bot_command', 'mention', 'hashtag', 'cashtag', 'url', 'email'] as const;

export type StyleType = (typeof styleTypes)[number];
export type EntityType =
  | StyleType
  | (typeof quoteTypes)[number]
  | (typeof codeTypes)[number]
  | (typeof linkTypes)[number]
  | (typeof computedTypes)[number];

/** A marked range of a text, as it goes over the wire. */
export interface Entity {
  readonly type: EntityType;
  /** In UTF-16 code units, never inside a surrogate pair. */
  readonly offset: number;
  /** In UTF-16 code units, at least 1. */
  readonly length: number;
  /** Of a `text_link`. */
  readonly url?: string;
  /** Of a `text_mention`: who a link to `tg://user?id=` names. The rules know no more of a user than this. */
  readonly user?: { readonly id: number };
  /** Of a `pre`, where the sender named one. */
  readonly language?: string;
  /** Of a `custom_emoji`. */
  readonly custom_emoji_id?: string;
}

export interface FormattedText {
  readonly text: string;
  /** Well nested, sorted by offset, then the longer one first. */
  readonly entities: readonly Entity[];
}

const styles: ReadonlySet<string> = new Set(styleTypes);
const quotes: ReadonlySet<string> = new Set(quoteTypes);
const codes: ReadonlySet<string> = new Set(codeTypes);

/** Styles may overlap anything but code, and are cut where they would cross something that cannot be cut. */
export const isStyle = (type: string): type is StyleType => styles.has(type);
/** Quotes hold other entities, but no quotes. */
export const isQuote = (type: string): boolean => quotes.has(type);
/** Code and preformatted text hold no other entity. */
export const isCode = (type: string): boolean => codes.has(type);

/** Ends the parsing of a text. A byte offset, where there is one, counts the UTF-8 of the text as it was sent. */
export function unparsable(reason: string): never {
  fail('entities_unparsable', { reason });
}

/** The offset in UTF-8 bytes of a UTF-16 index. Only failures pay for it. */
export function byteOffset(source: string, index: number): number {
  return Buffer.byteLength(source.slice(0, index));
}

/** In UTF-16 code units: an address is kept with each link, so it must not grow without bound. */
const linkLengthMax = 2048;

const withScheme = /^([a-z][a-z0-9+.-]*):(?:\/\/)?/i;
const webLink = /^(https?|ftp):\/\/([^\s/?#@]+\.[^\s/?#@.]+|\[[0-9a-f:.]+\](?::\d+)?)([/?#]\S*)?$/i;
const appLink = /^(tg|ton|tonsite):\/\/[^\s]+$/i;
const userLink = /^tg:\/\/user\/?\?id=([1-9]\d{0,13})$/i;
const emojiLink = /^tg:\/\/emoji\/?\?id=([1-9]\d{0,19})$/i;

/**
 * The entity of a link: a `text_mention` for `tg://user?id=`, a `text_link` for an address, null for what is no
 * address that may be followed (`javascript:` for one). A bare domain gets `http://`, an empty path becomes `/`.
 */
export function linkEntity(offset: number, length: number, target: string): Entity | null {
  const link = target.trim();
  if (link.length > linkLengthMax) return null;
  const id = Number(userLink.exec(link)?.[1] ?? 0);
  if (id > 0 && id < limits.id_max) return { type: 'text_mention', offset, length, user: { id } };
  const url = checkedLink(link);
  return url === null ? null : { type: 'text_link', offset, length, url };
}

/** A link that names no address but its own text; `withOwnAddresses` gives it one when the whole text is known. */
export const ownLink = (offset: number, length: number): Entity => ({ type: 'text_link', offset, length });

/**
 * Gives each `ownLink` the address that its text is; one whose text is no address is left out. Done once for all links: reading
 * from a text while it still grows copies all of it each time.
 */
export function withOwnAddresses(text: string, entities: readonly Entity[]): readonly Entity[] {
  if (!entities.some((entity) => entity.type === 'text_link' && entity.url === undefined)) return entities;
  return entities.flatMap((entity) => {
    const { type, offset, length, url } = entity;
    if (type !== 'text_link' || url !== undefined) return [entity];
    const made =
      length > linkLengthMax ? null : linkEntity(offset, length, text.slice(offset, offset + length));
    return made === null ? [] : [made];
  });
}

function checkedLink(link: string): string | null {
  if (appLink.test(link)) return link;
  const scheme = withScheme.exec(link);
  // `example.com:8080` has a port, not a scheme.
  const bare = scheme === null || (!scheme[0].endsWith('//') && /^[^:]*\.[^:.]+:\d/.test(link));
  const web = webLink.exec(bare ? `http://${link}` : link);
  if (web === null) return null;
  const rest = web[3] ?? '';
  return `${web[1]!.toLowerCase()}://${web[2]!.toLowerCase()}${rest.startsWith('/') ? '' : '/'}${rest}`;
}

/** The identifier in `tg://emoji?id=`, or null. */
export function emojiOfLink(link: string): string | null {
  return emojiLink.exec(link.trim())?.[1] ?? null;
}
