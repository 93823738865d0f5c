/**
 * Who is signed in. The token is kept for this tab, or for this browser where the person asks for that, and is never part of
 * an address; signing out removes it from both.
 */
import { Cell } from './signal.js';
import type { User } from './types.js';

const key = 'petrel.token';

/** Storage may be forbidden: then one is signed in until the page is left. */
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
    // Nothing to be done about it, see above.
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** '' when nobody is signed in. */
export const token = new Cell(read(tab) ?? read(browser) ?? '');
export const me = new Cell<User | null>(null);

export function signIn(secret: string, user: User, keep: boolean): void {
  write(tab, secret);
  write(browser, keep ? secret : null);
  me.set(user);
  token.set(secret);
}

/** What is still to be done with the token of who signs out. */
export const leaving = new Set<(token: string) => Promise<void>>();
const leaving_ms_max = 2_000;

export function signOut(): void {
  const secret = token.value;
  write(tab, null);
  write(browser, null);
  const last = [...leaving].map((work) => work(secret));
  token.set('');
  me.set(null);
  // What was read of the former person must be nowhere.
  location.hash = '';
  const bound = new Promise((resolve) => setTimeout(resolve, leaving_ms_max));
  void Promise.race([Promise.allSettled(last), bound]).then(() => location.reload());
}
