/** Defines the types and checks of text entities, and the parse errors that all parse modes share (behaviour §4). */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../limits.js';

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

export interface Entity {
  readonly type: EntityType;
  /** The offset in UTF-16 code units, never inside a surrogate pair. */
  readonly offset: number;
  /** The length in UTF-16 code units, at least 1. */
  readonly length: number;
  readonly url?: string;
  /** The user of a `text_mention`, from a `tg://user?id=` link. The parser sets only the id. */
  readonly user?: { readonly id: number };
  readonly language?: string;
  readonly custom_emoji_id?: string;
}

export interface FormattedText {
  readonly text: string;
  /**
   * The entities, properly nested and sorted by offset. If two entities have the same offset, the longer one comes
   * first.
   */
  readonly entities: readonly Entity[];
}

const styles: ReadonlySet<string> = new Set(styleTypes);
const quotes: ReadonlySet<string> = new Set(quoteTypes);
const codes: ReadonlySet<string> = new Set(codeTypes);

/** A style may overlap with everything except code. A style that would cross another entity is split. */
export const isStyle = (type: string): type is StyleType => styles.has(type);
/** Quotes may contain other entities, except quotes. */
export const isQuote = (type: string): boolean => quotes.has(type);
/** Code contains no other entities. */
export const isCode = (type: string): boolean => codes.has(type);

/** Reports a text that cannot be parsed. Byte offsets in `reason` refer to the original text in UTF-8. */
export function unparsable(reason: string): never {
  fail('entities_unparsable', { reason });
}

export function unparsableAt(source: string, index: number, reason: string): never {
  unparsable(`${reason} at byte offset ${byteOffset(source, index)}`);
}

/**
 * Counts the markup characters of one source text. Each markup character takes time to parse, even if the text is later
 * rejected as too long.
 */
export class Marks {
  private left = limits.markup_marks_max;

  /** Counts one markup character. Error: `entities_unparsable` beyond `limits.markup_marks_max`. */
  count(): void {
    if (--this.left < 0) unparsable(`Text has more than ${limits.markup_marks_max} marks`);
  }
}

/** Computes a UTF-8 byte offset. The computation is slow, so it is used only for errors. */
export function byteOffset(source: string, index: number): number {
  return Buffer.byteLength(source.slice(0, index));
}

/** The maximum length of a link's URL in UTF-16 code units. Each link stores its URL, so the length needs a limit. */
const linkLengthMax = 2048;

const withScheme = /^([a-z][a-z0-9+.-]*):(?:\/\/)?/i;
const webLink = /^(https?|ftp):\/\/([^\s/?#@]+\.[^\s/?#@.]+|\[[0-9a-f:.]+\](?::\d+)?)([/?#]\S*)?$/i;
const appLink = /^(tg|ton|tonsite):\/\/[^\s]+$/i;
const userLink = /^tg:\/\/user\/?\?id=([1-9]\d{0,13})$/i;
const emojiLink = /^tg:\/\/emoji\/?\?id=([1-9]\d{0,19})$/i;

/**
 * Builds the entity of a link. The entity is a `text_mention` for `tg://user?id=` and a `text_link` for a URL. Returns
 * null for an unsupported URL, such as `javascript:`. Adds `http://` to a domain without a scheme, and replaces an
 * empty path with `/`.
 */
export function linkEntity(offset: number, length: number, target: string): Entity | null {
  const link = target.trim();
  if (link.length > linkLengthMax) return null;
  const id = Number(userLink.exec(link)?.[1] ?? 0);
  if (id > 0 && id < limits.id_max) return { type: 'text_mention', offset, length, user: { id } };
  const url = checkedLink(link);
  return url === null ? null : { type: 'text_link', offset, length, url };
}

/** Creates a link whose URL is its own text. `withOwnAddresses` sets the URL after the whole text is parsed. */
export const ownLink = (offset: number, length: number): Entity => ({ type: 'text_link', offset, length });

/**
 * Sets the URL of each `ownLink` to the link's text. Removes the link if this text is not a URL. Runs after the text is
 * complete, because slicing a string that is still being built copies the whole string.
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
  // In `example.com:8080`, the text before the colon is a host and not a scheme, because a port follows.
  const bare = scheme === null || (!scheme[0].endsWith('//') && /^[^:]*\.[^:.]+:\d/.test(link));
  const web = webLink.exec(bare ? `http://${link}` : link);
  if (web === null) return null;
  const rest = web[3] ?? '';
  return `${web[1]!.toLowerCase()}://${web[2]!.toLowerCase()}${rest.startsWith('/') ? '' : '/'}${rest}`;
}

export function emojiOfLink(link: string): string | null {
  return emojiLink.exec(link.trim())?.[1] ?? null;
}
