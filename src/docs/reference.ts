/** Serves the OpenAPI document at `/openapi.json` and the search index of the documentation at `/docs/search.json`. */
import { readFile } from 'node:fs/promises';
import { version } from '../config/version.js';
import type { RequestHandler } from '../server/request.js';
import { type Asset, jsonAsset, send } from '../web/pages.js';
import { documentHead, type HeadOptions, type Operations, operationsOf, sampleBase } from './openapi.js';

const guides = new URL('../web/client/docs/guides.json', import.meta.url);

/**
 * The path of the OpenAPI document's body, which the build wrote as JSON. Its code samples use `placeholder` as base
 * URL.
 */
export const bodyFile = new URL('./openapi.json', import.meta.url);
export const placeholder = 'http://base-url.invalid';

/** Serves content that is made at the first request and then cached. After a failure, the next request tries again. */
function page(make: () => Promise<string>): RequestHandler {
  let made: Promise<Asset> | undefined;
  return async (request) => {
    made ??= make()
      .then(jsonAsset)
      .catch((error) => {
        made = undefined;
        throw error;
      });
    send(request, await made);
  };
}

async function documentText(options: HeadOptions): Promise<string> {
  const head = JSON.stringify(documentHead(options)).slice(0, -1);
  const base = JSON.stringify(sampleBase(options.baseUrl)).slice(1, -1);
  const body = (await readFile(bodyFile, 'utf8')).replaceAll(placeholder, () => base);
  return `${head},${body.slice(1)}`;
}

async function searchText(operations: Operations): Promise<string> {
  const headings = await readFile(guides, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]';
    throw error;
  });
  return JSON.stringify([...operationsOf(operations), ...(JSON.parse(headings) as unknown[])]);
}

/**
 * Returns the handlers of the reference by path. `baseUrl` is the setting BASE_URL. `rates` are the active rate limits.
 * The OpenAPI document contains them, so that load tools can read them.
 */
export function referencePages(
  options: Operations & Omit<HeadOptions, 'version'>,
): Readonly<Record<string, RequestHandler>> {
  return {
    '/openapi.json': page(() => documentText({ ...options, version })),
    '/docs/search.json': page(() => searchText(options)),
  };
}
