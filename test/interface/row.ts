/**
 * Defines a row of the table. A row tests one sentence of the interface: one call, and everything that the call must
 * cause.
 */
import type { Answer } from '../support/service.js';
import type { Case } from './case.js';

export interface Row<T = unknown> {
  /**
   * The title begins with the section of the interface. It names the state before the call, the call, and the state
   * after the call.
   */
  readonly title: string;
  /** Creates the data that the call needs. The other functions of the row get the result. */
  arrange(c: Case): Promise<T>;
  act(c: Case, at: T): Promise<Answer>;
  /**
   * The whole body of the answer. Its `error_code` must equal the HTTP status. Without an `error_code`, the status must
   * be 200.
   */
  answer(at: T, c: Case): object;
  /**
   * The time for which the arranged state lasts, in ms. If the call is answered later, the row is arranged
   * again.
   */
  readonly holds_ms?: number;
  /**
   * True for a row that is arranged when the table begins and checked after all other rows, because arranging takes a
   * minute.
   */
  readonly early?: true;
  /** Checks other effects of the call. The runner itself checks that a refusal changed nothing. */
  after?(c: Case, at: T, answer: Answer): Promise<void>;
}

/** Makes a row. Its functions agree on the type of the result of `arrange`. */
export const row = <T>(given: Row<T>): Row => given as unknown as Row;

export const ok = (result: unknown) => ({ ok: true, result });

export const refusal = (error_code: number, description: string) => ({
  ok: false,
  error_code,
  description,
});

export const bad = (text: string) => refusal(400, `Bad Request: ${text}`);

/** Expects that the same call is accepted after `retry_after` seconds (interface §7). */
export const tooOften = {
  ...refusal(429, 'Too Many Requests: retry after 1'),
  parameters: { retry_after: 1 },
};

export const unauthorized = refusal(401, 'Unauthorized');
