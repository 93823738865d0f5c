/** Parses texts in parse mode `MarkdownV2`. */
import {
  type Entity,
  type EntityType,
  emojiOfLink,
  type FormattedText,
  linkEntity,
  Marks,
  ownLink,
  unparsable,
  unparsableAt,
} from './entity.js';
import { fenceStart } from './fence.js';

/** The names of entity types in error messages. Clients compare these messages. */
const names: Partial<Record<EntityType, string>> = {
  bold: 'Bold',
  italic: 'Italic',
  underline: 'Underline',
  strikethrough: 'Strikethrough',
  spoiler: 'Spoiler',
  code: 'Code',
  pre: 'Pre',
  text_link: 'TextUrl',
  custom_emoji: 'CustomEmoji',
  blockquote: 'BlockQuote',
};

const doubleMarks: ReadonlyMap<string, EntityType> = new Map([
  ['__', 'underline'],
  ['||', 'spoiler'],
  ['![', 'custom_emoji'],
] as const);
const singleMarks: ReadonlyMap<string, EntityType> = new Map([
  ['*', 'bold'],
  ['_', 'italic'],
  ['~', 'strikethrough'],
  ['[', 'text_link'],
  ['`', 'code'],
] as const);

const reserved = /[\\_*[\]()~`>#+\-=|{}.!\n]/g;
const reservedInCode = /[\\`]/g;

interface OpenEntity {
  readonly type: EntityType;
  readonly language: string;
  readonly offset: number;
  readonly begin: number;
}

interface State {
  readonly source: string;
  at: number;
  text: string;
  readonly open: OpenEntity[];
  readonly entities: Entity[];
  inQuote: boolean;
  /** The index in `text` at which the current line starts. `>` is markup only at this index. */
  lineStart: number;
}

export function parseMarkdownV2(source: string): FormattedText {
  const state: State = { source, at: 0, text: '', open: [], entities: [], inQuote: false, lineStart: 0 };
  const counted = new Marks();
  for (;;) {
    const top = state.open.at(-1);
    const marks = top?.type === 'code' || top?.type === 'pre' ? reservedInCode : reserved;
    marks.lastIndex = state.at;
    const mark = marks.exec(source)?.index ?? source.length;
    state.text += source.slice(state.at, mark);
    state.at = mark;
    if (mark === source.length) break;
    counted.count();
    if (source[mark] === '\\') readEscape(state);
    else if (source[mark] === '\n') readLineBreak(state);
    else if (top && endsEntity(state, top)) readEnd(state, top);
    else readBegin(state);
  }
  if (state.open.at(-1)?.type === 'blockquote') closeQuote(state, 'blockquote');
  const open = state.open.at(-1);
  if (open) noEnd(state, open);
  return { text: state.text, entities: state.entities };
}

function noEnd(state: State, open: OpenEntity): never {
  const name = open.type === 'pre' && open.language ? 'PreCode' : names[open.type];
  unparsableAt(state.source, open.begin, `Can't find end of ${name} entity`);
}

function readEscape(state: State): void {
  const code = state.source.charCodeAt(state.at + 1);
  const escapes = code > 0 && code < 127;
  state.text += escapes ? String.fromCharCode(code) : '\\';
  state.at += escapes ? 2 : 1;
}

function readLineBreak(state: State): void {
  const { source } = state;
  state.at += 1;
  state.text += '\n';
  if (state.inQuote) {
    if (source[state.at] === '>') {
      state.at += 1;
    } else {
      const top = state.open.at(-1)!;
      if (top.type !== 'blockquote') noEnd(state, top);
      closeQuote(state, 'blockquote');
    }
  }
  state.lineStart = state.text.length;
}

function closeQuote(state: State, type: 'blockquote' | 'expandable_blockquote'): void {
  const { offset } = state.open.pop()!;
  state.inQuote = false;
  const length = state.text.length - offset;
  if (length > 0) state.entities.push({ type, offset, length });
}

function endsEntity({ source, at }: State, top: OpenEntity): boolean {
  const mark = source[at];
  const doubled = source[at + 1] === mark;
  switch (top.type) {
    case 'bold':
      return mark === '*';
    case 'italic':
      return mark === '_' && !doubled;
    case 'underline':
      return mark === '_' && doubled;
    case 'strikethrough':
      return mark === '~';
    case 'spoiler':
      return mark === '|' && doubled;
    case 'code':
      return mark === '`';
    case 'pre':
      return source.startsWith('```', at);
    case 'blockquote':
      return mark === '|' && doubled && isQuoteEnd(source, at + 2);
    default:
      return mark === ']';
  }
}

function isQuoteEnd(source: string, at: number): boolean {
  return at >= source.length || (source[at] === '\n' && source[at + 1] !== '>');
}

function readEnd(state: State, top: OpenEntity): void {
  const { source } = state;
  if (top.type === 'blockquote') {
    state.at += 2;
    if (source[state.at] === '\n') {
      state.text += '\n';
      state.at += 1;
      state.lineStart = state.text.length;
    }
    closeQuote(state, 'expandable_blockquote');
    return;
  }
  state.open.pop();
  state.at += top.type === 'pre' ? 3 : top.type === 'underline' || top.type === 'spoiler' ? 2 : 1;
  const { type, offset } = top;
  const entity = { type, offset, length: state.text.length - offset };
  const made =
    type === 'text_link'
      ? readLink(state, entity)
      : type === 'custom_emoji'
        ? readEmoji(state, entity)
        : entity;
  if (made === null || entity.length === 0) return;
  state.entities.push(top.language ? { ...made, language: top.language } : made);
}

function readLink(state: State, { offset, length }: Entity): Entity | null {
  const hasUrl = state.source[state.at] === '(';
  return hasUrl ? linkEntity(offset, length, readUrl(state, 'a URL')) : ownLink(offset, length);
}

function readEmoji(state: State, entity: Entity): Entity {
  if (state.source[state.at] !== '(') unparsable('Custom emoji entity must contain a tg://emoji URL');
  const begin = state.at + 1;
  const id = emojiOfLink(readUrl(state, 'a custom emoji URL'));
  if (id === null) {
    unparsableAt(state.source, begin, 'Invalid custom emoji identifier specified');
  }
  return { ...entity, custom_emoji_id: id };
}

function readUrl(state: State, what: string): string {
  const { source } = state;
  const begin = state.at + 1;
  let end = begin;
  while (end < source.length && source[end] !== ')') end += source[end] === '\\' ? 2 : 1;
  if (end >= source.length) unparsableAt(source, begin, `Can't find end of ${what}`);
  state.at = end + 1;
  return source.slice(begin, end).replace(/\\([\x01-\x7e])/g, '$1');
}

function readBegin(state: State): void {
  const { source, at } = state;
  if (source[at] === '>' && !state.inQuote && state.text.length === state.lineStart) {
    state.inQuote = true;
    push(state, 'blockquote', 1);
  } else if (source.startsWith('```', at)) {
    const { language, contentStart } = fenceStart(source, at + 3);
    push(state, 'pre', contentStart - at, language);
  } else {
    const mark = source.slice(at, at + 2);
    const type = doubleMarks.get(mark) ?? singleMarks.get(mark[0]!);
    if (!type) unparsable(`Character '${mark[0]}' is reserved and must be escaped with the preceding '\\'`);
    push(state, type, doubleMarks.has(mark) ? 2 : 1);
  }
}

function push(state: State, type: EntityType, markLength: number, language = ''): void {
  state.open.push({ type, language, offset: state.text.length, begin: state.at });
  state.at += markLength;
}
