/** Stores inline queries and their answers (decision 0054). Both are kept only in Redis, for a short time. */
import { createHash } from 'node:crypto';
import { fail } from '../../errors.js';
import { loadWriteAccess } from '../../postgres/bots/write_access.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import { takeCalls } from '../core/buckets.js';
import {
  type Content,
  type InlineKeyboard,
  type Profile,
  pack,
  packContent,
  packMarkup,
  unpack,
} from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { InlineChoice, InlineQuestion, Queues } from '../updates/queues.js';
import type { InlineIds } from './inline_ids.js';

export type { InlineQuestion };

/** The message that a person sends by choosing a result. */
export interface InlineMessage {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
}

/** The part of an answer that people see, in the wire format. */
export interface InlineList {
  readonly results: ReadonlyArray<Readonly<Record<string, unknown>>>;
  readonly next_offset?: string;
  readonly button?: Readonly<Record<string, unknown>>;
}

export interface InlineAnswer {
  readonly list: InlineList;
  /** Maps the id of each result to its message. */
  readonly messages: ReadonlyMap<string, InlineMessage>;
  readonly cacheSeconds: number;
  readonly personal: boolean;
}

/** The answer to a query in the form in which a person sees it. */
export interface ShownAnswer {
  /** The id of the answer. It is valid only for this person. */
  readonly id: string;
  readonly list: InlineList;
}

/**
 * A query id ends with the query's partition in this many digits, so a front can find the partition from the id alone.
 */
const partitionDigits = 3;

const digestOf = (question: InlineQuestion, user: number): string =>
  createHash('sha256')
    .update(JSON.stringify([question.query, question.offset, question.chat_type, user]))
    .digest('base64url');

/** Returns two digests of a query: one for an answer to this person only, and one for an answer to everybody. */
const digestsOf = (question: InlineQuestion, user: number) =>
  [digestOf(question, user), digestOf(question, 0)] as const;

interface Parts {
  readonly queues: Queues;
  readonly access: WriteAccessCopies;
  readonly forwarder: Forwarder;
  readonly inlineIds: InlineIds;
}

export class InlineQueries {
  readonly #context: StoreContext;
  readonly #parts: Parts;

  constructor(context: StoreContext, parts: Parts) {
    this.#context = context;
    this.#parts = parts;
  }

  /**
   * Returns the bot's cached answer to a person's query, or null if there is none. Counts the query against the person.
   * Errors: `cant_write_to_bot`, `bot_not_found`, `too_many_requests`.
   */
  async cached(bot: number, user: number, question: InlineQuestion): Promise<ShownAnswer | null> {
    const { scripts, keys } = this.#context;
    const { inline_queries_per_person_max: calls, inline_query_per_person_ms: ms } = limits;
    await takeCalls(this.#context, 'inline_person', user, { calls, intervalUs: ms * 1_000 });
    const partition = keys.partitions.of(bot);
    const at = {
      ...{ meta: keys.meta(partition), state: keys.queueState(bot) },
      ...{ cache: keys.inlineCache(bot), answer: keys.inlineAnswers(partition) },
    };
    let checked = '';
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const args = { checked, digests: digestsOf(question, user) };
      const found = await scripts.call('inline/find', partition, at, args);
      if (found.status === 'ok') return found.id === '' ? null : this.#shown(found.id, user, found.list);
      checked = await this.#checked(bot, user);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Sends a query to a bot and returns the query's id. Errors: `cant_write_to_bot`, `bot_not_inline`, `bot_not_found`,
   * `inline_unanswered` if too many of the bot's updates are pending, `too_many_requests`.
   */
  async ask(bot: number, user: Profile, question: InlineQuestion): Promise<string> {
    const { scripts, keys, requestId } = this.#context;
    const { inline_queries_per_bot_max: calls, inline_query_per_bot_ms: ms } = limits;
    await takeCalls(this.#context, 'inline_bot', bot, { calls, intervalUs: ms * 1_000 });
    const partition = keys.partitions.of(bot);
    const at = {
      request: keys.request(partition, requestId()),
      query: keys.inlineQueries(partition),
      ...this.#queueKeys(bot),
    };
    const digits = String(partition).padStart(partitionDigits, '0');
    const given = [String(bot), String(user.id), question.query, ...digestsOf(question, user.id), digits];
    let checked = '';
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const args = { ask: pack([...given, checked]), from: pack(user), extra: pack(question) };
      const result = await scripts.call('inline/ask', partition, at, args);
      switch (result.status) {
        case 'ok':
          this.#parts.forwarder.follow(bot, result);
          return result.id;
        case 'queue_missing':
          if (!(await this.#parts.queues.open(bot))) fail('bot_not_found');
          break;
        case 'access_missing':
          if (!(await this.#parts.access.fill({ id: bot, user: 0 }, result.incarnation)))
            fail('bot_not_found');
          break;
        case 'unchecked':
          checked = await this.#checked(bot, user.id);
          break;
        case 'behind':
          return fail('inline_unanswered');
        case 'not_asked':
          return fail('bot_not_inline');
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Stores a bot's answer to a query. Errors: `query_too_old`, `inline_answer_too_big`, `entities_too_long`,
   * `keyboard_too_large`.
   */
  async answer(bot: number, id: string, { list, messages, cacheSeconds, personal }: InlineAnswer) {
    const { scripts, keys, requestId } = this.#context;
    if (!/^\d{4,19}$/.test(id)) fail('query_too_old');
    const partition = keys.partitions.of(bot);
    const shown = pack(list);
    // Refuses a message that Petrel cannot store, because the person who chooses the result later could not correct it.
    for (const { content, markup } of messages.values()) {
      packContent(content);
      packMarkup(markup);
    }
    const results = [...messages].flatMap(([name, message]) => [name, pack(message)]);
    const bytes = results.reduce((sum, each) => sum + Buffer.byteLength(each), shown.length);
    if (bytes > limits.inline_answer_bytes_max) fail('inline_answer_too_big');
    const at = {
      meta: keys.meta(partition),
      request: keys.request(partition, requestId()),
      query: keys.inlineQueries(partition),
      answer: keys.inlineAnswers(partition),
      cache: keys.inlineCache(bot),
      answers: keys.inlineAnswersOf(bot),
      bytes: keys.inlineBytes(bot),
      channel: keys.inlineChannel(bot),
    };
    const args = { id, bot: String(bot), cache_s: cacheSeconds, personal, list: shown, results };
    const result = await scripts.call('inline/answer', partition, at, args);
    if (result.status === 'too_old') fail('query_too_old');
  }

  /** Returns the answer to a query in the form in which this person sees it, or null if there is none. */
  async read(id: string, user: number): Promise<ShownAnswer | null> {
    const found = await this.#read(id, user, 'l');
    return found && this.#shown(id, user, found.value);
  }

  /**
   * Returns a result's message, its bot and its query. `answer` is the answer's id for this person. Returns null if the
   * person did not see the answer.
   */
  async result(answer: string, user: number, result: string) {
    const id = this.#parts.inlineIds.queryOf(user, answer);
    if (id === null) return null;
    const found = await this.#read(id, user, `r:${result}`);
    if (found === null || found.value.length === 0) return null;
    return { bot: Number(found.bot), query: found.query, message: unpack<InlineMessage>(found.value) };
  }

  /** Tells a bot which result the person has chosen. */
  async tellChosen(bot: number, user: Profile, choice: InlineChoice): Promise<void> {
    const { scripts, keys, requestId } = this.#context;
    const partition = keys.partitions.of(bot);
    const at = { request: keys.request(partition, requestId()), ...this.#queueKeys(bot) };
    const args = { bot: String(bot), from: pack(user), user: String(user.id), extra: pack(choice) };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('inline/tell_chosen', partition, at, args);
      if (result.status === 'ok') return this.#parts.forwarder.follow(bot, result);
      // Skips a bot that was deleted in the meantime.
      if (!(await this.#parts.queues.open(bot))) return;
    }
    return fail('unavailable', { retry_after: 1 });
  }

  #shown(id: string, user: number, list: Buffer): ShownAnswer {
    return { id: this.#parts.inlineIds.answerIdOf(user, id), list: unpack<InlineList>(list) };
  }

  /** Checks that the bot's write policy admits the person. Returns the version of this policy. */
  async #checked(bot: number, user: number): Promise<string> {
    const access = (await loadWriteAccess(this.#context.db, bot, user)) ?? fail('bot_not_found');
    if (!access.may) fail('cant_write_to_bot');
    return String(access.version);
  }

  #queueKeys(bot: number) {
    const { keys } = this.#context;
    const partition = keys.partitions.of(bot);
    return {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      due: keys.webhooksDue(partition),
      channel: keys.botChannel(bot),
    };
  }

  async #read(id: string, user: number, field: string) {
    const { scripts, keys } = this.#context;
    const partition = Number(id.slice(-partitionDigits));
    if (partition >= keys.partitions.count) return null;
    const at = { answer: keys.inlineAnswers(partition) };
    const found = await scripts.call('inline/read', partition, at, { id, user: String(user), field });
    return found.status === 'ok' ? found : null;
  }
}
