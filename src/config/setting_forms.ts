/** Formats of setting values. */
import { createECDH } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';
import { limits } from '../limits.js';
import { parseAddress } from '../rules/database_url.js';

export const whole = (min: number, max: number) =>
  z.coerce
    .number({ error: `a whole number from ${min} to ${max}` })
    .int({ error: `a whole number from ${min} to ${max}` })
    .min(min, { error: `a whole number from ${min} to ${max}` })
    .max(max, { error: `a whole number from ${min} to ${max}` });

export const int = (min: number, max: number, fallback: number) => whole(min, max).default(fallback);

export const url = (protocols: readonly string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
    error: `a URL that begins with ${protocols.map((p) => (p === 'mailto:' ? p : `${p}//`)).join(' or ')}`,
  });

export const postgresUrl = z.string().refine((text) => parseAddress(text) !== null, {
  error:
    'a URL that begins with postgres:// or postgresql://, with several hosts separated by commas and ?pooler=unnamed or ' +
    '?pooler=prepared for a pooler',
});

export const postgresUrls = z.string().transform((text, ctx) => {
  const urls = text.split(/\s+/).filter(Boolean);
  if (urls.every((each) => parseAddress(each) !== null)) return urls;
  ctx.addIssue({
    code: 'custom',
    message: 'URLs that begin with postgres:// or postgresql://, separated by blanks',
  });
  return z.NEVER;
});

/** Servers as URLs. A bare host:port takes protocol and password from the first URL. */
export const servers = (port: number) =>
  z.string().transform((text, ctx) => {
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
    if (!urls.every(usable)) {
      ctx.addIssue({
        code: 'custom',
        message: 'host:port or redis:// or rediss:// URLs, separated by commas',
      });
      return z.NEVER;
    }
    return urls.map((given) => {
      const url = new URL(given);
      url.port ||= String(port);
      return url.href;
    });
  });

/** Databases by number, `1=postgres://…,2=postgres://…`, ascending. A URL may contain commas. */
export const shards = z.string().transform((text, ctx) => {
  const all = text.split(/,(?=\s*\d+=)/).map((part) => {
    const [, id = '', url = ''] = /^\s*(\d{1,3})=(.+?)\s*$/.exec(part) ?? [];
    return { id: Number(id), url };
  });
  const usable = all.every(({ id, url }) => id > 0 && parseAddress(url) !== null);
  if (!usable || new Set(all.map(({ id }) => id)).size < all.length) {
    ctx.addIssue({
      code: 'custom',
      message: '<number>=postgres://… for each database, separated by commas, each number from 1 to 999 once',
    });
    return z.NEVER;
  }
  return all.sort((a, b) => a.id - b.id);
});

export const headerName = z.string().regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, {
  error: 'up to 64 letters, digits and hyphens',
});

export const flag = z
  .enum(['0', '1', 'true', 'false'], { error: '0 or 1' })
  .transform((text) => text === '1' || text === 'true');

/** `id:base64,id:base64`: the first key encrypts, all keys decrypt. */
export const keyRing = z.string().transform((text, ctx) => {
  const keys = text.split(',').map((part) => {
    const [id = '', base64 = ''] = part.trim().split(':');
    return { id, key: Buffer.from(base64, 'base64') };
  });
  const malformed = keys.some(({ id, key }) => !/^[A-Za-z0-9]{1,16}$/.test(id) || key.length !== 32);
  if (malformed || new Set(keys.map(({ id }) => id)).size < keys.length) {
    ctx.addIssue({
      code: 'custom',
      message: 'id:base64 of 32 bytes, several of different ids separated by commas',
    });
    return z.NEVER;
  }
  return keys;
});

/** Peppers separated by commas: the first hashes new tokens, all are accepted. */
export const peppers = z.string().transform((text, ctx) => {
  const all = text.split(',').map((part) => part.trim());
  if (all.some((pepper) => pepper.length < 32) || new Set(all).size < all.length) {
    ctx.addIssue({
      code: 'custom',
      message: 'at least 32 characters, several different ones separated by commas',
    });
    return z.NEVER;
  }
  return all;
});

/** `10.0.0.0/8,fd00::/8`. A bare address is a range of one. */
export const cidrs = z.string().transform((text, ctx) => {
  const ranges = text.split(',').map((part) => {
    const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(part.trim()) ?? [];
    const width = isIP(address) === 4 ? 32 : 128;
    return isIP(address) !== 0 && Number(bits ?? 0) <= width ? `${address}/${bits ?? width}` : undefined;
  });
  if (ranges.includes(undefined)) {
    ctx.addIssue({ code: 'custom', message: 'ranges of addresses like 10.0.0.0/8, separated by commas' });
    return z.NEVER;
  }
  return ranges as string[];
});

/** `30/1`: a burst of 30 calls that refills within 1 second. `0`: no limit, as 0 calls. */
export const rate = z.string().transform((text, ctx) => {
  if (text === '0') return { calls: 0, seconds: 1 };
  const [, calls = 0, seconds = 0] = (/^([1-9]\d{0,6})\/([1-9]\d{0,4})$/.exec(text) ?? []).map(Number);
  if (calls >= 1 && calls <= limits.rate_calls_max && seconds <= limits.rate_seconds_max)
    return { calls, seconds };
  ctx.addIssue({ code: 'custom', message: 'calls/seconds like 30/1, up to a day, or 0 for no limit' });
  return z.NEVER;
});

/** In the form of a setting. */
export const rateText = ({ calls, seconds }: z.output<typeof rate>): string =>
  calls === 0 ? '0' : `${calls}/${seconds}`;

/** Whether 32 bytes are a valid P-256 private key. Nearly all are. */
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
