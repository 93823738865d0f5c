/** Reads the stored token of the signed-in person. */
export const token_key = 'petrel.token';

/** If the browser does not allow storage, nothing is stored. */
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
