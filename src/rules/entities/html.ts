/** Parses texts in parse mode `HTML`. */
import {
  byteOffset,
  type Entity,
  type FormattedText,
  linkEntity,
  Marks,
  ownLink,
  type StyleType,
  unparsable,
  unparsableAt,
} from './entity.js';
import { decodeReferences, readAttributes } from './html_attributes.js';

const styleOfTag: ReadonlyMap<string, StyleType> = new Map([
  ['b', 'bold'],
  ['strong', 'bold'],
  ['i', 'italic'],
  ['em', 'italic'],
  ['u', 'underline'],
  ['ins', 'underline'],
  ['s', 'strikethrough'],
  ['strike', 'strikethrough'],
  ['del', 'strikethrough'],
  ['tg-spoiler', 'spoiler'],
  ['span', 'spoiler'],
] as const);
const otherTags: ReadonlySet<string> = new Set(['a', 'code', 'pre', 'blockquote', 'tg-emoji']);

interface OpenTag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly offset: number;
}

interface State {
  readonly source: string;
  at: number;
  text: string;
  readonly open: OpenTag[];
  readonly marks: Marks;
  readonly entities: Entity[];
}

/**
 * Parses the documented tags. `<` always starts a tag. `&` starts one of the four named references or a numeric
 * reference. Any other `&` stands for itself. `</>` closes the innermost tag.
 */
export function parseHtml(source: string): FormattedText {
  const state: State = { source, at: 0, text: '', open: [], entities: [], marks: new Marks() };
  for (;;) {
    const tag = source.indexOf('<', state.at);
    state.text += decodeReferences(source.slice(state.at, tag < 0 ? source.length : tag), state.marks);
    if (tag < 0) break;
    state.marks.count();
    state.at = tag;
    if (source[tag + 1] === '/') readEndTag(state);
    else readStartTag(state);
  }
  const open = state.open.at(-1);
  if (open) unparsable(`Can't find end tag corresponding to start tag "${open.name}"`);
  return { text: state.text, entities: state.entities.map(withoutStrayLanguage) };
}

function readStartTag(state: State): void {
  const { source, at: begin } = state;
  const nameEnd = begin + 1 + source.slice(begin + 1, begin + 33).search(/[\s>]|$/);
  const raw = source.slice(begin + 1, nameEnd);
  if (nameEnd === source.length) unparsableAt(source, begin, 'Unclosed start tag');
  const name = raw.toLowerCase();
  if (!styleOfTag.has(name) && !otherTags.has(name)) {
    unparsableAt(source, begin, `Unsupported start tag "${name}"`);
  }
  const { attributes, end } = readAttributes(source, begin, nameEnd, name, state.marks);
  if (name === 'span' && attributes.get('class') !== 'tg-spoiler') {
    unparsableAt(source, begin, 'Tag "span" must have class "tg-spoiler"');
  }
  if (name === 'tg-emoji' && !/^[1-9]\d{0,19}$/.test(attributes.get('emoji-id') ?? '')) {
    unparsableAt(source, begin, 'Invalid custom emoji identifier specified');
  }
  state.open.push({ name, attributes, offset: state.text.length });
  state.at = end;
}

function readEndTag(state: State): void {
  const { source, at: begin } = state;
  const tag = state.open.pop();
  if (!tag) unparsableAt(source, begin, 'Unexpected end tag');
  const end = source.indexOf('>', begin);
  const [, name] = /^<\/([A-Za-z0-9-]*)\s*>$/.exec(end < 0 ? '' : source.slice(begin, end + 1)) ?? [];
  if (name === undefined) unparsableAt(source, begin, 'Unclosed end tag');
  const found = name.toLowerCase();
  if (found !== '' && found !== tag.name) {
    const where = byteOffset(source, begin);
    unparsable(`Unmatched end tag at byte offset ${where}, expected "</${tag.name}>", found "</${found}>"`);
  }
  state.at = end + 1;
  if (state.text.length > tag.offset) addEntity(state, tag);
}

function addEntity(state: State, tag: OpenTag): void {
  const { offset, attributes } = tag;
  const length = state.text.length - offset;
  const style = styleOfTag.get(tag.name);
  if (style) {
    state.entities.push({ type: style, offset, length });
    return;
  }
  switch (tag.name) {
    case 'a': {
      const href = attributes.get('href');
      const link = href ? linkEntity(offset, length, href) : ownLink(offset, length);
      if (link) state.entities.push(link);
      break;
    }
    case 'tg-emoji':
      state.entities.push({
        type: 'custom_emoji',
        offset,
        length,
        custom_emoji_id: attributes.get('emoji-id')!,
      });
      break;
    case 'blockquote':
      state.entities.push({
        type: attributes.has('expandable') ? 'expandable_blockquote' : 'blockquote',
        offset,
        length,
      });
      break;
    default:
      addCode(state, tag, length);
  }
}

/**
 * If `<pre>` and `<code class="language-…">` enclose the same text, in either order, merges them into one block with a
 * language.
 */
function addCode(state: State, tag: OpenTag, length: number): void {
  const { offset } = tag;
  const inner = state.entities.at(-1);
  const same = inner?.offset === offset && inner.length === length;
  const named = languageOf(tag);
  if (tag.name === 'code') {
    if (same && inner.type === 'pre') {
      if (named && !inner.language) state.entities[state.entities.length - 1] = { ...inner, language: named };
      return;
    }
    // Keeps the language of the code, because an enclosing <pre> may need it. If no <pre> follows,
    // `withoutStrayLanguage` removes the language.
    state.entities.push({ type: 'code', offset, length, ...(named && { language: named }) });
    return;
  }
  const language = same && inner.type === 'code' ? inner.language : undefined;
  if (same && inner.type === 'code') state.entities.pop();
  state.entities.push({ type: 'pre', offset, length, ...(language && { language }) });
}

function languageOf(tag: OpenTag): string | undefined {
  const name = tag.attributes.get('class');
  return tag.name === 'code' && name?.startsWith('language-') ? name.slice(9) || undefined : undefined;
}

function withoutStrayLanguage(entity: Entity): Entity {
  if (entity.type !== 'code') return entity;
  return { type: 'code', offset: entity.offset, length: entity.length };
}
