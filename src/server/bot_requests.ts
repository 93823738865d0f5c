/** Handles bots' HTTP requests: method calls and file downloads. */
import { fail } from '../errors.js';
import { fileAtPath } from '../files/file_path.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { fairly, runMethod } from './bot_calls.js';
import { bytesOf, type CallContext, envelope, finish, inTurn, refused, reply } from './call_context.js';
import { durably, isDurable } from './durable.js';
import { answerOnce, type Outcome } from './idempotency.js';
import { changesState, type Method } from './method.js';
import { noFiles, parseParams } from './params.js';
import type { ApiRequest } from './request.js';

/** Splits the path of a bot's request. Clients may write the colon in the token as %3A. */
function splitBotPath(path: string): { readonly token: string; readonly name: string } {
  const slash = path.indexOf('/', 4);
  const raw = slash < 0 ? path.slice(4) : path.slice(4, slash);
  const token = raw.includes('%') ? raw.replace(/%3a/i, ':') : raw;
  return { token, name: slash < 0 ? '' : path.slice(slash + 1) };
}

const botPathOf = ({ path }: ApiRequest) => path.slice('/file'.length);

function checkVerb({ method }: ApiRequest): void {
  if (method !== 'GET' && method !== 'POST') fail('method_not_allowed');
}

function admitToken({ callers }: CallContext, request: ApiRequest, path: string): boolean | Promise<boolean> {
  const bot = callers.bot(request, splitBotPath(path).token);
  return bot instanceof Promise ? bot.then(() => true) : true;
}

export function admitBot(context: CallContext, request: ApiRequest): boolean | Promise<boolean> {
  checkVerb(request);
  return admitToken(context, request, request.path);
}

export const admitFile = (context: CallContext, request: ApiRequest) =>
  admitToken(context, request, botPathOf(request));

/**
 * Runs a bot's call. If the bot's record is in memory, no promise is created, and the answer is sent in the same turn
 * of the event loop.
 */
export function callBot(context: CallContext, request: ApiRequest): void | Promise<void> {
  checkVerb(request);
  const { token, name } = splitBotPath(request.path);
  const bot = context.callers.bot(request, token);
  return bot instanceof Promise
    ? bot.then((found) => callInTurn(context, request, found, name))
    : callInTurn(context, request, bot, name);
}

function callInTurn(context: CallContext, request: ApiRequest, bot: Bot, name: string): void | Promise<void> {
  return inTurn(context, request, bot.owner, () => callMethod(context, request, bot, name));
}

function callMethod(context: CallContext, request: ApiRequest, bot: Bot, name: string): void | Promise<void> {
  const { methodNamed, shares, store } = context;
  request.calledBy = bot.id;
  const method = methodNamed(name);
  if (method === undefined) return fail(name.includes('/') ? 'not_found' : 'method_not_found');
  request.called = method.name;
  if (changesState(method)) {
    const isSafe = isDurable(context, request);
    if (request.idempotencyKey !== '') return callOnce(context, request, bot, method, isSafe);
    if (isSafe) return callDurably(context, request, bot, method);
  }
  try {
    const result = run(context, request, method, bot, store);
    if (!(result instanceof Promise)) return finish(context, request, result);
    return result.then(
      (value) => shares.charge(bot.owner, () => finish(context, request, value)),
      (error) => reply(request, refused(error)),
    );
  } catch (error) {
    reply(request, refused(error));
  }
}

function run(context: CallContext, request: ApiRequest, method: Method, bot: Bot, store: Store): unknown {
  const { files, receivers } = context;
  const onGone = (listener: () => void) => request.onAbort(listener);
  if (method.params === null) {
    const given = { bot, store, files, receivers, uploads: noFiles, onGone, request };
    return fairly(method, given, null, () => method.handler(given, null as never));
  }
  const { values, files: uploads } = parseParams(request);
  if (method.coalesces && request.coalesce === '1') values.coalesce ??= 'true';
  if (method.consumes && request.consumer !== '') {
    values.consumer ??= request.consumer;
    if (request.consumerTimeout !== '') values.consumer_timeout ??= request.consumerTimeout;
  }
  const given = { bot, store, files, receivers, uploads, onGone, request };
  const called = () => runMethod(method as Parameters<typeof runMethod>[0], given, values);
  return uploads.size === 0 ? called() : store.uploads.take(bot.owner, bytesOf(uploads)).then(called);
}

/** Runs a call and returns its answer. Rejects with the call's error. */
const answerOf = async (
  context: CallContext,
  request: ApiRequest,
  bot: Bot,
  method: Method,
  on: Store,
): Promise<Outcome> => ({ status: 200, body: envelope(await run(context, request, method, bot, on)) });

async function callDurably(
  context: CallContext,
  request: ApiRequest,
  bot: Bot,
  method: Method,
): Promise<void> {
  const answer = (on: Store) => answerOf(context, request, bot, method, on);
  reply(request, await durably(context.store, request, bot.owner, answer).catch(refused));
}

async function callOnce(
  context: CallContext,
  request: ApiRequest,
  bot: Bot,
  method: Method,
  isSafe: boolean,
): Promise<void> {
  const { store } = context;
  const caller = { kind: 'bot', id: bot.id } as const;
  const count = () => store.fairUse?.call(bot, null, 1);
  const keyed = { store, request, caller, method: method.name, grows: method.effect === 'grow', count };
  const answer = (on: Store) => answerOf(context, request, bot, method, on);
  const attempt = (on: Store) =>
    (isSafe ? durably(on, request, bot.owner, answer) : answer(on)).catch(refused);
  reply(request, await answerOnce(keyed, attempt).catch(refused));
}

export async function callFile(context: CallContext, request: ApiRequest): Promise<void> {
  const { callers, downloads, files, store } = context;
  const { token, name } = splitBotPath(botPathOf(request));
  request.called = 'file';
  const bot = await callers.bot(request, token);
  request.calledBy = bot.id;
  if (request.method !== 'GET' && request.method !== 'HEAD') fail('method_not_allowed');
  await inTurn(context, request, bot.owner, async () => {
    await store.fairUse?.call(bot, null, 1);
    await downloads.send(request, fileAtPath(files, name), bot.id);
  });
}
