/**
 * Reads the answer of an identity provider from the page's URL. Removes the answer from the URL and from the browser's
 * history, because it contains a one-time code. Then opens the page that was open when the sign-in began.
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
  // Sets only the fragment of the URL, so that the stored value cannot lead to another site.
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
    // If the browser does not allow storage, the page that is open now cannot open again after the sign-in. The list of
    // chats opens instead.
  }
}
