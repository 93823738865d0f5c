/** Parses a request's query and body into one set of named parameters. Accepts all usual encodings. */
import { isUtf8 } from 'node:buffer';
import { fail } from '../errors.js';
import { parseJson } from '../rules/json.js';
import { checkText } from '../rules/text.js';
import { callLimits as limits } from './limits.js';
import { parseMultipart } from './multipart.js';
import type { ApiRequest } from './request.js';

export interface UploadedFile {
  /** The file name without its path. '' if the part has a content type but no file name. */
  readonly filename: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * The parameters. The object has no prototype, so `__proto__` and `constructor` are ordinary names. Values are texts,
 * except in a JSON body.
 */
export type Params = Record<string, unknown>;

export interface ParsedParams {
  readonly values: Params;
  readonly files: ReadonlyMap<string, UploadedFile>;
}

export const noFiles: ReadonlyMap<string, UploadedFile> = new Map();
const replacement = '\uFFFD';
const nul = '\u0000';
const [space, percent, ampersand, plus, equals, brace] = [0x20, 0x25, 0x26, 0x2b, 0x3d, 0x7b];

/** Decodes UTF-8. Throws `bad_unicode` for invalid UTF-8 and for U+0000. */
export function decodeUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) fail('bad_unicode');
  const text = bytes.toString('utf8');
  if (text.includes(nul)) fail('bad_unicode');
  return text;
}

function readJson(body: Buffer, into: Params): void {
  const value = parseJson(decodeUtf8(body));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('bad_json');
  const names = Object.keys(value);
  if (names.length > limits.parameters_max) fail('too_many_parameters');
  for (const name of names) into[name] = (value as Params)[name];
}

const hexValues = Int8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? -1 : value;
});

function readEscape(bytes: Buffer, at: number): number {
  if (at + 1 >= bytes.length) return -1;
  const [high, low] = [
    hexValues[bytes[at] as number] as number,
    hexValues[bytes[at + 1] as number] as number,
  ];
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

let memory = Buffer.alloc(0);

/**
 * Returns a shared buffer of at least `bytes`. The next call overwrites this buffer. Parsing a large form thus creates
 * no garbage.
 */
function scratch(bytes: number): Buffer {
  if (memory.length < bytes) memory = Buffer.allocUnsafeSlow(bytes);
  return memory;
}

/**
 * Parses a url-encoded form in one pass. As in browsers, a percent sign without two digits stands for itself, and empty
 * pairs are ignored. Throws `bad_unicode` or `too_many_parameters`.
 */
function readForm(form: Buffer, into: Params): void {
  const decoded = scratch(form.length);
  let [start, length, pairs] = [0, 0, 0];
  let name: string | undefined;
  const takeText = () => {
    const text = decodeUtf8(decoded.subarray(start, length));
    start = length;
    return text;
  };
  const endPair = () => {
    if (name === undefined && length === start) return;
    if (++pairs > limits.parameters_max) fail('too_many_parameters');
    if (name === undefined) into[takeText()] = '';
    else into[name] = takeText();
    name = undefined;
  };
  for (let i = 0; i < form.length; i++) {
    const byte = form[i] as number;
    if (byte === ampersand) endPair();
    else if (byte === equals && name === undefined) name = takeText();
    else if (byte === percent) {
      const escaped = readEscape(form, i + 1);
      decoded[length++] = escaped < 0 ? percent : escaped;
      if (escaped >= 0) i += 2;
    } else decoded[length++] = byte === plus ? space : byte;
  }
  endPair();
}

/**
 * Parses the query. Refuses a raw U+FFFD, with which the HTTP engine replaces invalid UTF-8. A client that means U+FFFD
 * must percent-encode it.
 */
function readQuery(query: string, into: Params): void {
  if (query.includes(replacement)) fail('bad_unicode');
  readForm(Buffer.from(query, 'utf8'), into);
}

function beginsObject(body: Buffer): boolean {
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (byte !== space && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === brace;
  }
  return false;
}

/** Parses the query of a call whose body is raw bytes. Throws `bad_unicode` or `too_many_parameters`. */
export function parseQuery({ query }: ApiRequest): ParsedParams {
  const values = Object.create(null) as Params;
  if (query !== '') readQuery(query, values);
  return { values, files: noFiles };
}

/**
 * Merges the query and the body. The body takes precedence, and the last value of a repeated name counts. A body that
 * begins with a brace is JSON, even if its content type says that it is a form. Any other body that is neither JSON nor
 * multipart is a form. Throws `bad_json`, `bad_unicode`, `too_many_parameters`, `bad_request` (malformed multipart) or
 * `too_large` (behaviour §1). Not for endpoints that take raw bytes.
 */
export function parseParams(request: ApiRequest): ParsedParams {
  const values = Object.create(null) as Params;
  const { query, body, contentType } = request;
  if (query !== '') readQuery(query, values);
  if (body.length === 0) return { values, files: noFiles };
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === 'multipart/form-data') return readMultipart(contentType, body, values);
  // `curl -d '{…}'` sends JSON with the content type of a form. A form cannot begin with a brace, because no
  // parameter's name does.
  const form = type !== 'application/json' && !beginsObject(body);
  if (form) readForm(body, values);
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
