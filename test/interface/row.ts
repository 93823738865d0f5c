/** A row of the table tests one sentence of the interface: one call, and everything it must cause. */
import type { Answer } from '../support/service.js';
import type { Case } from './case.js';

export interface Row<T = unknown> {
  /** Begins with the section of the interface; names the state before, the call, and the state after. */
  readonly title: string;
  /** Creates what the call needs. The other parts get its result. */
  arrange(c: Case): Promise<T>;
  act(c: Case, at: T): Promise<Answer>;
  /** The whole body of the answer. Its `error_code` must equal the HTTP status; without one the status must be 200. */
  answer(at: T, c: Case): object;
  /** How long the arranged state lasts, in ms. If this machine takes longer to make the call, the row is arranged again. */
  readonly holds_ms?: number;
  /** Arranged when the table begins and checked after all other rows, because arranging takes a minute. */
  readonly early?: true;
  /** Checks other effects of the call. The runner itself checks that a refusal changed nothing. */
  after?(c: Case, at: T, answer: Answer): Promise<void>;
}

/** Makes a row whose parts agree on the result of `arrange`. */
export const row = <T>(given: Row<T>): Row => given as unknown as Row;

export const ok = (result: unknown) => ({ ok: true, result });

export const refusal = (error_code: number, description: string) => ({
  ok: false,
  error_code,
  description,
});

export const bad = (text: string) => refusal(400, `Bad Request: ${text}`);

/** `retry_after` is the second after which the same call is accepted (interface §7). */
export const tooOften = {
  ...refusal(429, 'Too Many Requests: retry after 1'),
  parameters: { retry_after: 1 },
};

export const unauthorized = refusal(401, 'Unauthorized');
