/** Defines the format of bot and user tokens: an id, random characters and a checksum (behaviour §2). */
import { ruleLimits as limits } from './limits.js';

export type TokenKind = 'bot' | 'user';

/** The kind of a token: A for bots, U for people, O for administrators. */
type Letter = 'A' | 'U' | 'O';

export interface TokenOwner {
  readonly kind: TokenKind;
  readonly id: number;
}

const secretLength = 35;
const randomLength = 28;
const checksumLength = 6;
const idDigitsMax = String(limits.id_max - 1).length;

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const allowed = new Uint8Array(128);
for (const char of base64url) allowed[char.charCodeAt(0)] = 1;

// The table for CRC-32 with zlib's polynomial. Does not use `zlib.crc32`, because the oldest supported Node version
// lacks it.
const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

function crc32(text: string, length: number): number {
  let crc = -1;
  for (let i = 0; i < length; i++) crc = crcTable[(crc ^ text.charCodeAt(i)) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/**
 * Builds a token from at least 28 random bytes. All characters are equally likely, because 256 is a multiple of 64. The
 * id is 1 to `id_max` - 1. Throws a RangeError for invalid arguments.
 */
export const makeToken = (kind: TokenKind, id: number, random: Uint8Array): string =>
  make(kind === 'bot' ? 'A' : 'U', id, random);

export const makeAdminToken = (id: number, random: Uint8Array): string => make('O', id, random);

function make(letter: Letter, id: number, random: Uint8Array): string {
  if (!Number.isSafeInteger(id) || id < 1 || id >= limits.id_max)
    throw new RangeError('token: bad identifier');
  if (random.length < randomLength) throw new RangeError('token: too few random bytes');
  let text = `${id}:${letter}`;
  for (let i = 0; i < randomLength; i++) text += base64url[random[i]! & 63];
  let rest = crc32(text, text.length);
  let checksum = '';
  for (let i = 0; i < checksumLength; i++) {
    checksum = base62[rest % 62] + checksum;
    rest = Math.floor(rest / 62);
  }
  return text + checksum;
}

/**
 * Returns the owner named in a token, or null if the token's format or checksum is invalid. Needs one pass over the
 * text, and allocates nothing for an invalid token.
 */
export function parseToken(text: string): TokenOwner | null {
  const kind = text[text.length - secretLength];
  if (kind !== 'A' && kind !== 'U') return null;
  const id = idOf(text);
  return id === null ? null : { kind: kind === 'A' ? 'bot' : 'user', id };
}

export const isAdminToken = (text: string): boolean =>
  text[text.length - secretLength] === 'O' && idOf(text) !== null;

/** Returns the id in a token of any kind. Returns null if the text is not a token. */
function idOf(text: string): number | null {
  const colon = text.length - secretLength - 1;
  if (colon < 1 || colon > idDigitsMax || text[colon] !== ':') return null;
  let id = 0;
  for (let i = 0; i < colon; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return null;
    id = id * 10 + digit;
  }
  if (text[0] === '0' || id >= limits.id_max) return null;
  for (let i = colon + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127 || allowed[code] !== 1) return null;
  }
  const covered = text.length - checksumLength;
  let rest = crc32(text, covered);
  for (let i = text.length - 1; i >= covered; i--) {
    if (text[i] !== base62[rest % 62]) return null;
    rest = Math.floor(rest / 62);
  }
  return id;
}

export const tokenLengthMax = idDigitsMax + 1 + secretLength;
export const escapedTokenLengthMax = tokenLengthMax + 2;

const tokenLike = /(\d{1,64})(?::|%3[Aa])([AUO][A-Za-z0-9_-]{34})/g;

export interface FoundToken {
  readonly token: string;
  /**
   * The kind of the token. For an administrator's token, the kind is `admin`, and `id` is the id of the token and not
   * the id of the token's owner.
   */
  readonly kind: TokenKind | 'admin';
  readonly id: number;
  readonly at: number;
}

const adminOf = (token: string) => ({
  kind: 'admin' as const,
  id: Number(token.slice(0, token.indexOf(':'))),
});

/** Finds tokens in a text by their format and checksum. `at` is the index of a token's first character. */
export function findTokens(text: string): FoundToken[] {
  const found: FoundToken[] = [];
  for (const match of text.matchAll(tokenLike)) {
    const [, digits = '', secret] = match;
    // Other digits may come directly before the id, so the id may begin at any of these digits. The checksum shows
    // where the id begins.
    for (let from = Math.max(0, digits.length - idDigitsMax); from < digits.length; from++) {
      const token = `${digits.slice(from)}:${secret}`;
      const owner = isAdminToken(token) ? adminOf(token) : parseToken(token);
      if (owner !== null) found.push({ ...owner, token, at: match.index + from });
    }
  }
  return found;
}

/** Masks the secret part of everything that looks like a token, even if the checksum is invalid. */
export const maskTokens = (text: string): string =>
  text.replace(/(\d(?::|%3[Aa]))[AOU][A-Za-z0-9_-]{34}/g, '$1…');

/** Returns the token of an `Authorization` header, or '' if the header has no token. */
export const bearerToken = (authorization: string): string =>
  /^bearer /i.test(authorization) ? authorization.slice(7).trim() : '';
