/** Parses a webhook URL into the address to connect to, the TLS server name, and the request path. */
import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';
import { fail } from '../../errors.js';
import { deliveryLimits as limits } from '../limits.js';

export interface Target {
  /** The given URL, trimmed and with a scheme. */
  readonly url: string;
  /** Normalised, as `https://host:port`. */
  readonly origin: string;
  /** The host name in ASCII without a trailing dot, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** The header made from the user name and password in the URL, as the Telegram Bot API server sends it. */
  readonly authorization: string | undefined;
}

/**
 * Adds `https://` if the scheme is missing. In `example.com:8443/hook`, the part before the colon is a host and not a
 * scheme.
 */
const withScheme = (url: string): string =>
  /^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#\\]|$))|^[/\\?#]/i.test(url) ? url : `https://${url}`;

export const namesUser = (url: string): boolean =>
  /^[a-z][a-z0-9+.-]*:[/\\]*[^/\\?#]*@/i.test(withScheme(url.trim()));

/**
 * Returns whether a host name is valid. Also checks the Punycode of labels that start with `xn--`, because the URL
 * parser of Node.js 24 accepts invalid Punycode.
 */
const isName = (host: string) =>
  host.length <= 253 &&
  host.split('.').every((label) => label.length >= 1 && label.length <= 63) &&
  !/(^|\.)xn--/.test(domainToUnicode(host));

function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  try {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Basic ${Buffer.from(pair).toString('base64')}`;
  } catch {
    return fail('webhook_url_invalid');
  }
}

/**
 * Parses a URL as browsers do (WHATWG), so that `https://0x7f.1/` is normalised before its address is checked. Errors:
 * `webhook_url_invalid`, `webhook_url_not_https` (interface §8).
 */
export function readTarget(text: string): Target {
  const given = withScheme(text.trim());
  // Refuses tabs and line breaks. The parser would remove them, so the URL that the owner sees would differ from the
  // URL that is requested.
  if (given.length > limits.webhook_url_length_max || /[\s\u0000-\u001f\u007f]/.test(given))
    fail('webhook_url_invalid');
  if (!URL.canParse(given)) fail('webhook_url_invalid');
  const url = new URL(given);
  if (url.protocol !== 'https:') fail('webhook_url_not_https');
  if (url.port === '0') fail('webhook_url_invalid');
  const bracketed = url.hostname.startsWith('[');
  const host = bracketed ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, '');
  if (isIP(host) === 0 && !isName(host)) fail('webhook_url_invalid');
  const port = Number(url.port || 443);
  const authority = bracketed ? `[${host}]` : host;
  return {
    url: given,
    origin: `https://${authority}${port === 443 ? '' : `:${port}`}`,
    host,
    port,
    path: `${url.pathname}${url.search}`,
    authorization: basicAuthorization(url),
  };
}
