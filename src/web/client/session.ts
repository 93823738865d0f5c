/**
 * Holds the signed-in person. The token is stored for this tab, or for this browser if the person wants that, and is
 * never part of a URL. Signing out removes it from both.
 */
import { Cell } from './signal.js';
import type { Self } from './types.js';

const key = 'petrel.token';

/** Ignores forbidden storage. The person is then signed in until the page is closed. */
function read(storage: () => Storage): string | null {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

function write(storage: () => Storage, token: string | null): void {
  try {
    if (token === null) storage().removeItem(key);
    else storage().setItem(key, token);
  } catch {
    // Ignores missing storage. The person is then signed in until the page is closed.
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** The token of the signed-in person; '' when nobody is signed in. */
export const token = new Cell(read(tab) ?? read(browser) ?? '');
export const me = new Cell<Self | null>(null);

export function signIn(secret: string, user: Self, keep: boolean): void {
  write(tab, secret);
  write(browser, keep ? secret : null);
  me.set(user);
  token.set(secret);
}

/** The work to finish with the old token at sign-out. */
export const leaving = new Set<(token: string) => Promise<void>>();
const leaving_ms_max = 2_000;

export function signOut(): void {
  const secret = token.value;
  write(tab, null);
  write(browser, null);
  const last = [...leaving].map((work) => work(secret));
  token.set('');
  me.set(null);
  // Changes the fragment and reloads the page, which removes everything that was loaded for this person.
  location.hash = '';
  const bound = new Promise((resolve) => setTimeout(resolve, leaving_ms_max));
  void Promise.race([Promise.allSettled(last), bound]).then(() => location.reload());
}
