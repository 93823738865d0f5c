/**
 * Takes a request to its reply: authenticates the caller, finds the method or endpoint and reads its parameters. The
 * common path of a bot call reads only memory and Redis. Postgres is read when a cache misses.
 */

import { chatOfUser } from '../actions/compose.js';
import { ApiError, errorEnvelope, fail } from '../errors.js';
import { fileAtPath } from '../files/file_path.js';
import type { Files } from '../files/files.js';
import { limits } from '../limits.js';
import { maskTokens } from '../rules/token.js';
import type { User } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import type { Operations } from '../wire/operations_results.js';
import { fairly, messagesIn, methodNamed, runMethod } from './bot_calls.js';
import { createCallers, type TokenProvider } from './callers.js';
import { createAdminClients, createClientAddress } from './client_address.js';
import { createDownloads } from './downloads.js';
import { type Endpoint, Flat, kindForPeople, type LeakKeys, type PushService, replied } from './endpoint.js';
import { endpoints } from './endpoints.gen.js';
import { answerOnce, holdReply, type Outcome } from './idempotency.js';
import { changesState, Described, type Method, Prepared, parseWith, type Receivers } from './method.js';
import { noFiles, parseParams, parseQuery, type UploadedFile } from './params.js';
import type { ApiRequest, RequestHandler } from './request.js';
import { createRouter, type Match } from './router.js';
import { createShares } from './shares.js';
import { createTurns } from './turns.js';

export interface DispatchOptions {
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  /** Setting ADMIN_TOKEN: an administrator token besides the named ones. */
  readonly adminToken: string | undefined;
  /** Setting ADMIN_ALLOW_CIDRS: ranges from which administrators may call; empty for any. */
  readonly adminCidrs?: readonly string[];
  /** The external identity provider, if one is configured. */
  readonly provider?: TokenProvider | undefined;
  /** Null or absent when reports of leaked tokens are off. */
  readonly leakKeys?: LeakKeys | null;
  /** Null when push notifications are off. */
  readonly push?: PushService | null;
  /** Null or absent when there is no operations data. */
  readonly operations?: Operations | null;
  /** Ranges of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: readonly string[];
  /** Receives each result of a call by a bot or a person. Used for measurements. */
  readonly onResult?: ((request: ApiRequest, result: unknown) => void) | undefined;
  /** Answers of the process itself by path: health, readiness, metrics. */
  readonly own: Readonly<Record<string, (request: ApiRequest) => void | Promise<void>>>;
}

export interface Dispatch {
  readonly handle: RequestHandler;
  /**
   * Decides by the head of a request whether to read its body. True for a caller with a valid token, false for a call
   * that needs none. Throws or rejects with the error answer otherwise. The token is checked again when the body is
   * complete, because it may have been revoked meanwhile.
   */
  readonly admit: (request: ApiRequest) => boolean | Promise<boolean>;
}

/** The parameters of a request, or none when they cannot be parsed. The call itself then answers the parse error. */
function givenIn(request: ApiRequest): Readonly<Record<string, unknown>> {
  try {
    return parseParams(request).values;
  } catch {
    return {};
  }
}

function envelope(result: unknown): string {
  if (result instanceof Prepared) return result.envelope;
  if (result instanceof Flat) return JSON.stringify({ ok: true, ...result.fields });
  if (result instanceof Described) {
    return JSON.stringify({ ok: true, result: result.result, description: result.description });
  }
  return `{"ok":true,"result":${JSON.stringify(result)}}`;
}

function refuse(request: ApiRequest, error: unknown): void {
  // The exchange logs unexpected errors.
  if (!(error instanceof ApiError)) throw error;
  request.reply(error.code, errorEnvelope(error), error.retryAfter);
}

/** An `ApiError` as a reply. Rethrows any other error. */
function refused(error: unknown): Outcome {
  if (!(error instanceof ApiError)) throw error;
  return { status: error.code, body: errorEnvelope(error), retryAfter: error.retryAfter };
}

/** Bot methods accept GET and POST. Error: `method_not_allowed`. */
function checkVerb({ method }: ApiRequest): void {
  if (method !== 'GET' && method !== 'POST') fail('method_not_allowed');
}

/** Splits `/bot<token>/<method>`. Clients may write the colon of the token as %3A. */
function splitBotPath(path: string): { readonly token: string; readonly name: string } {
  const slash = path.indexOf('/', 4);
  const raw = slash < 0 ? path.slice(4) : path.slice(4, slash);
  const token = raw.includes('%') ? raw.replace(/%3a/i, ':') : raw;
  return { token, name: slash < 0 ? '' : path.slice(slash + 1) };
}

/**
 * Counts a person's call, and a change in a chat also against that chat (behaviour §14). Error: `too_many_requests`.
 */
function countPerson(
  { fairUse }: Store,
  { verb, uncounted }: Endpoint,
  user: User | null,
  params: unknown,
): Promise<void> | undefined {
  if (fairUse === undefined || user === null) return undefined;
  const chat = (params as { readonly chat_id?: unknown }).chat_id;
  const changed = verb !== 'GET' && !uncounted && typeof chat === 'number';
  return fairUse.person(
    user.id,
    changed ? chatOfUser(user.id, chat) : null,
    changed ? messagesIn(params) : 1,
  );
}

/** Concurrent changes by one person wait for the same rows and would hold every connection to Postgres. */
const changeTurns = createTurns(limits.settings_calls_at_once, limits.settings_calls_waiting_max);

const unknownPath = () => fail('not_found');

const bytesOf = (uploads: ReadonlyMap<string, UploadedFile>): number =>
  [...uploads.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);

/** Stands for a reply that was not JSON. The idempotency key is released. */
const notKept: Outcome = { status: 500, body: '' };

interface EndpointCall {
  readonly endpoint: Endpoint;
  readonly segments: Readonly<Record<string, string>>;
  /** Null for administrators and partners. */
  readonly user: User | null;
  /** Id of the administrator who calls. Keeps the idempotency keys of administrators apart. */
  readonly administrator?: number;
}

type KnownBot = NonNullable<Awaited<ReturnType<Store['auth']['bot']>>>;

export function createDispatch({
  store,
  files,
  receivers,
  adminToken,
  adminCidrs = [],
  provider,
  leakKeys = null,
  push = null,
  operations = null,
  trustedProxies = [],
  onResult,
  own,
}: DispatchOptions): Dispatch {
  const clientAddress = createClientAddress(trustedProxies);
  const find = createRouter(endpoints);
  const shares = createShares();
  const downloads = createDownloads(files);

  /** Rejects with 401, or with 429 when the address tried many tokens that never existed. */
  async function refuseToken(request: ApiRequest, token: string): Promise<never> {
    const wait = await store.guesses.note(clientAddress(request), token);
    return wait > 0 ? fail('too_many_requests', { retry_after: wait }) : fail('unauthorized');
  }

  /** Refuses a throttled address before any lookup, unless this node already knows the token. */
  function checkGuesser(request: ApiRequest, token: string): void {
    if (!store.guesses.slowing || store.auth.remembers(token)) return;
    const wait = store.guesses.refused(clientAddress(request), token);
    if (wait > 0) fail('too_many_requests', { retry_after: wait });
  }

  const { admins } = store;
  const callers = createCallers({
    auth: store.auth,
    adminToken,
    admins,
    provider,
    refuse: refuseToken,
    check: checkGuesser,
  });

  /** The bot of a token. Errors: `unauthorized`, `too_many_requests`. */
  function botOf(request: ApiRequest, token: string): KnownBot | Promise<KnownBot> {
    checkGuesser(request, token);
    const bot = store.auth.bot(token);
    if (bot instanceof Promise) return bot.then((found) => found ?? refuseToken(request, token));
    return bot ?? refuseToken(request, token);
  }
  const adminClients = createAdminClients(trustedProxies, adminCidrs);

  function run(request: ApiRequest, method: Method, bot: KnownBot, on: Store): unknown {
    const onGone = (listener: () => void) => request.onAbort(listener);
    if (method.params === null) {
      const context = { bot, store: on, files, receivers, uploads: noFiles, onGone };
      return fairly(method, context, null, () => method.handler(context, null as never));
    }
    const { values, files: uploads } = parseParams(request);
    const context = { bot, store: on, files, receivers, uploads, onGone };
    const called = () => runMethod(method as Parameters<typeof runMethod>[0], context, values);
    return uploads.size === 0 ? called() : on.uploads.take(bot.owner, bytesOf(uploads)).then(called);
  }

  function finish(request: ApiRequest, result: unknown): void {
    onResult?.(request, result);
    request.reply(200, envelope(result));
  }

  /** Runs a call with an `Idempotency-Key`. */
  async function runOnce(request: ApiRequest, method: Method, bot: KnownBot): Promise<void> {
    const caller = { kind: 'bot', id: bot.id } as const;
    const count = () => store.fairUse?.call(bot, null, 1);
    const keyed = { store, request, caller, method: method.name, grows: method.effect === 'grow', count };
    const { status, body, retryAfter } = await answerOnce(keyed, async (on) => {
      try {
        return { status: 200, body: envelope(await run(request, method, bot, on)) };
      } catch (error) {
        return refused(error);
      }
    }).catch(refused);
    request.reply(status, body, retryAfter);
  }

  /** Answers from memory in the same turn of the event loop, without a promise. */
  function callBot(request: ApiRequest): void | Promise<void> {
    checkVerb(request);
    const { token, name } = splitBotPath(request.path);
    const bot = botOf(request, token);
    return bot instanceof Promise
      ? bot.then((found) => callInTurn(request, found, name))
      : callInTurn(request, bot, name);
  }

  function callInTurn(request: ApiRequest, bot: KnownBot, name: string): void | Promise<void> {
    return inTurn(request, bot.owner, () => callKnown(request, bot, name));
  }

  /** Runs a call within the share of its account, unless its client goes while it waits. */
  function inTurn(
    request: ApiRequest,
    account: number | string,
    call: () => void | Promise<void>,
  ): void | Promise<void> {
    const { body, query } = request;
    return shares.run(account, body.length + query.length, () => (request.aborted ? undefined : call()));
  }

  function callKnown(request: ApiRequest, bot: KnownBot, name: string): void | Promise<void> {
    request.calledBy = bot.id;
    const method = methodNamed(name);
    if (method === undefined) return fail(name.includes('/') ? 'not_found' : 'method_not_found');
    request.called = method.name;
    if (request.idempotencyKey !== '' && changesState(method)) return runOnce(request, method, bot);
    try {
      const result = run(request, method, bot, store);
      if (!(result instanceof Promise)) return finish(request, result);
      return result.then(
        (value) => shares.charge(bot.owner, () => finish(request, value)),
        (error) => refuse(request, error),
      );
    } catch (error) {
      refuse(request, error);
    }
  }

  function forPeople(error: unknown): unknown {
    if (!(error instanceof ApiError)) return error;
    const kind = kindForPeople(error.kind);
    return kind === error.kind ? error : new ApiError(kind);
  }

  /** What the administrators' log shows as the target of a call. Tokens are masked. */
  function targetOf(request: ApiRequest, { endpoint, segments }: Match): string {
    const named = Object.values(segments);
    if (endpoint.target !== undefined) {
      const given = givenIn(request)[endpoint.target];
      if (typeof given === 'string') named.push(given);
    }
    const text = named.join(' ').replace(/[\u0000-\u001f\u007f]/g, '');
    // Cutting may leave half a surrogate pair. The round trip through a buffer replaces it.
    return Buffer.from(maskTokens(text).slice(0, limits.admin_target_length_max)).toString();
  }

  /** Records the call in the administrators' log: a change before it runs, its status before the answer. */
  async function callAsAdministrator(request: ApiRequest, match: Match): Promise<void> {
    const { endpoint } = match;
    const operator = await callers.operator(request);
    const action = `${endpoint.verb} ${endpoint.path}`;
    const address = adminClients.address(request);
    const call = { token: operator.name, action, target: targetOf(request, match), address };
    if (!adminClients.allows(request)) {
      admins.note(call, 403);
      return fail('address_not_allowed');
    }
    const end =
      endpoint.verb === 'GET' ? (status: number) => admins.note(call, status) : await admins.begin(call);
    const own = holdReply(request);
    let outcome: Outcome;
    try {
      await callAs(own.request, { ...match, user: null, administrator: operator.id });
      outcome = own.held() ?? notKept;
    } catch (error) {
      await end(error instanceof ApiError ? error.code : 500);
      throw error;
    }
    await end(outcome.status);
    request.reply(outcome.status, outcome.body, outcome.retryAfter);
  }

  /** Avoids a promise when nothing is awaited, as in `callBot`. */
  function callEndpoint(request: ApiRequest, match: Match): void | Promise<void> {
    const { endpoint, segments } = match;
    request.called = endpoint.path;
    if (endpoint.caller === 'admin') return callAsAdministrator(request, match);
    // Partners are not accounts. The signature of the body identifies them.
    const user = endpoint.caller === 'user' ? callers.person(request) : null;
    return user instanceof Promise
      ? user.then((found) => callAsInTurn(request, { endpoint, segments, user: found }))
      : callAsInTurn(request, { endpoint, segments, user });
  }

  function callAsInTurn(request: ApiRequest, call: EndpointCall): void | Promise<void> {
    return inTurn(request, accountOf(request, call), () => callAs(request, call));
  }

  const accountOf = (request: ApiRequest, { user }: EndpointCall) => user?.id ?? clientAddress(request);

  function callAs(request: ApiRequest, call: EndpointCall): void | Promise<void> {
    const { endpoint, user } = call;
    request.calledBy = user?.id ?? 0;
    if (endpoint.caller !== 'partner' && request.idempotencyKey !== '' && endpoint.verb !== 'GET')
      return callEndpointOnce(request, call);
    try {
      const result = runEndpoint(request, call, store);
      if (!(result instanceof Promise)) return finishEndpoint(request, result);
      return result.then(
        (value) => shares.charge(accountOf(request, call), () => finishEndpoint(request, value)),
        (error) => {
          throw forPeople(error);
        },
      );
    } catch (error) {
      throw forPeople(error);
    }
  }

  function finishEndpoint(request: ApiRequest, result: unknown): void {
    if (result === replied) onResult?.(request, result);
    else finish(request, result);
  }

  function runEndpoint(request: ApiRequest, call: EndpointCall, on: Store): unknown {
    const { endpoint, segments, user } = call;
    const { values, files: uploads } = endpoint.given
      ? { values: {}, files: noFiles }
      : endpoint.rawBody
        ? parseQuery(request)
        : parseParams(request);
    const params = parseWith(endpoint.params, Object.assign(values, segments));
    const onRevoked = (listener: () => void) =>
      user === null ? () => {} : callers.onRevoked(request, user, listener);
    const context = {
      user,
      store: on,
      files,
      uploads,
      downloads,
      request,
      onRevoked,
      leakKeys,
      push,
      operations,
    };
    const handle = () => endpoint.handler(context as never, params as never);
    const inTurn = user !== null && endpoint.verb !== 'GET' && !endpoint.inRedis;
    const run = inTurn ? () => changeTurns.run(user.id, handle) : handle;
    const counted = countPerson(on, endpoint, user, params);
    const bytes = endpoint.rawBody ? request.body.length : bytesOf(uploads);
    const kept = user === null || bytes === 0 ? run : () => on.uploads.take(user.id, bytes).then(run);
    return counted === undefined ? kept() : counted.then(kept);
  }

  /**
   * Runs a call with an `Idempotency-Key`. Keeps JSON replies that the handler sends itself; other replies release the
   * key.
   */
  async function callEndpointOnce(request: ApiRequest, call: EndpointCall): Promise<void> {
    const { endpoint, segments, user, administrator = 0 } = call;
    const caller =
      user === null
        ? ({ kind: 'admin', id: administrator } as const)
        : ({ kind: 'user', id: user.id } as const);
    const method = `${endpoint.verb} ${endpoint.path}`;
    const grows = endpoint.verb !== 'DELETE' && !endpoint.path.includes('token');
    const count = () => (user === null ? undefined : store.fairUse?.person(user.id, null, 1));
    const own = holdReply(request);
    let sent = false;
    const outcome = await answerOnce(
      { store, request, caller, method, segments, raw: endpoint.rawBody, grows, count },
      async (on) => {
        try {
          const result = await runEndpoint(own.request, call, on);
          if (result !== replied) return { status: 200, body: envelope(result) };
        } catch (error) {
          return refused(forPeople(error));
        }
        const held = own.held();
        sent = held === undefined;
        return held ?? notKept;
      },
    );
    if (!sent) request.reply(outcome.status, outcome.body, outcome.retryAfter);
  }

  /** Serves `/file/bot<token>/<file_path>` to any bot that knows the path. */
  async function callFile(request: ApiRequest): Promise<void> {
    const { token, name } = splitBotPath(request.path.slice('/file'.length));
    request.called = 'file';
    const bot = await botOf(request, token);
    request.calledBy = bot.id;
    if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
    await inTurn(request, bot.owner, async () => {
      await store.fairUse?.call(bot, null, 1);
      await downloads.send(request, fileAtPath(files, name), bot.id);
    });
  }

  function matchOf(request: ApiRequest): Match {
    const match = find(request.method === 'HEAD' ? 'GET' : request.method, request.path);
    if (match === null) return fail('not_found');
    return match === 'other_verb' ? fail('method_not_allowed') : match;
  }

  const callApplication: RequestHandler = (request) => callEndpoint(request, matchOf(request));

  const count = store.fairUse?.request;

  function handlerOf(path: string): RequestHandler | undefined {
    if (path.startsWith('/bot')) return callBot;
    if (path.startsWith('/file/bot')) return callFile;
    return path.startsWith('/api/') ? callApplication : undefined;
  }

  function handle(request: ApiRequest): void | Promise<void> {
    const { path } = request;
    const handler = handlerOf(path);
    if (handler !== undefined) {
      // A request with a body was already counted when it was admitted.
      const counted = request.body.length > 0 ? undefined : count?.(clientAddress(request));
      return counted === undefined ? handler(request) : counted.then(() => handler(request));
    }
    const answer = Object.hasOwn(own, path) ? own[path] : undefined;
    if (answer === undefined) return inTurn(request, clientAddress(request), unknownPath);
    request.called = path;
    return answer(request);
  }

  function admitKnown(request: ApiRequest): boolean | Promise<boolean> {
    const { path } = request;
    if (path.startsWith('/api/')) {
      const { endpoint } = matchOf(request);
      request.called = endpoint.path;
      if (endpoint.caller === 'partner') return leakKeys === null ? fail('not_found') : false;
      if (endpoint.caller === 'admin') {
        const operator = callers.operator(request);
        return operator instanceof Promise ? operator.then(() => true) : true;
      }
      const user = callers.person(request);
      return user instanceof Promise ? user.then(() => true) : true;
    }
    if (path.startsWith('/bot')) checkVerb(request);
    const bot = botOf(
      request,
      splitBotPath(path.startsWith('/file') ? path.slice('/file'.length) : path).token,
    );
    return bot instanceof Promise ? bot.then(() => true) : true;
  }

  function admit(request: ApiRequest): boolean | Promise<boolean> {
    const { path } = request;
    if (handlerOf(path) === undefined) return Object.hasOwn(own, path) ? false : fail('not_found');
    const counted = count?.(clientAddress(request));
    return counted === undefined ? admitKnown(request) : counted.then(() => admitKnown(request));
  }

  return { handle, admit };
}
