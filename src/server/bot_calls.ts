/** Runs bot methods. A bot calls them over HTTP, or in its webhook receiver's answer to a delivery (behaviour §10). */
import { isUtf8 } from 'node:buffer';
import { ApiError, fail } from '../errors.js';
import type { Files } from '../files/files.js';
import { parseJson } from '../rules/json.js';
import { mayAct } from '../store/core/control.js';
import { directChat, sharedChat } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import type { Delivery } from '../store/webhooks/deliveries.js';
import { namesChat, withChatIds } from './chat_names.js';
import { callLimits as limits } from './limits.js';
import { changesState, type Method, type MethodContext, parseWith, type Receivers } from './method.js';
import { noFiles, type Params } from './params.js';
import { createTurns } from './turns.js';

/** Finds methods by name, ignoring case (behaviour §1). Looks for the exact name first, which nearly all calls use. */
export function createMethodFinder(methods: readonly Method[]): (name: string) => Method | undefined {
  const byName = new Map(methods.map((method) => [method.name, method]));
  const byLowerName = new Map(methods.map((method) => [method.name.toLowerCase(), method]));
  return (name) => byName.get(name) ?? byLowerName.get(name.toLowerCase());
}

/**
 * Parameters of the Bot API for features that Petrel lacks. They are refused. If they were ignored, a message would go
 * to the wrong place or lack what the bot asked for.
 */
const unsupportedParams = [
  'business_connection_id',
  'cover',
  'direct_messages_topic_id',
  'ephemeral_message_parameters',
  'ip_address',
  'message_effect_id',
  'message_thread_id',
  'rich_message',
  'suggested_post_parameters',
] as const;

/** Throws `parameter_unsupported`. Empty values and 0 count as absent, as in the reference server. */
function refuseUnsupported(values: Params): void {
  for (const name of unsupportedParams) if (isGiven(values[name])) fail('parameter_unsupported', { name });
}

const isGiven = (value: unknown): boolean => Boolean(value) && value !== '0' && value !== 'null';

type WithParams = Method & { readonly params: NonNullable<Method['params']> };

/**
 * Returns the method itself, or the part of it that handles calls with `inline_message_id`. Throws
 * `parameter_unsupported` for such a call if the method does not change inline messages.
 */
function addressed(method: WithParams, values: Params): WithParams {
  const { ofInline } = method;
  if (!isGiven(values.inline_message_id)) return method;
  if (ofInline === undefined) return fail('parameter_unsupported', { name: 'inline_message_id' });
  return { ...method, ...ofInline, chatParams: [] };
}

export function runMethod(named: WithParams, context: MethodContext, values: Params): unknown {
  refuseUnsupported(values);
  const method = addressed(named, values);
  const params = parseWith(method.params, values);
  const run = (given: unknown) =>
    fairly(method, context, given, () => method.handler(context, given as never));
  if (!namesChat(method, params)) return run(params);
  return withChatIds(method, context.store, params).then(run);
}

/** Returns how many messages a call may send or change: the length of its longest list of ids or media, or 1. */
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
 * Limits how many changes of bot settings one owner makes at the same time. Each change locks the bot's row in
 * Postgres. Without the limit, changes that wait for this lock could occupy every Postgres connection.
 */
const settingsTurns = createTurns(limits.settings_calls_at_once, limits.settings_calls_waiting_max);

/**
 * Returns how many calls this call counts as. A commit in Postgres costs as much as many messages, so some calls count
 * as several.
 */
function weightOf(method: Method, params: unknown): number {
  if (method.effect === 'configure') return limits.settings_call_weight;
  return method.effect === 'grow' ? messagesIn(params) : 1;
}

/**
 * Runs a call. If rate limits are on, counts the call against them (behaviour §14). Polls are counted separately, so
 * that a bot over its limit still gets its updates.
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

/**
 * Returns the method calls in a webhook receiver's answer. The answer is an object with `method`, or an array of such
 * objects. Any other answer contains no calls.
 */
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

export type AnswerCalls = ReturnType<typeof createAnswerCalls>;

export interface AnswerCallsOptions {
  readonly methods: readonly Method[];
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  onError(error: unknown): void;
}

export function createAnswerCalls({ methods, store, files, receivers, onError }: AnswerCallsOptions) {
  const methodNamed = createMethodFinder(methods);
  /** `skipped` counts calls in answers to updates that a bot had caused. Such calls are not run. */
  const stats = { done: 0, failed: 0, skipped: 0 };

  /** Runs one call. Returns false if the method is not allowed in an answer or if the bot may not act now. */
  async function runOne(id: number, seed: string, call: unknown): Promise<boolean> {
    const method = isCall(call) ? methodNamed(call.method) : undefined;
    if (!method || !changesState(method) || method.inAnswers === false) return false;
    const bot = await store.auth.botById(id);
    // A blocked bot is refused, because whoever stole its token may have set the webhook. A suspended bot is refused,
    // because its receiver may still answer earlier updates.
    if (!mayAct(bot) || method.params === null) return false;
    const context = { bot, store: store.under(seed, true, 'answer'), files, receivers, uploads: noFiles };
    await runMethod(
      { ...method, params: method.params },
      { ...context, onGone: () => undefined, request: null },
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
    /**
     * Runs the method calls in a receiver's answer to a delivery, in order, as the bot that got the delivery. Returns
     * undefined if there are none. If the delivery is repeated, the calls are not. Skips calls in answers to updates
     * that a bot caused, because two bots could answer each other forever. Counts refusals and reports unexpected
     * errors. Never rejects.
     */
    run(bot: number, delivery: Pick<Delivery, 'id' | 'entry'>, body: Buffer): Promise<void> | undefined {
      const calls = callsIn(body);
      if (calls.length === 0) return undefined;
      if (delivery.entry.from.bot !== 1) return runAll(bot, delivery.id, calls);
      stats.skipped += calls.length;
      return undefined;
    },
    stats: stats as Readonly<typeof stats>,
  };
}
