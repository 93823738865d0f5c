/**
 * Holds the signed-in person. The token is stored for this tab or, if the person wants to stay signed in, for this
 * browser. The token is never part of a URL. A new tab gets the token from another tab. Signing out ends the session in
 * all tabs.
 */
import { Cell } from './cell.js';
import { storedToken, token_key } from './stored_token.js';
import type { Self } from './types.js';

function write(storage: () => Storage, token: string | null): void {
  try {
    if (token === null) storage().removeItem(token_key);
    else storage().setItem(token_key, token);
  } catch {
    // If the browser does not allow storage, the person is signed out when the page is closed.
  }
}

const tab = () => sessionStorage;
const browser = () => localStorage;

/** The token of the signed-in person, or '' when nobody is signed in. */
export const token = new Cell(storedToken());
export const me = new Cell<Self | null>(null);

/**
 * A message between the tabs of this browser. With `ask`, a tab without a session asks the other tabs for their
 * session. `byLink` is true if the asking tab was opened with the URL of a page, for example of a chat.
 */
type TabMessage =
  | { readonly kind: 'ask'; readonly byLink: boolean }
  | { readonly kind: 'session'; readonly token: string }
  | { readonly kind: 'end'; readonly token: string };

/** The channel to the other tabs of this origin. Null if the browser does not allow such channels. */
const tabs = openTabs();

function openTabs(): BroadcastChannel | null {
  try {
    return new BroadcastChannel('petrel.session');
  } catch {
    return null;
  }
}

const tell = (message: TabMessage) => tabs?.postMessage(message);

const demoKey = 'petrel.demo';

/**
 * Returns whether this browser has stored demo people. If so, different windows may be signed in as different people.
 */
function isDemo(): boolean {
  try {
    return localStorage.getItem(demoKey) !== null;
  } catch {
    return false;
  }
}

/**
 * How long a tab in the background waits before it answers, in ms. During this time, a visible tab can answer first.
 */
const background_ms = 50;
const answer_ms_max = 250;

tabs?.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
  if (data.kind === 'end') {
    if (token.value === data.token) leave();
  } else if (data.kind === 'session') {
    if (token.value === '') take(data.token);
  } else if (token.value !== '' && (data.byLink || !isDemo())) {
    const answer = () => tell({ kind: 'session', token: token.value });
    setTimeout(answer, document.visibilityState === 'visible' ? 0 : background_ms);
  }
});

function take(secret: string): void {
  write(tab, secret);
  token.set(secret);
}

/**
 * Asks the other tabs for their session. Resolves when a tab has answered, or when an answer has become unlikely.
 * `byLink` is true on a page that people open from a link, for example the page of a post.
 */
export function joinSession(byLink = false): Promise<void> {
  const page = location.hash.replace(/^#\/?/, '');
  if (token.value !== '' || !tabs || page.startsWith('demo/')) return Promise.resolve();
  tell({ kind: 'ask', byLink: byLink || page !== '' });
  return new Promise((resolve) => {
    const timer = setTimeout(end, answer_ms_max);
    const unsubscribe = token.subscribe(end);
    function end() {
      clearTimeout(timer);
      unsubscribe();
      resolve();
    }
  });
}

export function signIn(secret: string, user: Self, keep: boolean): void {
  write(browser, keep ? secret : null);
  me.set(user);
  take(secret);
  if (!isDemo()) tell({ kind: 'session', token: secret });
}

/** Functions that run at sign-out and still need the token. */
export const leaving = new Set<(token: string) => Promise<void>>();
/** The maximum time in ms for the functions in `leaving`, and for the whole sign-out. The page is then loaded again. */
const work_ms_max = 1_000;
const leaving_ms_max = 2_000;

const within = (ms: number, work: Promise<unknown>): Promise<unknown> =>
  Promise.race([work, new Promise((resolve) => setTimeout(resolve, ms))]);

/** Ends the session at the service too. A token that does not belong to a session stays valid. */
async function endSession(secret: string): Promise<void> {
  const headers = { Authorization: `Bearer ${secret}` };
  // `keepalive` lets this call finish although the page is loaded again soon.
  await fetch('/api/me/session', { method: 'DELETE', headers, keepalive: true }).catch(() => {});
}

/** Ends the session in all tabs. `isValid` is false if the service no longer accepts the token. */
export function signOut(isValid = true): void {
  const secret = token.value;
  if (secret !== '') tell({ kind: 'end', token: secret });
  const last = within(work_ms_max, Promise.allSettled([...leaving].map((work) => work(secret))));
  write(browser, null);
  leave(isValid ? last.then(() => endSession(secret)) : last);
}

/**
 * Whether the session has ended and the page will be loaded again soon. Anything that the person types now would be
 * lost.
 */
export let isLeaving = false;

/** Ends the session in this tab. Waits for `last`, which still uses the token, before it loads the page again. */
function leave(last: Promise<unknown> = Promise.resolve()): void {
  isLeaving = true;
  write(tab, null);
  token.set('');
  me.set(null);
  // Reloads the page, which removes everything that was loaded for this person. Empties the fragment of the URL first,
  // so that the page opens no chat.
  location.hash = '';
  void within(leaving_ms_max, last).then(() => location.reload());
}
