/** Parses attributes of start tags and character references for parse mode `HTML`. */
import { byteOffset, type Marks, unparsable } from './entity.js';

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };
const reference = /&(?:#(\d+)|#[xX]([0-9a-fA-F]+)|([A-Za-z]+));?/g;

/** Decodes known character references. A number that is not a storable character stays unchanged. */
export function decodeReferences(text: string, marks: Marks): string {
  let at = text.indexOf('&');
  if (at < 0) return text;
  // Counted first, because `replace` finds all of them before it decodes one.
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
 * is the index after the `>`. Of duplicate names the first counts.
 */
export function readAttributes(
  source: string,
  begin: number,
  from: number,
  tag: string,
  marks: Marks,
): { readonly attributes: ReadonlyMap<string, string>; readonly end: number } {
  // Fast path: a text may contain tens of thousands of tags, most without attributes.
  if (source[from] === '>') return { attributes: noAttributes, end: from + 1 };
  const attributes = new Map<string, string>();
  let at = skip(space, source, from);
  while (source[at] !== '>') {
    if (at >= source.length)
      unparsable(`Unclosed start tag "${tag}" at byte offset ${byteOffset(source, begin)}`);
    const nameEnd = skip(attributeName, source, at);
    if (nameEnd === at) {
      unparsable(`Empty attribute name in the tag "${tag}" at byte offset ${byteOffset(source, begin)}`);
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

/** Index after the value that starts at `at`, including its closing quote. */
function valueEnd(source: string, at: number, begin: number, tag: string): number {
  const quote = source[at];
  if (quote === '"' || quote === "'") {
    const close = source.indexOf(quote, at + 1);
    if (close < 0) unparsable(`Unclosed start tag "${tag}" at byte offset ${byteOffset(source, begin)}`);
    return close + 1;
  }
  const end = skip(bareValue, source, at);
  const next = source[end];
  if (next === undefined)
    unparsable(`Unclosed start tag "${tag}" at byte offset ${byteOffset(source, begin)}`);
  if (next !== '>' && !/\s/.test(next)) {
    unparsable(`Unexpected end of name token at byte offset ${byteOffset(source, end)}`);
  }
  return end;
}

function skip(pattern: RegExp, source: string, from: number): number {
  pattern.lastIndex = from;
  pattern.test(source);
  return pattern.lastIndex;
}
