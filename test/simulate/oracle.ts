/** Records the calls of clients and their answers, and checks that acknowledged changes are kept. */
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Operation } from '../support/histories/history.js';
import { checkLinearizable, type Model } from '../support/histories/linearizable.js';
import type { Scheduler } from './scheduler.js';

export type Input = { readonly what: 'write'; readonly text: string } | { readonly what: 'read' };
/** A read returns the text of the message, or '' for a deleted message. */
export type Output = { readonly text: string } | 'done';

/** The text of a message. A deletion writes ''. */
const message = (start: string): Model<Input, Output, string> => ({
  start,
  name: (state) => state,
  step(state, { input, output }) {
    if (input.what === 'write') return input.text;
    return output === null || (typeof output === 'object' && output.text === state) ? state : null;
  },
});

/**
 * The maximum number of steps in which the checker decides about a history. A history that needs more steps stays
 * undecided. Reports count such histories.
 */
const bounds = { operations_max: 10_000, steps_max: 2_000_000 };

export interface Verdicts {
  readonly histories: number;
  /** The number of calls in the checked histories. */
  readonly calls: number;
  readonly undecided: number;
}

/** An operation whose `effectBy` may be set later. */
type Noted<I, O> = Omit<Operation<I, O>, 'effectBy'> & { effectBy?: number };

/** The histories of all objects of one kind. Each object has a key. */
export class Histories<I extends { readonly what: string }, O, S> {
  readonly #operations = new Map<string, Noted<I, O>[]>();
  /** The objects whose history contains a change that Redis may have lost. Their histories are not checked. */
  readonly loose = new Set<string>();
  /** The step at which Redis last lost changes. */
  #lostAt = Number.NEGATIVE_INFINITY;
  readonly #scheduler: Scheduler;
  readonly #onViolation: (what: string) => void;

  constructor(scheduler: Scheduler, onViolation: (what: string) => void) {
    this.#scheduler = scheduler;
    this.#onViolation = onViolation;
  }

  /**
   * Records a call with an answer, or a call with an unknown outcome (`output` is null). The caller must call the
   * returned function when the recorded call can no longer take effect.
   */
  note(key: string, client: string, input: I, output: O | null, from: number): () => void {
    const known = this.#operations.get(key) ?? [];
    this.#operations.set(key, known);
    const answeredAt = output === null ? Number.POSITIVE_INFINITY : this.#scheduler.steps;
    const noted: Noted<I, O> = { client, key, input, output, invokedAt: from, answeredAt };
    known.push(noted);
    // The call may have made its change twice: before Redis lost data, and again afterwards.
    if (input.what !== 'read' && from <= this.#lostAt) this.loose.add(key);
    return () => {
      noted.effectBy = this.#scheduler.steps;
    };
  }

  /** Call this when Redis lost data. At step `at`, Redis lost all changes since step `since`. */
  lose(since: number, at: number): void {
    this.#lostAt = at;
    for (const [key, operations] of this.#operations)
      if (operations.some(({ input, answeredAt }) => input.what !== 'read' && answeredAt >= since))
        this.loose.add(key);
  }

  /**
   * Checks the histories of all objects that have a model and lost no change. `steps` splits a call that consists of
   * several steps.
   */
  verify(
    modelOf: (key: string) => Model<I, O, S> | undefined,
    steps: (operation: Operation<I, O>) => Operation<I, O>[] = (operation) => [operation],
  ): Verdicts {
    let [histories, calls, undecided] = [0, 0, 0];
    for (const [key, operations] of this.#operations) {
      const model = this.loose.has(key) ? undefined : modelOf(key);
      if (model === undefined) continue;
      const [verdict] = checkLinearizable(model, operations.flatMap(steps), bounds);
      if (verdict?.result === 'violation') this.#onViolation(verdict.explanation);
      histories++;
      calls += operations.length;
      if (verdict?.result === 'undecided') undecided++;
    }
    return { histories, calls, undecided };
  }
}

export interface Sent {
  readonly chat: ChatRef;
  readonly id: number;
  readonly text: string;
  readonly byBot: boolean;
  /**
   * Whether the client got the answer after the message was committed to Postgres. A durable message survives any loss
   * of data in Redis.
   */
  readonly durable: boolean;
  /** The steps at which the client made the call and got the answer. */
  readonly from: number;
  readonly until: number;
}

export class Oracle {
  readonly sent = new Map<string, Sent>();
  readonly messages: Histories<Input, Output, string>;
  #lostAt = Number.NEGATIVE_INFINITY;
  readonly #onViolation: (what: string) => void;

  constructor(scheduler: Scheduler, onViolation: (what: string) => void) {
    this.#onViolation = onViolation;
    this.messages = new Histories(scheduler, (what) => onViolation(`message ${what}`));
  }

  static key = (chat: ChatRef, id: number) => `${chatText(chat)}:${id}`;

  noteSent(sent: Sent): void {
    const key = Oracle.key(sent.chat, sent.id);
    const known = this.sent.get(key);
    if (known) this.#onViolation(`message ${key} was sent twice: ${known.text} and ${sent.text}`);
    this.sent.set(key, sent);
    // The message was in Postgres before the loss of data. The update for the bot was only in Redis.
    if (sent.durable && this.#lostAt >= sent.from) this.messages.loose.add(key);
  }

  /** Call this when Redis lost data. At step `at`, Redis lost all changes since step `since`. */
  lose(since: number, at: number): void {
    this.#lostAt = at;
    for (const [key, { until }] of this.sent) if (until >= since) this.messages.loose.add(key);
    this.messages.lose(since, at);
  }

  verify(): Verdicts {
    return this.messages.verify((key) => {
      const sent = this.sent.get(key);
      return sent && message(sent.text);
    });
  }
}
