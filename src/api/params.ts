/** Turns query and body of a request into one set of named parameters, whichever of the usual forms they came in. */
import { isUtf8 } from 'node:buffer';
import { fail } from '../errors.js';
import { isWellFormed } from '../rules/text.js';
import { parseMultipart } from './multipart.js';
import type { ApiRequest } from './request.js';

export interface UploadedFile {
  /** As sent, without folders; '' when the part was declared a file by its type alone. */
  readonly filename: string;
  /** As sent, in lower case and without its parameters; 'text/plain' when absent. */
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** Has no prototype, so that a parameter called `__proto__` or `constructor` is a parameter like another. Values are
 * text, except those of a JSON body. */
export type Params = Record<string, unknown>;

export interface ParsedParams {
  readonly values: Params;
  /** By the name of the form field, which `attach://<name>` refers to. */
  readonly files: ReadonlyMap<string, UploadedFile>;
}

const json_depth_max = 64;
export const noFiles: ReadonlyMap<string, UploadedFile> = new Map();
const replacement = '\uFFFD';
const nul = '\u0000';

/** The text as it is; `bad_unicode` when it holds U+0000 or half a surrogate pair. */
function checkText(text: string): string {
  if (!isWellFormed(text)) fail('bad_unicode');
  return text;
}

/** Text of UTF-8 bytes; `bad_unicode` for other bytes and U+0000. */
export function decodeUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) fail('bad_unicode');
  const text = bytes.toString('utf8');
  if (text.includes(nul)) fail('bad_unicode');
  return text;
}

/** Goes through a parsed value: `bad_json` below 64 levels, `bad_unicode` for a name or text that cannot be stored. */
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

/** Looks from bracket to bracket, of which most texts have few. */
function opensMoreThan(text: string, max: number): boolean {
  let opened = 0;
  for (const bracket of ['[', '{']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (++opened > max) return true;
  }
  return false;
}

/**
 * Parses JSON text that came as UTF-8, also such that came inside a parameter. Throws `bad_json` when it is malformed or deeper than 64
 * levels, `bad_unicode` when a text or name in it holds U+0000 or half a surrogate pair.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fail('bad_json');
  }
  // Inside JSON only an escape can bring in U+0000 or half a pair, given that the text around it is sound.
  if (text.includes('\\u') || opensMoreThan(text, json_depth_max)) checkValue(value, 1);
  return value;
}

function readJson(body: Buffer, into: Params): void {
  const value = parseJson(decodeUtf8(body));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('bad_json');
  for (const name of Object.keys(value)) into[name] = (value as Params)[name];
}

/** Percent signs that begin no escape stand for themselves, as in browsers. */
function decodeLoosely(text: string): string {
  const bytes = Buffer.from(text, 'utf8');
  const out = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const hex = bytes[i] === 0x25 ? bytes.toString('latin1', i + 1, i + 3) : '';
    if (/^[\dA-Fa-f]{2}$/.test(hex)) {
      out[length++] = Number.parseInt(hex, 16);
      i += 2;
    } else {
      out[length++] = bytes[i]!;
    }
  }
  return decodeUtf8(out.subarray(0, length));
}

function decodePercent(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return checkText(spaced);
  try {
    return checkText(decodeURIComponent(spaced));
  } catch (error) {
    if (error instanceof URIError) return decodeLoosely(spaced);
    throw error;
  }
}

function readForm(text: string, into: Params): void {
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decodePercent(equals < 0 ? pair : pair.slice(0, equals));
    into[name] = equals < 0 ? '' : decodePercent(pair.slice(equals + 1));
  }
}

/** The engine reads the bytes of a query as UTF-8 and puts U+FFFD for those that are none. A client that means
 * U+FFFD itself sends it percent-encoded. */
function readQuery(query: string, into: Params): void {
  if (query.includes(replacement)) fail('bad_unicode');
  readForm(query, into);
}

function beginsObject(body: Buffer): boolean {
  for (const byte of body) {
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b;
  }
  return false;
}

/** The parameters of a call whose body is no parameters. Error: `bad_unicode`. */
export function parseQuery({ query }: ApiRequest): ParsedParams {
  const values = Object.create(null) as Params;
  if (query !== '') readQuery(query, values);
  return { values, files: noFiles };
}

/**
 * Merges query and body; the body wins, and of several values of one name the last. A body of another type or of none
 * is taken for JSON if it begins with a brace, else for a url-encoded form; so is a body that says it is a form.
 * Throws `bad_json`, `bad_unicode`, `bad_request` (malformed multipart) or `too_large`
 * (behaviour §1). Not for endpoints whose body is a picture.
 */
export function parseParams(request: ApiRequest): ParsedParams {
  const values = Object.create(null) as Params;
  const { query, body, contentType } = request;
  if (query !== '') readQuery(query, values);
  if (body.length === 0) return { values, files: noFiles };
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === 'multipart/form-data') return readMultipart(contentType, body, values);
  // People who try a call with `curl -d '{…}'` label JSON as a form, in which no name begins with a brace.
  const form = type !== 'application/json' && !beginsObject(body);
  if (form) readForm(decodeUtf8(body), values);
  else readJson(body, values);
  return { values, files: noFiles };
}

function readMultipart(contentType: string, body: Buffer, values: Params): ParsedParams {
  const files = new Map<string, UploadedFile>();
  for (const { name, file, filename, contentType: type, bytes } of parseMultipart(contentType, body)) {
    checkText(name);
    if (file) files.set(name, { filename: checkText(filename), contentType: type, bytes });
    else values[name] = decodeUtf8(bytes);
  }
  return { values, files };
}
