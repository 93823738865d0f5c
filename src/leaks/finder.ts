/** Finds tokens by form and checksum in bytes that arrive in pieces: text, binary data and UTF-16. */
import { escapedTokenLengthMax, type FoundToken, findTokens } from '../rules/token.js';

export interface Found {
  readonly token: string;
  readonly kind: FoundToken['kind'];
  readonly id: number;
}

export interface Finder {
  /** The tokens that end in these bytes. Each token is reported once. */
  take(bytes: Buffer): Found[];
}

/** A token in UTF-16 takes twice as many bytes. */
const carriedMax = 2 * escapedTokenLengthMax;

export function createFinder(): Finder {
  const known = new Set<string>();
  let carried = '';
  return {
    take(bytes) {
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
