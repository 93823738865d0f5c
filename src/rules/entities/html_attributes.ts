/** Parses attributes of start tags and character references for parse mode `HTML`. */
import { type Marks, unparsableAt } from './entity.js';

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };
const reference = /&(?:#(\d+)|#[xX]([0-9a-fA-F]+)|([A-Za-z]+));?/g;

/**
 * Decodes character references. Leaves a reference unchanged if its number does not stand for a character that can be
 * stored.
 */
export function decodeReferences(text: string, marks: Marks): string {
  let at = text.indexOf('&');
  if (at < 0) return text;
  // Counts the references first, so that a text with too many references fails early. `replace` would find all of them
  // before it decodes the first one.
  for (; at >= 0; at = text.indexOf('&', at + 1)) marks.count();
  return text.replace(reference, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? named[name]! : whole;
    const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
    const storable = code > 0 && code <= 0x10ffff && (code & ~0x7ff) !== 0xd800;
    return storable ? String.fromCodePoint(code) : whole;
  });
}

const noAttributes: ReadonlyMap<string, string> = new Map();
const space = /\s*/y;
const attributeName = /[^\s=>]*/y;
const bareValue = /[A-Za-z0-9.-]*/y;

/**
 * Parses `name`, `name=value`, `name="value"` and `name='value'` up to the `>` of the tag that starts at `begin`. `end`
 * is the index after the `>`. If a name is repeated, its first value is used.
 */
export function readAttributes(
  source: string,
  begin: number,
  from: number,
  tag: string,
  marks: Marks,
): { readonly attributes: ReadonlyMap<string, string>; readonly end: number } {
  // Returns early if the tag has no attributes, because a text may contain tens of thousands of such tags.
  if (source[from] === '>') return { attributes: noAttributes, end: from + 1 };
  const attributes = new Map<string, string>();
  let at = skip(space, source, from);
  while (source[at] !== '>') {
    if (at >= source.length) unparsableAt(source, begin, `Unclosed start tag "${tag}"`);
    const nameEnd = skip(attributeName, source, at);
    if (nameEnd === at) {
      unparsableAt(source, begin, `Empty attribute name in the tag "${tag}"`);
    }
    const name = source.slice(at, nameEnd).toLowerCase();
    at = skip(space, source, nameEnd);
    let value = '';
    if (source[at] === '=') {
      at = skip(space, source, at + 1);
      const end = valueEnd(source, at, begin, tag);
      const quoted = source[at] === '"' || source[at] === "'";
      value = quoted ? decodeReferences(source.slice(at + 1, end - 1), marks) : source.slice(at, end);
      at = skip(space, source, end);
    }
    if (!attributes.has(name)) attributes.set(name, value);
  }
  return { attributes, end: at + 1 };
}

/** Returns the index after the value that starts at `at`, including its closing quote. */
function valueEnd(source: string, at: number, begin: number, tag: string): number {
  const quote = source[at];
  if (quote === '"' || quote === "'") {
    const close = source.indexOf(quote, at + 1);
    if (close < 0) unparsableAt(source, begin, `Unclosed start tag "${tag}"`);
    return close + 1;
  }
  const end = skip(bareValue, source, at);
  const next = source[end];
  if (next === undefined) unparsableAt(source, begin, `Unclosed start tag "${tag}"`);
  if (next !== '>' && !/\s/.test(next)) {
    unparsableAt(source, end, 'Unexpected end of name token');
  }
  return end;
}

function skip(pattern: RegExp, source: string, from: number): number {
  pattern.lastIndex = from;
  pattern.test(source);
  return pattern.lastIndex;
}
