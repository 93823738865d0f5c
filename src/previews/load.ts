/**
 * Loads a page for its preview. Every request, also after a redirect, goes through the guard that keeps webhooks away
 * from internal addresses.
 */
import { type Exchange, exchange } from '../delivery/outbound/exchange.js';
import type { Guard } from '../delivery/outbound/guard.js';
import { type Receiver, receiverOf } from '../delivery/outbound/send.js';
import { ApiError } from '../errors.js';
import { pageUrl } from '../rules/page_url.js';
import type { LinkPreview } from '../store/messages/link_previews.js';
import type { Time } from '../time.js';
import { cardOf } from './card.js';
import { readPage } from './charset.js';
import { previewLimits as limits } from './limits.js';

export interface LoadOptions {
  readonly guard: Guard;
  readonly time: Time;
  /** A PEM certificate that is accepted from pages in place of a certificate from a public authority. */
  readonly certificate?: string | undefined;
}

const headers = {
  Accept: 'text/html,application/xhtml+xml',
  // Asks for an uncompressed page. A compressed page could become much larger than the bytes that were received.
  'Accept-Encoding': 'identity',
  'User-Agent': 'PetrelLinkPreview/1.0',
};
const noBody = Buffer.alloc(0);
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const first = (value: string | string[] | undefined): string =>
  (Array.isArray(value) ? value[0] : value) ?? '';

type Wanted = (status: number, headers: Readonly<Record<string, string | string[] | undefined>>) => boolean;

/** Returns whether the body of an answer is an uncompressed HTML page. Other bodies are not read. */
const isPage: Wanted = (status, given) =>
  status === 200 &&
  /^(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i.test(first(given['content-type'])) &&
  /^(?:identity)?$/i.test(first(given['content-encoding']));

/** Returns the server of a page, or null if the URL has an invalid host or port. */
function serverOf(url: string, certificate: string | undefined): Receiver | null {
  try {
    return receiverOf(url, certificate);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

const headerOf = ({ headers: given }: Exchange, name: string): string =>
  given.find(([own]) => own === name)?.[1] ?? '';

/**
 * Returns a page's preview. Null if the page has no preview. Undefined if a server could not be reached or was too
 * slow. Never throws, whatever the page or its server does. Takes at most `preview_ms_max`.
 */
export async function loadPreview(
  url: string,
  { guard, time, certificate }: LoadOptions,
): Promise<LinkPreview | null | undefined> {
  const endMs = time.monotonic() + limits.preview_ms_max;
  let at: string | undefined = url;
  for (let left = limits.preview_redirects_max; at !== undefined && left >= 0; left--) {
    const deadlineMs = endMs - time.monotonic();
    const server = serverOf(at, certificate);
    if (server === null) return null;
    if (deadlineMs <= 0) return undefined;
    const reads = { bytesMax: limits.preview_page_bytes_max, wanted: isPage };
    const given = await exchange(server, headers, noBody, {
      ...{ guard, time, deadlineMs, reads },
    });
    const { outcome } = given;
    if (outcome.kind === 'failed') return undefined;
    if (outcome.body.length > 0) return cardOf(at, readPage(outcome.body, headerOf(given, 'content-type')));
    if (!redirects.has(outcome.status)) return null;
    at = pageUrl(headerOf(given, 'location'), at);
  }
  return null;
}
