/** Handles requests to the application API by people, administrators, partners and anyone. */
import { chatOfUser } from '../actions/compose.js';
import { ApiError, fail } from '../errors.js';
import { maskTokens } from '../rules/token.js';
import type { User } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { messagesIn } from './bot_calls.js';
import { bytesOf, type CallContext, envelope, finish, inTurn, refused, reply } from './call_context.js';
import { durably, isDurable } from './durable.js';
import { type Endpoint, kindForPeople, replied, type SignIn } from './endpoint.js';
import { answerOnce, holdReply, type Outcome } from './idempotency.js';
import { callLimits as limits } from './limits.js';
import { parseWith } from './method.js';
import { noFiles, parseParams, parseQuery } from './params.js';
import type { ApiRequest } from './request.js';
import type { Match } from './router.js';
import { createTurns } from './turns.js';

interface EndpointCall extends Match {
  readonly user: User | null;
  readonly administrator?: number;
}

/**
 * Limits how many changes one person makes at the same time. Without the limit, changes that wait for the same rows
 * could occupy all Postgres connections.
 */
const changeTurns = createTurns(limits.settings_calls_at_once, limits.settings_calls_waiting_max);

const isJson = ({ contentType }: ApiRequest): boolean => /^application\/json\s*(?:;|$)/i.test(contentType);

const noSignIn: SignIn = { isOpen: false, provider: null, isSecure: false };

/** Stands for a reply that is not JSON and therefore is not saved. Its status 500 releases the idempotency key. */
const notKept: Outcome = { status: 500, body: '' };

function matchOf({ findEndpoint }: CallContext, { method, path }: ApiRequest): Match {
  const match = findEndpoint(method === 'HEAD' ? 'GET' : method, path);
  if (match === null) return fail('not_found');
  return match === 'other_verb' ? fail('method_not_allowed') : match;
}

export function admitEndpoint(context: CallContext, request: ApiRequest): boolean | Promise<boolean> {
  const { callers, leakKeys } = context;
  const { endpoint } = matchOf(context, request);
  request.called = endpoint.path;
  if (endpoint.caller === 'partner') return leakKeys ? false : fail('not_found');
  if (endpoint.caller === 'anyone') return isJson(request) ? false : fail('bad_request');
  const caller = endpoint.caller === 'admin' ? callers.operator(request) : callers.person(request);
  return caller instanceof Promise ? caller.then(() => true) : true;
}

/** Runs a call to the application API. If there is nothing to wait for, creates no promise, like `callBot`. */
export function callEndpoint(context: CallContext, request: ApiRequest): void | Promise<void> {
  const match = matchOf(context, request);
  const { endpoint } = match;
  request.called = endpoint.path;
  if (endpoint.caller === 'admin') return callAsAdministrator(context, request, match);
  // Partners and `anyone` have no account. A partner is identified by the signature of the body.
  const user = endpoint.caller === 'user' ? context.callers.person(request) : null;
  return user instanceof Promise
    ? user.then((found) => callInTurn(context, request, { user: found, ...match }))
    : callInTurn(context, request, { user, ...match });
}

/**
 * Returns the parameters of a call, or an empty object if they cannot be parsed. The parse error is reported later,
 * when the call itself runs.
 */
function givenIn(request: ApiRequest): Readonly<Record<string, unknown>> {
  try {
    return parseParams(request).values;
  } catch {
    return {};
  }
}

function targetOf(request: ApiRequest, { endpoint, segments }: Match): string {
  const named = Object.values(segments);
  if (endpoint.target !== undefined) {
    const given = givenIn(request)[endpoint.target];
    if (typeof given === 'string') named.push(given);
  }
  const text = named.join(' ').replace(/[\u0000-\u001f\u007f]/g, '');
  // If `slice` cuts a surrogate pair in half, the conversion to a buffer and back replaces the remaining half.
  return Buffer.from(maskTokens(text).slice(0, limits.admin_target_length_max)).toString();
}

/**
 * Records an administrator's call in the log. A change is recorded before it runs, and its status before the answer is
 * sent.
 */
async function callAsAdministrator(context: CallContext, request: ApiRequest, match: Match): Promise<void> {
  const { callers, adminClients, store } = context;
  const { verb, path } = match.endpoint;
  const operator = await callers.operator(request);
  const address = adminClients.address(request);
  const call = { token: operator.name, action: `${verb} ${path}`, target: targetOf(request, match), address };
  if (!adminClients.allows(request)) {
    store.admins.note(call, 403);
    return fail('address_not_allowed');
  }
  const end =
    verb === 'GET' ? (status: number) => store.admins.note(call, status) : await store.admins.begin(call);
  const own = holdReply(request);
  let outcome: Outcome;
  try {
    await callAs(context, own.request, { ...match, user: null, administrator: operator.id });
    outcome = own.held() ?? notKept;
  } catch (error) {
    await end(error instanceof ApiError ? error.code : 500);
    throw error;
  }
  await end(outcome.status);
  reply(request, outcome);
}

const accountOf = ({ clientAddress }: CallContext, request: ApiRequest, { user }: EndpointCall) =>
  user?.id ?? clientAddress(request);

function callInTurn(context: CallContext, request: ApiRequest, call: EndpointCall): void | Promise<void> {
  return inTurn(context, request, accountOf(context, request, call), () => callAs(context, request, call));
}

function forPeople(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const kind = kindForPeople(error.kind);
  return kind === error.kind ? error : new ApiError(kind);
}

function callAs(context: CallContext, request: ApiRequest, call: EndpointCall): void | Promise<void> {
  const { endpoint, user } = call;
  request.calledBy = user?.id ?? 0;
  if ((endpoint.caller === 'user' || endpoint.caller === 'admin') && endpoint.verb !== 'GET') {
    const isSafe = isDurable(context, request);
    if (request.idempotencyKey !== '') return callOnce(context, request, call, isSafe);
    if (isSafe) return callDurably(context, request, call);
  }
  try {
    const result = run(context, request, call, context.store);
    if (!(result instanceof Promise)) return finish(context, request, result);
    const account = accountOf(context, request, call);
    return result.then(
      (value) => context.shares.charge(account, () => finish(context, request, value)),
      (error) => {
        throw forPeople(error);
      },
    );
  } catch (error) {
    throw forPeople(error);
  }
}

/**
 * Counts a call against the calling person. A change in a chat also counts against the chat (behaviour §14). Throws
 * `too_many_requests`.
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

function parametersOf(request: ApiRequest, { given, rawBody }: Endpoint): ReturnType<typeof parseParams> {
  if (given) return { values: {}, files: noFiles };
  return rawBody ? parseQuery(request) : parseParams(request);
}

function run(context: CallContext, request: ApiRequest, call: EndpointCall, store: Store): unknown {
  const { callers, downloads, files } = context;
  const { leakKeys = null, push = null, operations = null, pings = null, signIn = noSignIn } = context;
  const { linkPreviews = null } = context;
  const { endpoint, segments, user } = call;
  if (endpoint.caller === 'anyone' && endpoint.verb !== 'GET' && !isJson(request)) fail('bad_request');
  const { values, files: uploads } = parametersOf(request, endpoint);
  const params = parseWith(endpoint.params, Object.assign(values, segments));
  const onRevoked = (listener: () => void) =>
    user === null ? () => {} : callers.onRevoked(request, user, listener);
  const suggested = context.suggested ?? [];
  const services = { leakKeys, push, operations, pings, linkPreviews, signIn, suggested };
  const address = endpoint.caller === 'anyone' ? context.clientAddress(request) : '';
  const given = { user, store, files, uploads, downloads, request, address, onRevoked, ...services };
  const handle = () => endpoint.handler(given as never, params as never);
  const takesTurns = user !== null && endpoint.verb !== 'GET' && !endpoint.inRedis;
  const inOrder = takesTurns ? () => changeTurns.run(user.id, handle) : handle;
  const bytes = endpoint.rawBody ? request.body.length : bytesOf(uploads);
  const kept =
    user === null || bytes === 0 ? inOrder : () => store.uploads.take(user.id, bytes).then(inOrder);
  const counted = countPerson(store, endpoint, user, params);
  return counted === undefined ? kept() : counted.then(kept);
}

/**
 * Holds back a JSON reply that a handler sends itself, so that the reply can be saved first. `answer` runs the call and
 * returns its answer, or rejects with its error. `send` sends an outcome, unless the handler has already sent a reply
 * that is not JSON.
 */
function heldAnswers(context: CallContext, request: ApiRequest, call: EndpointCall) {
  const own = holdReply(request);
  let sent = false;
  return {
    async answer(on: Store): Promise<Outcome> {
      const result = await run(context, own.request, call, on);
      if (result !== replied) return { status: 200, body: envelope(result) };
      const held = own.held();
      sent = held === undefined;
      return held ?? notKept;
    },
    send: (outcome: Outcome) => sent || reply(request, outcome),
  };
}

async function callDurably(context: CallContext, request: ApiRequest, call: EndpointCall): Promise<void> {
  const { answer, send } = heldAnswers(context, request, call);
  const account = accountOf(context, request, call);
  const outcome = await durably(context.store, request, account, answer).catch((error) => {
    throw forPeople(error);
  });
  send(outcome);
}

/**
 * Runs a call under an idempotency key. If the reply is JSON, saves it under the key, even if the handler sends the
 * reply itself. If the reply is not JSON, releases the key.
 */
async function callOnce(
  context: CallContext,
  request: ApiRequest,
  call: EndpointCall,
  isSafe: boolean,
): Promise<void> {
  const { store } = context;
  const { endpoint, segments, user, administrator = 0 } = call;
  const caller =
    user === null
      ? ({ kind: 'admin', id: administrator } as const)
      : ({ kind: 'user', id: user.id } as const);
  const method = `${endpoint.verb} ${endpoint.path}`;
  const grows = endpoint.verb !== 'DELETE' && !endpoint.path.includes('token');
  const count = () => (user === null ? undefined : store.fairUse?.person(user.id, null, 1));
  const { answer, send } = heldAnswers(context, request, call);
  const account = accountOf(context, request, call);
  const attempt = (on: Store) =>
    (isSafe ? durably(on, request, account, answer) : answer(on)).catch((error) => refused(forPeople(error)));
  const keyed = { store, request, caller, method, segments, raw: endpoint.rawBody, grows, count };
  send(await answerOnce(keyed, attempt));
}
