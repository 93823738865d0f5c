/**
 * Serves the API reference: the OpenAPI document at `/openapi.json`, and a viewer at `/docs` that loads nothing from
 * other hosts.
 */
import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { version } from '../config/version.js';
import { fail } from '../errors.js';
import { endpoints } from '../server/endpoints.gen.js';
import { methods } from '../server/methods.gen.js';
import type { ApiRequest } from '../server/request.js';
import { openApiDocument } from './openapi.js';

type Pages = Readonly<Record<string, (request: ApiRequest) => void>>;

/** Files of the viewer: path, file name beside this module, content type. */
const files = [
  ['/docs', 'page.html', 'text/html; charset=utf-8'],
  ['/docs/start_viewer.js', 'start_viewer.js', 'text/javascript; charset=utf-8'],
  ['/docs/swagger-ui-bundle.js', 'viewer/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['/docs/swagger-ui.css', 'viewer/swagger-ui.css', 'text/css; charset=utf-8'],
] as const;

/**
 * Readers call the API from this page with a token, so no other site may embed it in a frame. The page's own policy
 * cannot forbid that.
 */
const safe = [
  ['Content-Security-Policy', "frame-ancestors 'none'"],
  ['X-Frame-Options', 'DENY'],
  ['X-Content-Type-Options', 'nosniff'],
] as const;

/** Builds or reads the content on the first request and caches it. */
function page(type: string, make: () => Buffer): (request: ApiRequest) => void {
  let made: Buffer | undefined;
  return (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return fail('method_not_allowed');
    made ??= make();
    request.replyStream({
      status: 200,
      headers: [['Content-Type', type], ...safe],
      length: made.length,
      body: Readable.from([made], { objectMode: false }),
    });
  };
}

/**
 * Pages of the reference by path. `baseUrl` is the setting BASE_URL. `rates` are the rate limits that are on; the
 * document lists them for load tools.
 */
export function referencePages(
  baseUrl: string | undefined,
  rates: Readonly<Record<string, string>> = {},
): Pages {
  const document = () =>
    Buffer.from(JSON.stringify(openApiDocument({ methods, endpoints, version, baseUrl, rates })));
  const pages: Record<string, (request: ApiRequest) => void> = {
    '/openapi.json': page('application/json', document),
  };
  for (const [path, file, type] of files) {
    const place = new URL(file, import.meta.url);
    if (existsSync(place)) pages[path] = page(type, () => readFileSync(place));
  }
  return pages;
}
