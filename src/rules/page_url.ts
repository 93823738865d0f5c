/** Finds the first web page to which a message links, and the URL for loading its preview (decision 0086). */
import { ruleLimits } from './limits.js';
import { maskTokens } from './token.js';

interface Marked {
  readonly type: string;
  /** The offset of the entity in the text. `offset` and `length` are in UTF-16 code units. */
  readonly offset: number;
  readonly length: number;
  readonly [key: string]: unknown;
}

interface Linking {
  readonly text?: string;
  readonly entities?: readonly Marked[];
  readonly preview?: { readonly is_disabled?: true; readonly url?: string };
}

const { link_preview_url_length_max: length_max } = ruleLimits;

/**
 * Returns the HTTPS URL of a page, without the fragment. Converts an `http:` URL without a port to `https:`. Returns
 * undefined if no preview may be loaded: if the URL is too long, has another protocol, or contains a user, a password
 * or a bot's token.
 */
export function pageUrl(text: string, base?: string): string | undefined {
  if (text.length > length_max || !URL.canParse(text, base)) return undefined;
  const url = new URL(text, base);
  if (url.protocol === 'http:' && url.port === '') url.protocol = 'https:';
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  url.hash = '';
  const { href } = url;
  return href.length > length_max || maskTokens(href) !== href ? undefined : href;
}

const withScheme = (text: string): string =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`;

/** Returns the URL of the page whose preview a message shows, or undefined if the message shows no preview. */
export function linkedPage({ text = '', entities = [], preview }: Linking): string | undefined {
  if (preview?.is_disabled) return undefined;
  if (preview?.url !== undefined) return pageUrl(withScheme(preview.url));
  for (const { type, offset, length, url } of entities) {
    if (type !== 'url' && type !== 'text_link') continue;
    const page = pageUrl(withScheme(type === 'url' ? text.slice(offset, offset + length) : String(url)));
    if (page !== undefined) return page;
  }
  return undefined;
}
