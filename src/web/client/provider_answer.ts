/**
 * Reads the answer of an identity provider from the page's address, and removes it there. The answer contains a
 * one-time code, which must not stay in the address or in the browser's history. Then opens the page that was open when
 * the sign-in began.
 */
import { go } from './route.js';

const key = 'petrel.sign_in';

/** What this tab remembers while the person signs in at the provider. */
interface Left {
  readonly hash: string;
  readonly keep: boolean;
}

function takeLeft(): Left {
  try {
    const left = JSON.parse(sessionStorage.getItem(key) ?? '') as Left;
    sessionStorage.removeItem(key);
    return left;
  } catch {
    return { hash: '', keep: false };
  }
}

function take() {
  const params = new URLSearchParams(location.search);
  if (!params.has('state') || !(params.has('code') || params.has('error'))) return null;
  const query = location.search.slice(1);
  const { hash, keep } = takeLeft();
  history.replaceState(null, '', location.pathname);
  // Changes only the fragment, so that the address still leads to this page.
  if (hash.startsWith('#/')) go(hash.slice(2));
  return { query, keep };
}

/**
 * The query with the provider's answer, and whether the person wants to stay signed in. Null if this page was not
 * opened by the provider's redirect.
 */
export const providerAnswer = take();

export function rememberPage(keep: boolean): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ hash: location.hash, keep }));
  } catch {
    // If storage is missing, the list of chats opens after the sign-in.
  }
}
