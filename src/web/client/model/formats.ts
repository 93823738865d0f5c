/** Computes how the formatting buttons change the text in the composer (decision 0080). */
import type { Format } from './format_keys.js';
import { isLink, isSeparate, styleMarks } from './marks.js';

/** A change that replaces the text between `from` and `to`, and then selects a range of the new text. */
export interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
  readonly selection: readonly [from: number, to: number];
}

interface Selected {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

const link_start = 'https://';

/** Returns the selection without white space at its ends. */
function trimmed({ text, from, to }: Selected): Selected {
  const inner = text.slice(from, to);
  if (inner.trim() === '') return { text, from: to, to };
  const start = from + inner.length - inner.trimStart().length;
  return { text, from: start, to: start + inner.trim().length };
}

/**
 * Removes the marks `before` and `after` (such as `**`) that surround the selection or are part of it. Returns null if
 * there are none.
 */
function withoutMarks({ text, from, to }: Selected, before: string, after: string): Change | null {
  const length = before.length + after.length;
  const inner = text.slice(from, to);
  if (text.slice(0, from).endsWith(before) && text.startsWith(after, to)) {
    const start = from - before.length;
    return { from: start, to: to + after.length, insert: inner, selection: [start, start + inner.length] };
  }
  if (inner.length <= length || !inner.startsWith(before) || !inner.endsWith(after)) return null;
  const insert = inner.slice(before.length, -after.length);
  return { from, to, insert, selection: [from, from + insert.length] };
}

/**
 * Removes a mark without braces that surrounds the selection or is part of it. Returns null if there is none. The
 * underscores of `snake_case_name` are not marks.
 */
function withoutPlainMarks(selected: Selected, mark: string): Change | null {
  const change = withoutMarks(selected, mark, mark);
  return change && isSeparate(selected.text, change.from, change.to) ? change : null;
}

function withMarks({ text, from, to }: Selected, before: string, after: string): Change {
  const inner = text.slice(from, to);
  const start = from + before.length;
  return { from, to, insert: before + inner + after, selection: [start, start + inner.length] };
}

function inStyle(given: Selected, mark: string): Change {
  const selected = trimmed(given);
  const { text, from, to } = selected;
  const removed = withoutMarks(selected, `{${mark}`, `${mark}}`) ?? withoutPlainMarks(selected, mark);
  if (removed) return removed;
  const around = [text[from - 1], text[from], text[to - 1], text[to]];
  return isSeparate(text, from, to) && !around.includes(mark.charAt(0))
    ? withMarks(selected, mark, mark)
    : withMarks(selected, `{${mark}`, `${mark}}`);
}

function inCode(given: Selected): Change {
  const selected = trimmed(given);
  const { text, from, to } = selected;
  const removed = withoutPlainMarks(selected, '`');
  if (removed) return removed;
  const inner = text.slice(from, to);
  if (isSeparate(text, from, to) && !/[`\n]/.test(inner)) return withMarks(selected, '`', '`');
  const insert = `{\`${inner.replace(/[\\`]/g, '\\$&')}\`}`;
  return { from, to, insert, selection: [from + 2, from + insert.length - 2] };
}

const fences = (text: string): number => Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));

function inBlock(selected: Selected): Change {
  const { text, from, to } = selected;
  const [before = ''] = /`{3,}[^\s`]*\n$/.exec(text.slice(0, from)) ?? [];
  const [after = ''] = /^\n`{3,}/.exec(text.slice(to)) ?? [];
  if (before !== '' && after !== '') return withoutMarks(selected, before, after) as Change;
  const fence = '`'.repeat(fences(text.slice(from, to)) + 1);
  const start = from === 0 || text[from - 1] === '\n' ? '' : '\n';
  const end = to === text.length || text[to] === '\n' ? '' : '\n';
  return withMarks(selected, `${start}${fence}\n`, `\n${fence}${end}`);
}

/** Quotes the selected lines. If all of them are quoted, removes the quote. */
function inQuote({ text, from, to }: Selected): Change {
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const lineEnd = text.indexOf('\n', Math.max(from, to - 1));
  const end = lineEnd < 0 ? text.length : Math.max(lineEnd, start);
  const lines = text.slice(start, end).split('\n');
  const isOne = lines.length === 1;
  const isQuoted = lines.every((line) => /^>(?: |$)/.test(line));
  const insert = lines
    .map((line) => (isQuoted ? line.replace(/^> ?/, '') : line === '' && !isOne ? '>' : `> ${line}`))
    .join('\n');
  const caret = start + insert.length;
  return { from: start, to: end, insert, selection: from === to ? [caret, caret] : [start, caret] };
}

/**
 * Turns the selected text into a link, or removes the selected link. Then selects the missing part of a new link: its
 * address, or its text if the selected text was an address.
 */
function inLink(given: Selected): Change {
  const selected = trimmed(given);
  const { text, from, to } = selected;
  const inner = text.slice(from, to);
  const [, linked] = /^\[([\s\S]*)\]\(\S*\)$/.exec(inner) ?? [];
  if (linked !== undefined) return { from, to, insert: linked, selection: [from, from + linked.length] };
  if (isLink(inner)) return { from, to, insert: `[](${inner})`, selection: [from + 1, from + 1] };
  const insert = `[${inner}](${link_start})`;
  if (inner === '') return { from, to, insert, selection: [from + 1, from + 1] };
  const end = from + insert.length - 1;
  return { from, to, insert, selection: [end - link_start.length, end] };
}

/**
 * Returns the change that gives the selected text a format, or removes the format if the text has it. If nothing is
 * selected, the change only inserts marks.
 */
export function formatChange(format: Format, text: string, from: number, to: number): Change {
  const selected = { text, from, to };
  switch (format) {
    case 'code':
      return inCode(selected);
    case 'pre':
      return inBlock(selected);
    case 'quote':
      return inQuote(selected);
    case 'link':
      return inLink(selected);
    default:
      return inStyle(selected, styleMarks[format]);
  }
}

/** An example of each format's marks, as a person types them. */
export const formatSamples: Readonly<Record<Format, string>> = {
  bold: '**…**',
  italic: '_…_',
  underline: '++…++',
  strikethrough: '~~…~~',
  spoiler: '||…||',
  code: '`…`',
  pre: '```…```',
  quote: '> …',
  link: '[…](https://…)',
};
