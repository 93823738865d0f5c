/**
 * Converts between the marks that a person types, such as `**bold**`, and the entities of a message (decision 0080).
 * Each mark also has a form in braces, such as `{**bold**}`, for places where the usual form is not recognised (inside
 * a word or beside white space). `{=text=}` is text whose marks are ignored.
 */
import type { MessageEntity } from '../types.js';

export interface MarkedText {
  readonly text: string;
  readonly entities: readonly MessageEntity[];
}

/** The maximum length of a text that is searched for marks. A longer text cannot be a message. */
export const marked_length_max = 32_768;

export const styleMarks = {
  bold: '**',
  italic: '_',
  underline: '++',
  strikethrough: '~~',
  spoiler: '||',
} as const;
export type Style = keyof typeof styleMarks;

const styleOf = Object.fromEntries(Object.entries(styleMarks).map(([style, mark]) => [mark, style]));

const beforeMark = /^$|[\s([{"'«„“‘—–*_+~|]$/;
const afterMark = /^$|^[\s)\]}"'»”’.,:;!?…—–*_+~|։՝՞՜،؛؟。、，！？：；]/;

/** Returns whether marks without braces are recognised around the part of the text between `from` and `to`. */
export function isSeparate(text: string, from: number, to: number): boolean {
  const isOpen = beforeMark.test(text.slice(Math.max(0, from - 1), from));
  return isOpen && afterMark.test(text.slice(to, to + 1)) && !/^\s|\s$/.test(text.slice(from, to));
}

const appLink = /^(?:tg|ton|tonsite):\/\/\S+$/i;
const webLink =
  /^(?:(?:https?|ftp):\/\/)?(?:[^\s/?#@:]+\.[^\s/?#@.:]+|\[[0-9a-f:.]+\])(?::\d+)?(?:[/?#]\S*)?$/i;

/** Returns whether the service accepts the target of a link. */
export const isLink = (target: string): boolean =>
  target.length <= 2_048 && (appLink.test(target) || webLink.test(target));

const userLink = /^tg:\/\/user\?id=(\d{1,14})$/;
const emojiLink = /^tg:\/\/emoji\?id=(\d{1,20})$/;

function linkTo(target: string): Partial<MessageEntity> & Pick<MessageEntity, 'type'> {
  const [, user] = userLink.exec(target) ?? [];
  // The mention needs no name, because the service adds the name.
  if (user !== undefined) return { type: 'text_mention', user: { id: Number(user) } as never };
  const [, custom_emoji_id] = emojiLink.exec(target) ?? [];
  return custom_emoji_id === undefined
    ? { type: 'text_link', url: target }
    : { type: 'custom_emoji', custom_emoji_id };
}

function targetOf({ type, url = '', user, custom_emoji_id }: MessageEntity): string {
  if (type === 'text_mention') return `tg://user?id=${user?.id}`;
  return type === 'custom_emoji' ? `tg://emoji?id=${custom_emoji_id}` : url;
}

/** The maximum length of the text between `{=` and `=}`. */
const plain_length_max = 8_192;

/**
 * Every pattern must find its token in linear time. A code fence therefore matches all successive backticks. Otherwise
 * each part of a long run of backticks would be tried as a fence.
 */
const escaped = String.raw`(?:[^\\${'`'}]|\\[\\${'`'}])+`;
const tokens = new RegExp(
  [
    // The underscores of a URL are not marks.
    String.raw`https?:\/\/(?:[^\s*|~<>${'`'}\])_+]|[_+)](?=[\w/(#=&%]|\?\w))+`,
    String.raw`\{${'```'}(?<wrappedLanguage>[^\n${'`'}]*)\n(?<wrappedPre>${escaped})${'```'}\}`,
    String.raw`\{${'`'}(?<wrappedCode>${escaped})${'`'}\}`,
    String.raw`(?<!${'`'})(?<fence>${'`'}{3,})(?!${'`'})(?:(?<language>[^\s${'`'}]*)\n)?(?<pre>[^]+?)\n?\k<fence>(?!${'`'})`,
    String.raw`(?<!${'`'})${'`'}(?<code>[^${'`'}\n]+)${'`'}(?!${'`'})`,
    String.raw`\{(?<begin>\*\*|_|\+\+|~~|\|\|)`,
    String.raw`(?<end>\*\*|_|\+\+|~~|\|\|)\}`,
    String.raw`(?<style>(?<!\*)\*\*(?!\*)|(?<!_)_(?!_)|(?<!\+)\+\+(?!\+)|(?<!~)~~(?!~)|(?<!\|)\|\|(?!\|))`,
    String.raw`\]\((?:<(?<anyTarget>\S{1,2048}?)>|(?<target>(?:[^\s()<>]|\([^\s()<>]*\))+))\)`,
    String.raw`^(?<quote>> (?=.*\S))`,
    String.raw`(?<symbol>\[|\{>>?|\{=|<\})`,
  ].join('|'),
  'gm',
);
const quotedLines = /(?:^>(?: .*)?$\n?)+/my;
const unescaped = (text: string) => text.replace(/\\([\\`])/g, '$1');

/**
 * A range of text that an entity covers. It consists of all pieces from `from` up to `to`, or lies inside one piece.
 */
interface Found extends Pick<MessageEntity, 'type'> {
  from: number;
  to: number;
  at?: number;
  length?: number;
  more?: object;
}

/** Reads the marks in a text. A mark without a counterpart stays in the text. */
class Reader {
  /** The text in pieces. Each mark is a separate piece, which becomes empty when the mark's counterpart is found. */
  readonly #pieces: string[] = [];
  readonly #found: Found[] = [];
  /** The index of the last piece that is not empty, or -1. */
  #lastText = -1;
  /** The opening marks that have no closing mark yet, each with the index of its piece. */
  readonly #open: Array<{ mark: string; piece: number }> = [];
  /** The indices of each kind of mark in `#open`. With them, the last open mark of a kind is found without a search. */
  readonly #places = new Map<string, number[]>();
  /** The position of the `=}` that was found last. Infinity if no `=}` follows. */
  #plainEnd = -1;
  readonly #source: string;
  readonly #isQuote: boolean;
  readonly #lastQuoteEnd: number;

  constructor(source: string, isQuote: boolean) {
    this.#source = source;
    this.#isQuote = isQuote;
    this.#lastQuoteEnd = source.lastIndexOf('<}');
  }

  read(): MarkedText {
    const source = this.#source;
    let at = 0;
    // Copies the pattern. A quote inside this loop is read by another `Reader`, and each `Reader` needs its own
    // `lastIndex`.
    const pattern = new RegExp(tokens);
    for (let match = pattern.exec(source); match; match = pattern.exec(source)) {
      this.#add(source.slice(at, match.index));
      at = this.#take(match, match.groups ?? {});
      pattern.lastIndex = at;
    }
    this.#add(source.slice(at));
    return this.#result();
  }

  /** Appends a piece of text and returns the index of the piece. */
  #add(text: string): number {
    const piece = this.#pieces.push(text) - 1;
    if (text !== '') this.#lastText = piece;
    return piece;
  }

  /** Reads a token, and returns the position after the token. */
  #take(match: RegExpExecArray, groups: Record<string, string | undefined>): number {
    const { index, 0: token } = match;
    const end = index + token.length;
    const { wrappedPre, wrappedCode, begin, style, quote, symbol } = groups;
    const target = groups.anyTarget ?? groups.target;
    const solid = groups.pre ?? groups.code;
    if (symbol === '{=') return this.#plain(end);
    if (wrappedPre !== undefined) this.#solid('pre', unescaped(wrappedPre), groups.wrappedLanguage);
    else if (wrappedCode !== undefined) this.#solid('code', unescaped(wrappedCode));
    else if (solid !== undefined) {
      if (!isSeparate(this.#source, index, end)) return this.#keep(groups.fence ?? '`', index);
      this.#solid(groups.pre === undefined ? 'code' : 'pre', solid, groups.language);
    } else if (begin !== undefined) this.#begin(`{${begin}`, token);
    else if (groups.end !== undefined) return index + this.#end(groups.end, token, index);
    else if (style !== undefined) this.#style(style, index);
    else if (target !== undefined) this.#link(target, token);
    else if (quote !== undefined && !this.#inQuote()) return this.#quote(index);
    else if (symbol !== undefined) this.#symbol(symbol, index);
    else this.#add(token);
    return end;
  }

  /** Reads text whose marks are ignored, from the position `from`. Returns the position after this text. */
  #plain(from: number): number {
    if (this.#plainEnd <= from) {
      const end = this.#source.indexOf('=}', from + 1);
      this.#plainEnd = end < 0 ? Number.POSITIVE_INFINITY : end;
    }
    const end = this.#plainEnd;
    if (end - from > plain_length_max) return this.#keep('{=', from - 2);
    this.#add(this.#source.slice(from, end));
    return end + 2;
  }

  /** Keeps the first characters of a token as plain text. Returns the position after these characters. */
  #keep(text: string, index: number): number {
    this.#add(text);
    return index + text.length;
  }

  #inQuote(): boolean {
    return this.#isQuote || this.#openQuote() >= 0;
  }

  #begin(mark: string, token: string): void {
    const at = this.#open.push({ mark, piece: this.#add(token) }) - 1;
    const places = this.#places.get(mark);
    if (places) places.push(at);
    else this.#places.set(mark, [at]);
  }

  /** Returns the index in `#open` of the last open mark of these kinds, or -1 if there is none. */
  #last(...marks: string[]): number {
    return Math.max(...marks.map((mark) => this.#places.get(mark)?.at(-1) ?? -1));
  }

  #openQuote(): number {
    return this.#last('{>', '{>>');
  }

  /**
   * Returns the index in `#open` of the last open mark of these kinds, or -1 if there is none. Skips marks outside the
   * current quote, because a mark cannot begin outside a quote and end inside it.
   */
  #nearest(...marks: string[]): number {
    const at = this.#last(...marks);
    return at > this.#openQuote() ? at : -1;
  }

  /** Forgets the open marks with this index in `#open` and all later ones. */
  #forget(at: number): void {
    for (let last = this.#open.length - 1; last >= at; last--) {
      const places = this.#places.get(this.#open.pop()?.mark ?? '');
      if (places?.at(-1) === last) places.pop();
    }
  }

  /**
   * Ends an open mark. Marks that were opened after it and have no closing mark become plain text. If there is no text
   * between the opening and the closing mark, both become plain text too.
   */
  #close(at: number, token: string, type: MessageEntity['type'], more: object = {}): void {
    const { piece } = this.#open[at] as { piece: number };
    this.#forget(at);
    const to = this.#add('') + 1;
    if (this.#lastText <= piece) {
      this.#add(token);
      return;
    }
    this.#pieces[piece] = '';
    this.#found.push({ type, from: piece, to, more });
  }

  #style(mark: string, index: number): void {
    const source = this.#source;
    const [before, after] = [index - 1, index + mark.length];
    const mayEnd = !/^$|\s/.test(source.charAt(before)) && afterMark.test(source.charAt(after));
    const at = mayEnd ? this.#nearest(mark) : -1;
    if (at >= 0) this.#close(at, mark, styleOf[mark] as Style);
    else if (beforeMark.test(source.charAt(before)) && !/^$|\s/.test(source.charAt(after)))
      this.#begin(mark, mark);
    else this.#add(mark);
  }

  /**
   * Reads a closing mark with a brace, such as `**}`. If no opening mark with a brace matches, the brace is not part of
   * the mark. Returns the number of characters that were read.
   */
  #end(mark: string, token: string, index: number): number {
    const at = this.#nearest(`{${mark}`, mark);
    if (this.#open[at]?.mark === `{${mark}`) {
      this.#close(at, token, styleOf[mark] as Style);
      return token.length;
    }
    const isExact = this.#source.charAt(index - 1) !== mark.charAt(0);
    if (isExact) this.#style(mark, index);
    else this.#add(mark);
    return mark.length;
  }

  #solid(type: 'code' | 'pre', text: string, language = ''): void {
    const piece = this.#add(text);
    const more = language.trim() === '' ? {} : { language: language.trim() };
    this.#found.push({ type, from: piece, to: piece + 1, more });
  }

  #link(target: string, token: string): void {
    const at = isLink(target) ? this.#nearest('[') : -1;
    if (at < 0) {
      this.#add(token);
      return;
    }
    const { type, ...more } = linkTo(target);
    this.#close(at, token, type, more);
    // Forgets the open `[` marks around this link, because a link cannot contain a link.
    this.#places.delete('[');
  }

  #symbol(symbol: string, index: number): void {
    const isQuoteEnd = symbol === '<}';
    const at = isQuoteEnd ? this.#openQuote() : -1;
    const type = this.#open[at]?.mark === '{>>' ? 'expandable_blockquote' : 'blockquote';
    if (at >= 0) this.#close(at, symbol, type);
    else if (symbol === '[' || (!isQuoteEnd && !this.#inQuote() && this.#lastQuoteEnd > index))
      this.#begin(symbol, symbol);
    else this.#add(symbol);
  }

  /** Reads the lines of a quote. Returns the position after the quote. */
  #quote(index: number): number {
    quotedLines.lastIndex = index;
    const lines = (quotedLines.exec(this.#source)?.[0] ?? '').replace(/\n$/, '');
    const { text, entities } = new Reader(lines.replace(/^> ?/gm, ''), true).read();
    const piece = this.#add(text);
    this.#found.push({ type: 'blockquote', from: piece, to: piece + 1 });
    for (const { type, offset, length, ...more } of entities)
      this.#found.push({ type, from: piece, to: piece, at: offset, length, more });
    return index + lines.length;
  }

  #result(): MarkedText {
    const starts = [0];
    for (const piece of this.#pieces) starts.push((starts.at(-1) ?? 0) + piece.length);
    const entities = this.#found.flatMap(({ type, from, to, at = 0, more, ...given }) => {
      const offset = (starts[from] ?? 0) + at;
      const length = given.length ?? (starts[to] ?? 0) - offset;
      return length > 0 ? [{ type, offset, length, ...more }] : [];
    });
    return { text: this.#pieces.join(''), entities: sorted(entities) };
  }
}

/**
 * Sorts code after all other entities of the same range. Code is thus the innermost entity, because it cannot contain
 * others.
 */
const rankOf = ({ type }: MessageEntity): string => (type === 'code' || type === 'pre' ? `~${type}` : type);

const sorted = (entities: readonly MessageEntity[]): MessageEntity[] =>
  [...entities].sort(
    (a, b) => a.offset - b.offset || b.length - a.length || (rankOf(a) < rankOf(b) ? -1 : 1),
  );

/** Reads the marks in a text. */
export const readMarks = (source: string): MarkedText =>
  source.length > marked_length_max ? { text: source, entities: [] } : new Reader(source, false).read();

/**
 * How marks are written: with or without braces around the marks, and with or without braces that protect the text
 * between the marks.
 */
interface Form {
  readonly hasBraces: boolean;
  readonly isProtected: boolean;
}

const forms: readonly Form[] = [
  { hasBraces: false, isProtected: false },
  { hasBraces: false, isProtected: true },
  { hasBraces: true, isProtected: false },
  { hasBraces: true, isProtected: true },
];

const written: ReadonlySet<string> = new Set([
  ...Object.keys(styleMarks),
  ...['code', 'pre', 'blockquote', 'expandable_blockquote', 'text_link', 'text_mention', 'custom_emoji'],
]);

const special = /[*_+~|`[\]{}<>]|https?:/;

/** Writes plain text. If `isProtected` is true, protects it, so that none of it is read as marks. */
function plain(text: string, { isProtected }: Form): string {
  if (!isProtected || !special.test(text)) return text;
  // Splits the text at each `=}`, because protected text has the form `{=text=}` and ends at the first `=}`.
  return text
    .split(/(?<==)(?=\})/)
    .map((part) => `{=${part}=}`)
    .join('');
}

function writeSolid({ type, language = '' }: MessageEntity, text: string, { hasBraces }: Form): string {
  const mark = type === 'pre' ? '```' : '`';
  // Replaces line breaks and backticks in the name of the language, because they would end the name. A bot can send any
  // name, and no part of it may become text of the message.
  const name = language.replace(/[\n`]/g, ' ').trim();
  const [before, after] = type === 'pre' ? [`${mark}${name}\n`, `\n${mark}`] : [mark, mark];
  if (!hasBraces) return `${before}${text}${after}`;
  return `{${before}${text.replace(/[\\`]/g, '\\$&')}${mark}}`;
}

function writeQuote(type: MessageEntity['type'], inner: string, { hasBraces }: Form): string {
  if (type === 'expandable_blockquote') return `{>>${inner}<}`;
  return hasBraces ? `{>${inner}<}` : inner.replace(/^.*$/gm, (line) => (line === '' ? '>' : `> ${line}`));
}

/** Writes the text between `from` and `to`, with the entities in this range. */
function write(
  text: string,
  entities: readonly MessageEntity[],
  from: number,
  to: number,
  form: Form,
): string {
  let out = '';
  let at = from;
  for (let i = 0; i < entities.length; ) {
    const entity = entities[i] as MessageEntity;
    const { type, offset } = entity;
    const end = offset + entity.length;
    const next = entities.findIndex((other, index) => index > i && other.offset >= end);
    const inside = entities.slice(i + 1, next < 0 ? entities.length : next);
    i = next < 0 ? entities.length : next;
    out += plain(text.slice(at, offset), form);
    at = end;
    if (type === 'code' || type === 'pre') {
      out += writeSolid(entity, text.slice(offset, end), form);
      continue;
    }
    const inner = write(text, inside, offset, end, form);
    const mark = (styleMarks as Partial<Record<string, string>>)[type];
    if (mark !== undefined) out += form.hasBraces ? `{${mark}${inner}${mark}}` : `${mark}${inner}${mark}`;
    else if (type.endsWith('blockquote')) out += writeQuote(type, inner, form);
    else {
      const target = targetOf(entity).replaceAll('>)', '%3E)');
      out += /^(?:[^\s()<>]|\([^\s()<>]*\))+$/.test(target)
        ? `[${inner}](${target})`
        : `[${inner}](<${target}>)`;
    }
  }
  return out + plain(text.slice(at, to), form);
}

const comparable = ({ type, offset, length, url, user, language, custom_emoji_id }: MessageEntity) => [
  ...[type, offset, length, url ?? '', user?.id ?? 0, language ?? '', custom_emoji_id ?? ''],
];

/**
 * Writes a text with marks, so that `readMarks` returns the same text and entities. Leaves out the entities that the
 * service itself finds in the text, for instance mentions by username. Uses braces only where they are needed.
 */
export function writeMarks(text: string, entities: readonly MessageEntity[] = []): string {
  const kept = sorted(entities.filter(({ type }) => written.has(type)));
  const wanted = JSON.stringify([text, kept.map(comparable)]);
  let source = '';
  for (const form of forms) {
    source = write(text, kept, 0, text.length, form);
    const read = readMarks(source);
    if (JSON.stringify([read.text, read.entities.map(comparable)]) === wanted) break;
  }
  return source;
}
