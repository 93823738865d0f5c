/** Runs bot methods called over HTTP or in a webhook receiver's answer to a delivery (behaviour §10). */
import { isUtf8 } from 'node:buffer';
import { ApiError } from '../errors.js';
import type { Files } from '../files/files.js';
import { limits } from '../limits.js';
import { parseJson } from '../rules/json.js';
import { isBlocked } from '../store/core/control.js';
import { directChat, sharedChat } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import type { Delivery } from '../store/webhooks/deliveries.js';
import { namesChat, withChatIds } from './chat_names.js';
import { changesState, type Method, type MethodContext, parseWith, type Receivers } from './method.js';
import { methods } from './methods.gen.js';
import { noFiles, type Params } from './params.js';
import { createTurns } from './turns.js';

const byName = new Map(methods.map((method) => [method.name, method]));
const byLowerName = new Map(methods.map((method) => [method.name.toLowerCase(), method]));

/** Method names ignore case (behaviour §1). Nearly all calls use the exact name, so that map is tried first. */
export const methodNamed = (name: string): Method | undefined =>
  byName.get(name) ?? byLowerName.get(name.toLowerCase());

/** Runs a method that takes parameters. Throws or rejects with an `ApiError` when the call is refused. */
export function runMethod(
  method: Method & { readonly params: NonNullable<Method['params']> },
  context: MethodContext,
  values: Params,
): unknown {
  const params = parseWith(method.params, values);
  const run = (given: unknown) =>
    fairly(method, context, given, () => method.handler(context, given as never));
  if (!namesChat(method, params)) return run(params);
  return withChatIds(method, context.store, params).then(run);
}

/** How many messages a call makes: the length of its longest list of ids or media, else 1. */
export function messagesIn(params: unknown): number {
  const { message_ids, media } = (params ?? {}) as {
    readonly message_ids?: unknown;
    readonly media?: unknown;
  };
  return [message_ids, media].reduce<number>(
    (most, list) => (Array.isArray(list) ? Math.max(most, list.length) : most),
    1,
  );
}

/**
 * Settings changes lock the bot's row. Without a bound, parallel changes by one owner would occupy every Postgres
 * connection while they wait for each other.
 */
const settingsTurns = createTurns(limits.settings_calls_at_once, limits.settings_calls_waiting_max);

/** How many calls this call counts as. A commit in Postgres costs as much as many messages. */
function weightOf(method: Method, params: unknown): number {
  if (method.effect === 'configure') return limits.settings_call_weight;
  return method.effect === 'grow' ? messagesIn(params) : 1;
}

/**
 * Runs a call after counting it against the rate limits (behaviour §14), if those are on. Polls have a counter of their
 * own: a bot over its limit still gets its updates.
 */
export function fairly(
  method: Method,
  { bot, store }: MethodContext,
  params: unknown,
  work: () => unknown,
): unknown {
  const run = method.effect === 'configure' ? () => settingsTurns.run(bot.owner, work) : work;
  const { fairUse } = store;
  if (fairUse === undefined) return run();
  if (method.polls) {
    const counted = fairUse.poll(bot);
    return counted === undefined ? run() : counted.then(run);
  }
  const [chatParam] = method.chatParams;
  const chat = chatParam === undefined ? undefined : (params as Params)[chatParam];
  const changed = typeof chat === 'number' && chat !== 0 && changesState(method) ? chat : 0;
  const ref = changed === 0 ? null : changed > 0 ? directChat(bot.id, changed) : sharedChat(changed);
  const counted = fairUse.call(bot, ref, weightOf(method, params));
  return counted === undefined ? run() : counted.then(run);
}

const isCall = (value: unknown): value is Params & { readonly method: string } =>
  typeof value === 'object' && value !== null && typeof (value as Params).method === 'string';

/** Returns the calls in an answer: an object with a `method`, or an array of them. Empty for any other body. */
function callsIn(body: Buffer): readonly unknown[] {
  const begin = body.find((byte) => byte > 0x20);
  if ((begin !== 0x7b && begin !== 0x5b) || !isUtf8(body)) return [];
  let value: unknown;
  try {
    value = parseJson(body.toString('utf8'));
  } catch {
    return [];
  }
  if (Array.isArray(value)) return value;
  return isCall(value) ? [value] : [];
}

export interface AnswerCalls {
  /**
   * Runs the method calls in an answer to a delivery, in order, as that bot. Returns undefined when there are none.
   * Idempotent per delivery. Calls in answers to updates caused by a bot are skipped, because two bots could answer
   * each other forever. Counts refusals and reports unexpected errors. Never rejects.
   */
  run(bot: number, delivery: Pick<Delivery, 'id' | 'entry'>, body: Buffer): Promise<void> | undefined;
  /** `skipped` counts calls in answers to updates caused by a bot. */
  readonly stats: { readonly done: number; readonly failed: number; readonly skipped: number };
}

export interface AnswerCallsOptions {
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  onError(error: unknown): void;
}

export function createAnswerCalls({ store, files, receivers, onError }: AnswerCallsOptions): AnswerCalls {
  const stats = { done: 0, failed: 0, skipped: 0 };

  /** False when the call is not allowed in an answer, or the bot may not act now. */
  async function runOne(id: number, seed: string, call: unknown): Promise<boolean> {
    const method = isCall(call) ? methodNamed(call.method) : undefined;
    if (!method || !changesState(method) || method.inAnswers === false) return false;
    const bot = await store.auth.botById(id);
    // A blocked bot may have a webhook set by whoever stole its token. A suspended bot may get answers to earlier
    // updates.
    if (bot === null || isBlocked(bot) || bot.state !== undefined || method.params === null) return false;
    const context = { bot, store: store.under(seed, true, 'answer'), files, receivers, uploads: noFiles };
    await runMethod(
      { ...method, params: method.params },
      { ...context, onGone: () => undefined },
      call as Params,
    );
    return true;
  }

  async function runAll(bot: number, delivery: string, calls: readonly unknown[]): Promise<void> {
    for (const [i, call] of calls.slice(0, limits.webhook_answer_calls_max).entries()) {
      try {
        const done = await runOne(bot, `${bot}.${delivery}.${i}`, call);
        stats[done ? 'done' : 'failed']++;
      } catch (error) {
        stats.failed++;
        if (!(error instanceof ApiError)) onError(error);
      }
    }
    stats.failed += Math.max(0, calls.length - limits.webhook_answer_calls_max);
  }

  return {
    run(bot, delivery, body) {
      const calls = callsIn(body);
      if (calls.length === 0) return undefined;
      if (delivery.entry.from.bot !== 1) return runAll(bot, delivery.id, calls);
      stats.skipped += calls.length;
      return undefined;
    },
    stats,
  };
}
