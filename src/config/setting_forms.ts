/** Parses the values of settings. */
import { createECDH } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';
import { parseAddress } from '../rules/database_url.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { validUsername } from '../rules/usernames.js';

/**
 * Creates the format of a setting. `read` converts text to a value, or returns undefined. The text is then refused with
 * `message`.
 */
const form = <T>(message: string, read: (text: string) => T | undefined) =>
  z.string().transform((text, ctx): T => {
    const value = read(text);
    if (value !== undefined) return value;
    ctx.addIssue({ code: 'custom', message });
    return z.NEVER;
  });

export const whole = (min: number, max: number) => {
  const error = `a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

export const int = (min: number, max: number, fallback: number) => whole(min, max).default(fallback);

export const url = (protocols: readonly string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
    error: `a URL that begins with ${protocols.map((p) => (p === 'mailto:' ? p : `${p}//`)).join(' or ')}`,
  });

/**
 * The address of an identity provider. It receives codes and secrets, so HTTP is allowed only for a provider on this
 * machine.
 */
export const providerUrl = z.string().refine(
  (text) => {
    if (!URL.canParse(text)) return false;
    const { protocol, hostname, username, password, search, hash } = new URL(text);
    if (username + password + search + hash !== '') return false;
    const isOwn = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
    return protocol === 'https:' || (protocol === 'http:' && isOwn);
  },
  {
    error:
      'a URL that begins with https://, or with http:// and a loopback address, without user, query and fragment',
  },
);

export const postgresUrl = z.string().refine((text) => parseAddress(text) !== null, {
  error:
    'a URL that begins with postgres:// or postgresql://, with several hosts separated by commas and ?pooler=unnamed or ' +
    '?pooler=prepared for a pooler',
});

/**
 * Parses standby databases. The number before the URL is the number of the primary database: `postgres://…` is a
 * standby of database 0, and `1=postgres://…` is a standby of database 1.
 */
export const standbys = form(
  'URLs that begin with postgres:// or postgresql://, separated by blanks; a standby of database 1 of DATABASE_SHARDS begins with 1=',
  (text) => {
    const parts = text.split(/\s+/).filter(Boolean);
    const all = parts.map((each) => {
      const [, shard = '0', url = ''] = /^(?:([1-9]\d{0,2})=)?(.+)$/.exec(each) ?? [];
      return { shard: Number(shard), url };
    });
    return all.every(({ url }) => parseAddress(url) !== null) ? all : undefined;
  },
);

/** Parses a list of servers, given as URLs. A bare host:port gets the protocol and password of the first URL. */
export const servers = (port: number) =>
  form('host:port or redis:// or rediss:// URLs, separated by commas', (text) => {
    const parts = text.split(',').map((part) => part.trim());
    const [first = ''] = parts;
    const model = new URL(URL.canParse(first) && first.includes('://') ? first : 'redis://seed:6379');
    const urls = parts.map((part) => {
      if (part.includes('://')) return part;
      const auth = model.password || model.username ? `${model.username}:${model.password}@` : '';
      return `${model.protocol}//${auth}${part}`;
    });
    const usable = (given: string) =>
      URL.canParse(given) && /^rediss?:$/.test(new URL(given).protocol) && new URL(given).hostname !== '';
    if (!urls.every(usable)) return undefined;
    return urls.map((given) => {
      const url = new URL(given);
      url.port ||= String(port);
      return url.href;
    });
  });

/**
 * Parses a list of databases with ascending numbers, for example `1=postgres://…,2=postgres://…`. A URL may itself
 * contain commas.
 */
export const shards = form(
  '<number>=postgres://… for each database, separated by commas, each number from 1 to 999 once',
  (text) => {
    const all = text.split(/,(?=\s*\d+=)/).map((part) => {
      const [, id = '', url = ''] = /^\s*(\d{1,3})=(.+?)\s*$/.exec(part) ?? [];
      return { id: Number(id), url };
    });
    const usable = all.every(({ id, url }) => id > 0 && parseAddress(url) !== null);
    if (!usable || new Set(all.map(({ id }) => id)).size < all.length) return undefined;
    return all.sort((a, b) => a.id - b.id);
  },
);

export const headerName = z.string().regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, {
  error: 'up to 64 letters, digits and hyphens',
});

export const flag = z
  .enum(['0', '1', 'true', 'false'], { error: '0 or 1' })
  .transform((text) => text === '1' || text === 'true');

/** Parses a list of keys in the form `id:base64,id:base64`. The first key encrypts. All keys decrypt. */
export const keyRing = form('id:base64 of 32 bytes, several of different ids separated by commas', (text) => {
  const keys = text.split(',').map((part) => {
    const [id = '', base64 = ''] = part.trim().split(':');
    return { id, key: Buffer.from(base64, 'base64') };
  });
  const malformed = keys.some(({ id, key }) => !/^[A-Za-z0-9]{1,16}$/.test(id) || key.length !== 32);
  return malformed || new Set(keys.map(({ id }) => id)).size < keys.length ? undefined : keys;
});

/** Parses the usernames of suggested bots and public chats. */
export const suggestedNames = form(
  `up to ${limits.suggestions_max} usernames, all different, separated by blanks`,
  (text) => {
    const names = text
      .split(/\s+/)
      .filter(Boolean)
      .map((name) => name.replace(/^@/, ''));
    const isMany = names.length > limits.suggestions_max;
    const areAlike = new Set(names.map((name) => name.toLowerCase())).size < names.length;
    return isMany || areAlike || !names.every(validUsername) ? undefined : names;
  },
);

/**
 * Parses a comma-separated list of peppers. New tokens are hashed with the first pepper. A token that was hashed with
 * any of the peppers is accepted.
 */
export const peppers = form(
  'secrets of at least 32 characters, all different, separated by commas',
  (text) => {
    const all = text.split(',').map((part) => part.trim());
    return all.some((pepper) => pepper.length < 32) || new Set(all).size < all.length ? undefined : all;
  },
);

/** Parses address ranges, for example `10.0.0.0/8,fd00::/8`. A bare address is a range of one address. */
export const cidrs = form('ranges of addresses like 10.0.0.0/8, separated by commas', (text) => {
  const ranges = text.split(',').map((part) => {
    const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(part.trim()) ?? [];
    const width = isIP(address) === 4 ? 32 : 128;
    return isIP(address) !== 0 && Number(bits ?? 0) <= width ? `${address}/${bits ?? width}` : undefined;
  });
  return ranges.includes(undefined) ? undefined : (ranges as string[]);
});

/**
 * Parses a rate limit. `30/1` allows a burst of 30 calls, and restores the full burst within 1 second. `0` means no
 * limit and becomes 0 calls.
 */
export const rate = form('calls/seconds like 30/1, up to a day, or 0 for no limit', (text) => {
  if (text === '0') return { calls: 0, seconds: 1 };
  const [, calls = 0, seconds = 0] = (/^([1-9]\d{0,6})\/([1-9]\d{0,4})$/.exec(text) ?? []).map(Number);
  const isRate = calls >= 1 && calls <= limits.rate_calls_max && seconds <= limits.rate_seconds_max;
  return isRate ? { calls, seconds } : undefined;
});

export const rateText = ({ calls, seconds }: z.output<typeof rate>): string =>
  calls === 0 ? '0' : `${calls}/${seconds}`;

/** Returns whether 32 bytes (base64url) are a valid P-256 private key. Nearly all values of 32 bytes are valid keys. */
function isPrivateKey(text: string): boolean {
  try {
    createECDH('prime256v1').setPrivateKey(Buffer.from(text, 'base64url'));
    return true;
  } catch {
    return false;
  }
}

export const vapidKey = z.string().refine((text) => /^[A-Za-z0-9_-]{43}$/.test(text) && isPrivateKey(text), {
  error: '32 bytes as base64url, a private key of P-256',
});

/** Parses up to four Ed25519 private keys, separated by commas. */
export const signingKeys = form('1 to 4 keys of 32 bytes as base64url, separated by commas', (text) => {
  const keys = text.split(',').map((part) => part.trim());
  // The two unused bits of the last character must be 0. Otherwise a key would have several spellings and could be
  // listed twice.
  const malformed = keys.some(
    (key) => key.length !== 43 || Buffer.from(key, 'base64url').toString('base64url') !== key,
  );
  return malformed || keys.length > 4 || new Set(keys).size < keys.length ? undefined : keys;
});
