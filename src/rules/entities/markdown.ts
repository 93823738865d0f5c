/** Parses texts in the legacy parse mode `Markdown`, which has neither nesting nor escapes inside an entity. */
import { type Entity, type FormattedText, linkEntity, Marks, unparsableAt } from './entity.js';
import { fenceStart } from './fence.js';

const marks = /[\\_*`[]/g;

interface State {
  readonly source: string;
  text: string;
  readonly entities: Entity[];
}

/**
 * Parses `*bold*`, `_italic_`, `` `code` ``, fenced blocks and `[text](url)`; `\` escapes `_`, `*`, `` ` `` and `[`.
 */
export function parseMarkdown(source: string): FormattedText {
  const state: State = { source, text: '', entities: [] };
  const counted = new Marks();
  let at = 0;
  for (;;) {
    marks.lastIndex = at;
    const begin = marks.exec(source)?.index ?? source.length;
    state.text += source.slice(at, begin);
    if (begin === source.length) break;
    counted.count();
    if (source[begin] === '\\') {
      const next = source[begin + 1];
      const escapes = next !== undefined && '_*`['.includes(next);
      state.text += escapes ? next : '\\';
      at = begin + (escapes ? 2 : 1);
    } else {
      at = readEntity(state, begin);
    }
  }
  return state;
}

function readEntity(state: State, begin: number): number {
  const { source } = state;
  const mark = source[begin]!;
  if (source.startsWith('```', begin)) {
    const fence = fenceStart(source, begin + 3);
    const end = endOf(source, '```', fence.contentStart, begin);
    const { language } = fence;
    append(state, source.slice(fence.contentStart, end), (offset, length) => ({
      type: 'pre',
      offset,
      length,
      ...(language && { language }),
    }));
    return end + 3;
  }
  const end = endOf(source, mark === '[' ? ']' : mark, begin + 1, begin);
  const content = source.slice(begin + 1, end);
  if (mark !== '[') {
    const type = mark === '*' ? 'bold' : mark === '_' ? 'italic' : 'code';
    append(state, content, (offset, length) => ({ type, offset, length }));
    return end + 1;
  }
  if (source[end + 1] !== '(') {
    append(state, content, (offset, length) => linkEntity(offset, length, content));
    return end + 1;
  }
  // If a URL has no `)`, it ends at the end of the text. This legacy mode has never rejected such URLs.
  const close = source.indexOf(')', end + 2);
  const urlEnd = close < 0 ? source.length : close;
  append(state, content, (offset, length) => linkEntity(offset, length, source.slice(end + 2, urlEnd)));
  return Math.min(urlEnd + 1, source.length);
}

function endOf(source: string, mark: string, from: number, begin: number): number {
  const end = source.indexOf(mark, from);
  if (end < 0) unparsableAt(source, begin, "Can't find end of the entity starting");
  return end;
}

function append(
  state: State,
  content: string,
  entity: (offset: number, length: number) => Entity | null,
): void {
  const made = content === '' ? null : entity(state.text.length, content.length);
  if (made) state.entities.push(made);
  state.text += content;
}
