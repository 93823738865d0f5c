/**
 * Defines a row of the test table. A row tests one sentence of the interface. It makes one call, and checks everything
 * that the call must cause.
 */
import type { Answer } from '../support/service.js';
import type { Case } from './case.js';

export interface Row<T = unknown> {
  /**
   * The title begins with the section number of the interface, and names the state before the call, the call, and the
   * state after the call.
   */
  readonly title: string;
  /** Creates the data that the call needs. The other functions of the row get the result. */
  arrange(c: Case): Promise<T>;
  act(c: Case, at: T): Promise<Answer>;
  /**
   * The complete expected body of the answer. Its `error_code` must equal the HTTP status. Without an `error_code`, the
   * status must be 200.
   */
  answer(at: T, c: Case): object;
  /** How long the arranged state lasts, in ms. If the answer to the call comes later, the row is arranged again. */
  readonly holds_ms?: number;
  /**
   * True for a row that takes a minute to arrange. It is arranged when the table begins, and checked after all other
   * rows.
   */
  readonly early?: true;
  /** Checks other effects of the call. The runner itself checks that a refusal changed nothing. */
  after?(c: Case, at: T, answer: Answer): Promise<void>;
}

/** Makes a row. The type parameter ensures that all functions of the row use the result type of `arrange`. */
export const row = <T>(given: Row<T>): Row => given as unknown as Row;

export const ok = (result: unknown) => ({ ok: true, result });

export const refusal = (error_code: number, description: string) => ({
  ok: false,
  error_code,
  description,
});

export const bad = (text: string) => refusal(400, `Bad Request: ${text}`);

/** The refusal of a call that is too frequent. It asks the caller to wait one second (interface §7). */
export const tooOften = {
  ...refusal(429, 'Too Many Requests: retry after 1'),
  parameters: { retry_after: 1 },
};

export const unauthorized = refusal(401, 'Unauthorized');
