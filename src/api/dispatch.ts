/**
 * From a request to its reply: who calls, what is called, with which parameters. A bot call runs down here once and its
 * result comes up once; nothing on the way asks Postgres unless something is cold.
 */
import { timingSafeEqual } from 'node:crypto';
import { ApiError, type ErrorName, errorEnvelope, fail } from '../errors.js';
import { fileAtPath } from '../files/file_path.js';
import type { Files } from '../files/files.js';
import type { Store } from '../store/store.js';
import { namesChat, withChatIds } from './chat_names.js';
import { createDownloads } from './downloads.js';
import { replied } from './endpoint.js';
import { Described, type Method, Prepared, parseWith } from './method.js';
import { noFiles, parseParams } from './params.js';
import { endpoints, methods } from './registry.js';
import type { ApiRequest, RequestHandler } from './request.js';
import { createRouter, type Match } from './router.js';

export interface DispatchOptions {
  readonly store: Store;
  readonly files: Files;
  /** Bearer token of operators; without one there are no operator endpoints. */
  readonly adminToken: string | undefined;
  /** Answers of the process itself, by path: health, readiness, metrics. */
  readonly own: Readonly<Record<string, (request: ApiRequest) => void | Promise<void>>>;
  /** Hears the outcome of each bot call. */
  readonly onCall?: (method: string, status: number) => void;
}

const byName = new Map(methods.map((method) => [method.name.toLowerCase(), method]));

function envelope(result: unknown): string {
  if (result instanceof Prepared) return `{"ok":true,"result":${result.json}}`;
  if (result instanceof Described) {
    return JSON.stringify({ ok: true, result: result.result, description: result.description });
  }
  return `{"ok":true,"result":${JSON.stringify(result)}}`;
}

function refuse(request: ApiRequest, error: unknown): number {
  // Anything else than an answer of the catalogue is for the exchange to log.
  if (!(error instanceof ApiError)) throw error;
  request.reply(error.code, errorEnvelope(error), error.retryAfter);
  return error.code;
}

/** Splits `/bot<token>/<method>`. Clients may write the colon of the token as %3A. */
function splitBotPath(path: string): { readonly token: string; readonly name: string } {
  const slash = path.indexOf('/', 4);
  const raw = slash < 0 ? path.slice(4) : path.slice(4, slash);
  const token = raw.includes('%') ? raw.replace(/%3a/i, ':') : raw;
  return { token, name: slash < 0 ? '' : path.slice(slash + 1) };
}

function bearer(request: ApiRequest): string {
  const { authorization } = request;
  return /^bearer /i.test(authorization) ? authorization.slice(7).trim() : '';
}

function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

const unknownToPeople: Partial<Record<ErrorName, ErrorName>> = {
  chat_not_found: 'unknown_chat',
  message_to_edit_not_found: 'message_not_found',
  message_to_delete_not_found: 'message_not_found',
};

export function createDispatch({ store, files, adminToken, own, onCall }: DispatchOptions): RequestHandler {
  const find = createRouter(endpoints);
  const downloads = createDownloads(files);

  function run(
    request: ApiRequest,
    method: Method,
    bot: NonNullable<Awaited<ReturnType<Store['auth']['bot']>>>,
  ): unknown {
    const onGone = (listener: () => void) => request.onAbort(listener);
    if (method.params === null) {
      return method.handler({ bot, store, files, uploads: noFiles, onGone }, null as never);
    }
    const { values, files: uploads } = parseParams(request);
    const context = { bot, store, files, uploads, onGone };
    const params = parseWith(method.params, values);
    if (!namesChat(params)) return method.handler(context, params as never);
    return withChatIds(store, params).then((resolved) => method.handler(context, resolved as never));
  }

  function finish(request: ApiRequest, method: Method, result: unknown): void {
    request.reply(200, envelope(result));
    onCall?.(method.name, 200);
  }

  /** What is in memory is answered in the same turn: no promise is made for it. */
  function callBot(request: ApiRequest): void | Promise<void> {
    if (request.method !== 'GET' && request.method !== 'POST') return fail('method_not_allowed');
    const { token, name } = splitBotPath(request.path);
    const bot = store.auth.bot(token);
    if (bot instanceof Promise) return bot.then((found) => callKnown(request, found, name));
    return callKnown(request, bot, name);
  }

  function callKnown(
    request: ApiRequest,
    bot: Awaited<ReturnType<Store['auth']['bot']>>,
    name: string,
  ): void | Promise<void> {
    if (bot === null) return fail('unauthorized');
    const method = byName.get(name.toLowerCase());
    if (method === undefined) return fail(name.includes('/') ? 'not_found' : 'method_not_found');
    try {
      const result = run(request, method, bot);
      if (!(result instanceof Promise)) return finish(request, method, result);
      return result.then(
        (value) => finish(request, method, value),
        (error) => onCall?.(method.name, refuse(request, error)),
      );
    } catch (error) {
      onCall?.(method.name, refuse(request, error));
    }
  }

  /** What a path names and is not there is 404 for people, while bots get the texts that their libraries know. */
  function forPeople(error: unknown): unknown {
    const kind = error instanceof ApiError ? unknownToPeople[error.kind] : undefined;
    return kind === undefined ? error : new ApiError(kind);
  }

  async function callEndpoint(request: ApiRequest, { endpoint, segments }: Match): Promise<void> {
    const token = bearer(request);
    if (endpoint.caller === 'admin' && (adminToken === undefined || !sameText(token, adminToken)))
      fail('unauthorized');
    const user =
      endpoint.caller === 'admin' ? null : ((await store.auth.user(token)) ?? fail('unauthorized'));
    const { values, files: uploads } = parseParams(request);
    const params = parseWith(endpoint.params, { ...values, ...segments });
    const context = { user, store, files, uploads, downloads, request };
    const result = await endpoint.handler(context as never, params as never);
    if (result !== replied) request.reply(200, envelope(result));
  }

  /** `/file/bot<token>/<file_path>`: any bot that knows the path of a file may have it. */
  async function callFile(request: ApiRequest): Promise<void> {
    const { token, name } = splitBotPath(request.path.slice('/file'.length));
    const bot = (await store.auth.bot(token)) ?? fail('unauthorized');
    if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
    await downloads.send(request, fileAtPath(files, name), bot.id);
  }

  function callApplication(request: ApiRequest): void | Promise<void> {
    const match = find(request.method === 'HEAD' ? 'GET' : request.method, request.path);
    if (match === null) return fail('not_found');
    if (match === 'other_verb') return fail('method_not_allowed');
    return callEndpoint(request, match).catch((error) => {
      throw forPeople(error);
    });
  }

  return (request) => {
    const { path } = request;
    if (path.startsWith('/bot')) return callBot(request);
    if (path.startsWith('/file/bot')) return callFile(request);
    if (path.startsWith('/api/')) return callApplication(request);
    const answer = Object.hasOwn(own, path) ? own[path] : undefined;
    return answer ? answer(request) : fail('not_found');
  };
}
