/**
 * Serves the web application at `/app`, the operators' page at `/ops` and the documentation at `/docs`. The built files
 * are kept in memory in three encodings, and are sent with a strict Content-Security-Policy.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { fail } from '../errors.js';
import { matchesTag } from '../rules/entity_tags.js';
import type { ApiRequest } from '../server/request.js';

export type Pages = Readonly<Record<string, (request: ApiRequest) => void>>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};

/**
 * The Content-Security-Policy of the application. Scripts and styles must come from this origin. Pictures and sound may
 * come from other hosts, because people send media by URL. The application asks the person before it loads them.
 * `trusted-types` prevents text from becoming markup or script.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data: https:",
  'media-src blob: https:',
  "connect-src 'self'",
  // Frames may contain any page, because they show pages of bots. Such a page has no access to the application.
  'frame-src https:',
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types petrel',
].join('; ');

/** The Content-Security-Policy of the guides, which use only scripts and styles from this origin. */
const guidesPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * The Content-Security-Policy of the operators' page. It is stricter than the policy of the guides, because an
 * operator's token gives access to everything.
 */
const operatorsPolicy = `${guidesPolicy}; require-trusted-types-for 'script'; trusted-types 'none'`;

/**
 * The Content-Security-Policy of pages of posts. It is as strict as the policy of the operators' page, because
 * strangers write the posts.
 */
export const postPolicy = operatorsPolicy;

/**
 * The Content-Security-Policy of the API reference. It also allows inline styles and embedded fonts and images, because
 * Redoc needs them.
 */
const referencePolicy = guidesPolicy
  .replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
  .replace("img-src 'self'", "img-src 'self' data:; font-src data:");

function policyOf(name: string): string {
  if (name.startsWith('ops/')) return operatorsPolicy;
  if (name === 'docs/reference.html') return referencePolicy;
  return name.startsWith('docs/') ? guidesPolicy : policy;
}

export const safeHeaders = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
] as const;

export interface Asset {
  readonly headers: ReadonlyArray<readonly [string, string]>;
  readonly tag: string;
  readonly plain: Buffer;
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/**
 * Returns the first of the offered encodings that the client accepts. An encoding with the weight 0 is not accepted.
 */
export function chosenEncoding(accepted: string, offered: Iterable<string>): string | undefined {
  const takes = new Set<string>();
  for (const part of accepted.toLowerCase().split(',')) {
    const semicolon = part.indexOf(';');
    const weight = semicolon < 0 ? '' : part.slice(semicolon + 1).trim();
    if (!/^q=0(?:\.0*)?$/.test(weight))
      takes.add(part.slice(0, semicolon < 0 ? undefined : semicolon).trim());
  }
  for (const name of offered) if (takes.has(name)) return name;
  return undefined;
}

/**
 * Reads a built file. If the file's name contains a hash, browsers may cache the file forever, because its content
 * never changes. For any other file, browsers must ask again.
 */
function readAsset(folder: URL, name: string): Asset {
  const plain = readFileSync(new URL(name, folder));
  const encoded = new Map<string, Buffer>();
  for (const [encoding, suffix] of [
    ['br', '.br'],
    ['gzip', '.gz'],
  ] as const) {
    const place = new URL(`${name}${suffix}`, folder);
    if (existsSync(place)) encoded.set(encoding, readFileSync(place));
  }
  const hashed = /-[A-Z0-9]{8}\.\w+$/.test(name);
  const tag = `"${readFileSync(new URL(`${name}.tag`, folder), 'latin1')}"`;
  return {
    plain,
    encoded,
    tag,
    headers: [
      ['Content-Type', types[extname(name)] ?? 'application/octet-stream'],
      ['Cache-Control', hashed ? 'public, max-age=31536000, immutable' : 'no-cache'],
      ['Vary', 'Accept-Encoding'],
      ['Content-Security-Policy', policyOf(name)],
      ...safeHeaders,
    ],
  };
}

const compress = { br: promisify(brotliCompress), gzip: promisify(gzip) };
const params = { [constants.BROTLI_PARAM_QUALITY]: 5 };
const encoders = {
  br: (plain: Buffer) => compress.br(plain, { params }),
  gzip: (plain: Buffer) => compress.gzip(plain),
};
const encodings = Object.keys(encoders) as Array<keyof typeof encoders>;

/** Compresses a body in each of these encodings, outside the event loop. */
async function encodedWith(plain: Buffer, names: typeof encodings): Promise<Map<string, Buffer>> {
  return new Map(await Promise.all(names.map(async (name) => [name, await encoders[name](plain)] as const)));
}

/**
 * Compresses a body in the best encoding that the client accepts. The result is empty if the client accepts no
 * encoding.
 */
export function encodedFor({ acceptEncoding }: ApiRequest, plain: Buffer): Promise<Map<string, Buffer>> {
  const chosen = chosenEncoding(acceptEncoding, encodings);
  return encodedWith(
    plain,
    encodings.filter((name) => name === chosen),
  );
}

export const tagOf = (plain: Buffer): string =>
  `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;

/**
 * Gives JSON text that was created at run time the same headers and encodings as a built file. Compresses the text
 * outside the event loop.
 */
export async function jsonAsset(text: string): Promise<Asset> {
  const plain = Buffer.from(text);
  return {
    plain,
    encoded: await encodedWith(plain, encodings),
    tag: tagOf(plain),
    headers: [
      ['Content-Type', 'application/json'],
      ['Cache-Control', 'no-cache'],
      ['Vary', 'Accept-Encoding'],
      ['Content-Security-Policy', guidesPolicy],
      ...safeHeaders,
    ],
  };
}

/** Sends a file or a page. Error: `method_not_allowed`. */
export function send(request: ApiRequest, asset: Asset, status = 200): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
  const encoding = chosenEncoding(request.acceptEncoding, asset.encoded.keys());
  const body = (encoding === undefined ? undefined : asset.encoded.get(encoding)) ?? asset.plain;
  // Gives each encoding its own ETag, because each is a separate representation (RFC 9110 §8.8.3).
  const tag = encoding === undefined ? asset.tag : `${asset.tag.slice(0, -1)}-${encoding}"`;
  const headers: Array<readonly [string, string]> = [...asset.headers, ['ETag', tag]];
  if (status === 200 && matchesTag(request.ifNoneMatch, tag)) {
    request.replyStream({ status: 304, headers, length: body.length, body: null });
    return;
  }
  if (encoding !== undefined) headers.push(['Content-Encoding', encoding]);
  request.replyStream({
    status,
    headers,
    length: body.length,
    body: Readable.from([body], { objectMode: false }),
  });
}

/** Redirects the client to another path. Error: `method_not_allowed`. */
function redirect(request: ApiRequest, to: string): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
  const body = Buffer.from(`The page is at ${to}\n`);
  request.replyStream({
    status: 307,
    headers: [
      ['Content-Type', 'text/plain'],
      ['Location', to],
      ['Cache-Control', 'no-cache'],
      ...safeHeaders,
    ],
    length: body.length,
    body: Readable.from([body], { objectMode: false }),
  });
}

export function applicationPages(folder = new URL('client/', import.meta.url)): Pages {
  const pages: Record<string, (request: ApiRequest) => void> = {};
  if (!existsSync(folder)) return pages;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => existsSync(new URL(`${name}.tag`, folder)));
  for (const name of names) {
    let asset: Asset | undefined;
    const page = (request: ApiRequest) => {
      asset ??= readAsset(folder, name);
      send(request, asset);
    };
    if (/^docs\/.*\.html$/.test(name)) {
      pages[`/${name}`.replace(/(\/index)?\.html$/, '')] = page;
      continue;
    }
    const path = /^(ops|docs)\//.test(name) ? `/${name}` : `/app/${name}`;
    if (path.endsWith('/page.html')) pages[path.slice(0, -'/page.html'.length)] = page;
    pages[path.replace(/\/page\.html$/, '/')] = page;
  }
  pages['/docs/'] = (request) => redirect(request, '/docs');
  // If a browser opens the root path of the service, redirects it to the application. Other clients get the error for
  // an unknown path.
  pages['/'] = (request) =>
    request.acceptedTypes.includes('text/html') ? redirect(request, '/app') : fail('not_found');
  return pages;
}
