/**
 * Finds tokens in bytes that arrive in pieces. The bytes may be text, binary data or UTF-16. A token is recognised by
 * its format and its checksum.
 */
import { escapedTokenLengthMax, type FoundToken, findTokens } from '../rules/token.js';

export interface Found {
  readonly token: string;
  readonly kind: FoundToken['kind'];
  readonly id: number;
}

/**
 * How many bytes at the end of a piece are searched again together with the next piece, because a token may span two
 * pieces. In UTF-16, each character of a token has two bytes.
 */
const carriedMax = 2 * escapedTokenLengthMax;

export function createFinder() {
  const known = new Set<string>();
  let carried = '';
  return {
    take(bytes: Buffer): Found[] {
      const text = carried + bytes.toString('latin1');
      carried = text.slice(-carriedMax);
      const found = findTokens(text);
      if (text.includes('\0')) found.push(...findTokens(text.replaceAll('\0', '')));
      return found.flatMap(({ token, kind, id }) => {
        if (known.has(token)) return [];
        known.add(token);
        return [{ token, kind, id }];
      });
    },
  };
}
