/** Calls of bot methods, whichever way they come: over HTTP, or in a receiver's answer to a delivery (behaviour §10). */
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

/** Names ignore case (behaviour §1), though nearly all come as they are spelled here. */
export const methodNamed = (name: string): Method | undefined =>
  byName.get(name) ?? byLowerName.get(name.toLowerCase());

/** Runs a method that takes parameters. Throws or rejects with its refusal. */
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

/** How many messages a call makes: those that it names, or one. */
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
 * Changes of a bot's settings lock its row. Those of one owner that come at once would hold every connection to Postgres while they
 * wait for each other.
 */
const settingsTurns = createTurns(limits.settings_calls_at_once, limits.settings_calls_waiting_max);

/** As how many calls one counts: each commit in Postgres costs as much as many messages. */
function weightOf(method: Method, params: unknown): number {
  if (method.effect === 'configure') return limits.settings_call_weight;
  return method.effect === 'grow' ? messagesIn(params) : 1;
}

/** Runs a call that counts, where calls are counted (behaviour §14). Polls count apart, so that a bot which has made too many
 * calls still gets its updates. */
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

/** What an answer asks for: an object with a `method`, or an array of them; nothing for any other body. */
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
   * Runs what an answer asks for as that bot's calls, in order; undefined when it asks for nothing. `delivery` is what was
   * answered: when it is answered again, nothing is done twice. Of an update that a bot caused the calls are not run: two bots
   * would answer each other for ever. Refusals are counted, what fails unexpectedly is told; never rejects.
   */
  run(bot: number, delivery: Pick<Delivery, 'id' | 'entry'>, body: Buffer): Promise<void> | undefined;
  /** `skipped`: of updates that a bot caused. */
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

  /** False when there is no such call. */
  async function runOne(id: number, seed: string, call: unknown): Promise<boolean> {
    const method = isCall(call) ? methodNamed(call.method) : undefined;
    if (!method || !changesState(method) || method.inAnswers === false) return false;
    const bot = await store.auth.botById(id);
    // Who has a token that leaked may have set the webhook; what a bot was sent before it was suspended may be answered later.
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
