/** Serves the web application at `/app` and the operators' page at `/ops`: built files, in memory in three encodings, under a strict policy. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
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
 * Scripts and styles come from this origin only. Pictures and sound may come from other hosts, because people send media by URL; the
 * application asks before it loads any. `trusted-types`: no text becomes markup or script.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data: https:",
  'media-src blob: https:',
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types petrel',
].join('; ');

/** Stricter, because the token of the operators' page allows everything: no content of other hosts, and no trusted-types policy. */
const operatorsPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const safe = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
] as const;

interface Asset {
  readonly headers: ReadonlyArray<readonly [string, string]>;
  readonly tag: string;
  readonly plain: Buffer;
  /** By the name of the encoding. */
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/** The preferred encoding that the client accepts; a weight of 0 forbids one. */
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

/** Files with a hash in their name never change and are cached; the page itself is requested each time. */
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
      ['Content-Security-Policy', name.startsWith('ops/') ? operatorsPolicy : policy],
      ...safe,
    ],
  };
}

function send(request: ApiRequest, asset: Asset): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
  const encoding = chosenEncoding(request.acceptEncoding, asset.encoded.keys());
  const body = (encoding === undefined ? undefined : asset.encoded.get(encoding)) ?? asset.plain;
  // Each encoding is a representation with its own ETag (RFC 9110 §8.8.3).
  const tag = encoding === undefined ? asset.tag : `${asset.tag.slice(0, -1)}-${encoding}"`;
  const headers: Array<readonly [string, string]> = [...asset.headers, ['ETag', tag]];
  if (matchesTag(request.ifNoneMatch, tag)) {
    request.replyStream({ status: 304, headers, length: body.length, body: null });
    return;
  }
  if (encoding !== undefined) headers.push(['Content-Encoding', encoding]);
  request.replyStream({
    status: 200,
    headers,
    length: body.length,
    body: Readable.from([body], { objectMode: false }),
  });
}

/** The files that a front serves for the application, by path; none if the build has none. Read at the first request. */
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
    const path = name.startsWith('ops/') ? `/${name}` : `/app/${name}`;
    if (path.endsWith('/page.html')) pages[path.slice(0, -'/page.html'.length)] = page;
    pages[path.replace(/\/page\.html$/, '/')] = page;
  }
  return pages;
}
