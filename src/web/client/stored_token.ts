/** Reads the stored token of the signed-in person. */
export const token_key = 'petrel.token';

/** Returns null if no token is stored or the browser does not allow storage. */
function read(storage: () => Storage): string | null {
  try {
    return storage().getItem(token_key);
  } catch {
    return null;
  }
}

/**
 * Returns the token that is stored for this tab or, if there is none, for this browser. Returns '' if there is neither.
 */
export const storedToken = (): string => read(() => sessionStorage) ?? read(() => localStorage) ?? '';
