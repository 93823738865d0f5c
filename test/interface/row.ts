/** What a row of the table is: one sentence of the interface, as a call and everything that must come of it. */
import type { Answer } from '../support/service.js';
import type { Case } from './case.js';

export interface Row<T = unknown> {
  /** Begins with the section of the interface; names what is there before, what is called, and what is so after. */
  readonly title: string;
  /** Makes what the call needs; what it returns, the other parts are given. */
  arrange(c: Case): Promise<T>;
  act(c: Case, at: T): Promise<Answer>;
  /** The whole body. Its `error_code` must be the HTTP status, which is 200 where there is none. */
  answer(at: T, c: Case): object;
  /** How long what `arrange` made is so (ms): it is arranged anew where this machine took longer to get to the call. */
  readonly holds_ms?: number;
  /** It is arranged when the table begins and looked at when all else is done: arranging takes a minute. */
  readonly early?: true;
  /** What has come of it besides. After a refusal the runner itself holds that nothing has changed. */
  after?(c: Case, at: T, answer: Answer): Promise<void>;
}

/** A row whose parts agree on what `arrange` returns. */
export const row = <T>(given: Row<T>): Row => given as unknown as Row;

export const ok = (result: unknown) => ({ ok: true, result });

export const refusal = (error_code: number, description: string) => ({
  ok: false,
  error_code,
  description,
});

export const bad = (text: string) => refusal(400, `Bad Request: ${text}`);

/** With the second after which the same call is taken (interface §7). */
export const tooOften = {
  ...refusal(429, 'Too Many Requests: retry after 1'),
  parameters: { retry_after: 1 },
};

export const unauthorized = refusal(401, 'Unauthorized');
