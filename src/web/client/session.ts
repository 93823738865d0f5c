/**
 * The signed-in person. The token is kept for this tab, or for this browser if the person asks for it, and is never part of a URL.
 * Signing out removes it from both.
 */
import { Cell } from './signal.js';
import type { User } from './types.js';

const key = 'petrel.token';

/** Storage may be forbidden. Then the sign-in lasts until the page is closed. */
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
    // Without storage the token lasts until the page is closed.
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** The token of the signed-in person; '' when nobody is signed in. */
export const token = new Cell(read(tab) ?? read(browser) ?? '');
export const me = new Cell<User | null>(null);

export function signIn(secret: string, user: User, keep: boolean): void {
  write(tab, secret);
  write(browser, keep ? secret : null);
  me.set(user);
  token.set(secret);
}

/** Work to finish with the old token at sign-out. */
export const leaving = new Set<(token: string) => Promise<void>>();
const leaving_ms_max = 2_000;

export function signOut(): void {
  const secret = token.value;
  write(tab, null);
  write(browser, null);
  const last = [...leaving].map((work) => work(secret));
  token.set('');
  me.set(null);
  // The fragment and the reload remove everything that was loaded for this person.
  location.hash = '';
  const bound = new Promise((resolve) => setTimeout(resolve, leaving_ms_max));
  void Promise.race([Promise.allSettled(last), bound]).then(() => location.reload());
}
