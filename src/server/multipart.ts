/**
 * Parses a complete multipart/form-data body (RFC 7578). Strict, but accepts the part heads that clients really send.
 * Petrel has a parser of its own because the two common ones lose data silently. Common clients send a file name in raw
 * UTF-8 without quotes: `busboy` 1 then drops the whole part, and `@fastify/busboy` 3 removes the spaces in the name.
 * Both also skip a part whose head they cannot read, and replace invalid UTF-8 with U+FFFD. Petrel parses only complete
 * bodies, so the parser need not stream.
 */
import { isUtf8 } from 'node:buffer';
import { fail } from '../errors.js';
import { callLimits as limits } from './limits.js';

export interface MultipartPart {
  readonly name: string;
  readonly file: boolean;
  /** The file name without its path, or '' if absent. */
  readonly filename: string;
  /** The content type in lower case, without parameters. 'text/plain' if absent. */
  readonly contentType: string;
  /** The part's content. It shares memory with the body. */
  readonly bytes: Buffer;
}

const part_head_bytes_max = 16 * 1024;
const boundary_length_max = 200;
const octets = 'application/octet-stream';
const dash = 0x2d;
const crlf = '\r\n';

/**
 * Returns the parts in the order in which they were sent. Throws `bad_request` if the body is malformed or truncated or
 * if a part has no name, `too_large` for more than `limits.multipart_parts_max` parts or for text fields that together
 * exceed `limits.body_bytes_max`, and `bad_unicode` if a part head is not UTF-8.
 */
export function parseMultipart(contentType: string, body: Buffer): MultipartPart[] {
  const delimiter = Buffer.from(`\r\n--${readBoundary(contentType)}`, 'latin1');
  const parts: MultipartPart[] = [];
  let textBytes = 0;
  // At the start of the body, no line break precedes the delimiter.
  const startsAtOnce = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2));
  let at = startsAtOnce ? delimiter.length - 2 : findDelimiter(body, delimiter, 0).next;
  while (!isClosing(body, at)) {
    if (parts.length === limits.multipart_parts_max) fail('too_large');
    const headStart = lineEnd(body, at);
    if (headStart < 0) fail('bad_request');
    const headEnd = body.indexOf('\r\n\r\n', headStart);
    if (headEnd < 0 || headEnd - headStart > part_head_bytes_max) fail('bad_request');
    const contentStart = headEnd + 4;
    const { start, next } = findDelimiter(body, delimiter, contentStart);
    const part = readPart(body.subarray(headStart, headEnd), body.subarray(contentStart, start));
    if (!part.file) textBytes += part.bytes.length;
    if (textBytes > limits.body_bytes_max) fail('too_large');
    parts.push(part);
    at = next;
  }
  return parts;
}

function readBoundary(contentType: string): string {
  const found = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType);
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined || boundary.length > boundary_length_max) return fail('bad_request');
  return boundary;
}

function isClosing(body: Buffer, at: number): boolean {
  return body[at] === dash && body[at + 1] === dash;
}

function lineEnd(body: Buffer, at: number): number {
  let end = at;
  while (body[end] === 0x20 || body[end] === 0x09) end++;
  return body[end] === 0x0d && body[end + 1] === 0x0a ? end + 2 : -1;
}

/**
 * Returns where the next delimiter starts and where its line ends. If other text follows the boundary on the same line,
 * the line is no delimiter: it belongs to the content and is skipped. At most `limits.multipart_near_boundaries_max`
 * such lines are skipped. Ordinary clients never reach this limit, because they choose a boundary that their content
 * does not contain.
 */
function findDelimiter(body: Buffer, delimiter: Buffer, from: number): { start: number; next: number } {
  let start = body.indexOf(delimiter, from);
  for (let near = 0; start >= 0 && near <= limits.multipart_near_boundaries_max; near++) {
    const next = start + delimiter.length;
    if (isClosing(body, next) || lineEnd(body, next) >= 0) return { start, next };
    start = body.indexOf(delimiter, next);
  }
  return fail('bad_request');
}

function readPart(head: Buffer, bytes: Buffer): MultipartPart {
  if (!isUtf8(head)) fail('bad_unicode');
  let disposition = '';
  let contentType = 'text/plain';
  for (const line of head.toString('utf8').split(crlf)) {
    const colon = line.indexOf(':');
    if (colon <= 0 || /[\r\n]/.test(line)) fail('bad_request');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === 'content-disposition') disposition = value;
    else if (name === 'content-type') contentType = value.split(';', 1)[0]!.trim().toLowerCase();
  }
  const { name, filename } = readDisposition(disposition);
  if (name === undefined) return fail('bad_request');
  const file = filename !== undefined || contentType === octets;
  return { name, file, filename: (filename ?? '').replace(/^.*[/\\]/s, ''), contentType, bytes };
}

/**
 * Matches a parameter of Content-Disposition. Its value is quoted with backslash escapes, or it is unquoted and ends
 * where the next parameter begins.
 */
const parameter = /;\s*([\w-]+\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|((?:(?!;\s*[\w-]+\*?\s*=).)*))/g;

function readDisposition(disposition: string): { name: string | undefined; filename: string | undefined } {
  let name: string | undefined;
  let filename: string | undefined;
  if (!/^form-data\s*(?:;|$)/i.test(disposition)) fail('bad_request');
  for (const [, key = '', quoted, bare] of disposition.matchAll(parameter)) {
    const value = quoted === undefined ? bare!.trim() : quoted.replace(/\\(["\\])/g, '$1');
    const lower = key.toLowerCase();
    if (lower === 'name') name = value;
    else if (lower === 'filename') filename = value;
    else if (lower === 'filename*') filename ??= decodeExtended(value);
  }
  return { name, filename };
}

/**
 * Decodes names like `UTF-8''%D1%84.png`. RFC 7578 forbids this encoding, but some clients use it for non-ASCII names.
 */
function decodeExtended(value: string): string {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(value)?.[1];
  if (encoded === undefined) return value;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return fail('bad_unicode');
  }
}
