/** Parses JSON with limits on depth and number of values. */
import { fail } from '../errors.js';
import { ruleLimits as limits } from './limits.js';
import { checkText } from './text.js';

const json_depth_max = 64;
const [quote, comma, bracket, backslash, brace] = [0x22, 0x2c, 0x5b, 0x5c, 0x7b];

/** Checks a value. Errors: `bad_json` beyond 64 levels, `bad_unicode` for a name or text that cannot be stored. */
function checkValue(value: unknown, depth: number): void {
  if (typeof value === 'string') checkText(value);
  if (typeof value !== 'object' || value === null) return;
  if (depth > json_depth_max) fail('bad_json');
  if (Array.isArray(value)) {
    for (const item of value) checkValue(item, depth + 1);
    return;
  }
  for (const [name, item] of Object.entries(value)) {
    checkText(name);
    checkValue(item, depth + 1);
  }
}

/**
 * Returns whether the text contains more than `max` opening brackets. The search is fast, because most texts contain
 * few brackets.
 */
function opensMoreThan(text: string, max: number): boolean {
  let opened = 0;
  for (const bracket of ['[', '{']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (++opened > max) return true;
  }
  return false;
}

/**
 * Returns the index of the quote that ends the string at `begin`, or the length of the text if no quote ends it.
 * Searches only for quotes. Checking each character would take ten times as long.
 */
function stringEnd(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/**
 * Returns whether JSON text contains more than `max` values. There cannot be more values than commas and brackets
 * outside of strings. A value and its comma take two characters, so a text of up to `2 * max` characters needs no scan.
 */
function holdsMoreValuesThan(text: string, max: number): boolean {
  if (text.length <= 2 * max) return false;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) i = stringEnd(text, i);
    else if ((code === comma || code === bracket || code === brace) && ++values > max) return true;
  }
  return false;
}

/**
 * Parses JSON text, including JSON inside a parameter. Errors: `bad_json` if the JSON is malformed, deeper than 64
 * levels, or contains more than `limits.json_text_values_max` values. `bad_unicode` if a text or name in it contains
 * U+0000 or half a surrogate pair.
 */
export function parseJson(text: string): unknown {
  if (holdsMoreValuesThan(text, limits.json_text_values_max)) fail('bad_json');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fail('bad_json');
  }
  // Checks strings only if the JSON source contains an escape. The source itself is valid, so only an escape can add
  // U+0000 or half a surrogate pair.
  if (text.includes('\\u') || opensMoreThan(text, json_depth_max)) checkValue(value, 1);
  return value;
}
