/**
 * Handles calls with an `Idempotency-Key`. A repeated call gets the first answer and changes nothing (behaviour §1).
 *
 * One script claims the key. The method then runs on a store that derives its request ids from the claim's seed. If the
 * node dies after a change and before it saves the answer, the next run derives the same ids. The scripts then
 * recognise the changes that were already applied, and the call returns the same answer.
 *
 * Successes and errors below 500 are saved, except 429. Any other answer releases the key. Calls without the header
 * skip all this.
 */
import { createHash } from 'node:crypto';
import { ApiError, fail } from '../errors.js';
import type { Caller } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import { callLimits as limits } from './limits.js';
import { parseParams, type UploadedFile } from './params.js';
import type { ApiRequest } from './request.js';

export interface Outcome {
  readonly status: number;
  readonly body: string;
  readonly retryAfter?: number | undefined;
}

export interface KeyedCall {
  readonly store: Store;
  readonly request: ApiRequest;
  readonly caller: Caller;
  readonly method: string;
  readonly segments?: Readonly<Record<string, string>>;
  readonly raw?: true | undefined;
  /** True if the call stores new data permanently. It is refused while Redis is full. */
  readonly grows: boolean;
  /**
   * Counts a call that gets a saved answer against the rate limits. Other calls are counted when they run. Throws
   * `too_many_requests`.
   */
  readonly count: () => Promise<void> | undefined;
}

const sorted = (_: string, value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('base64url');

/**
 * Describes uploaded files by their content instead of their part names, because libraries give the parts random names
 * in each attempt.
 */
function fileParts(values: string, files: ReadonlyMap<string, UploadedFile>): readonly unknown[] {
  const texts = new Map(
    [...files].map(([name, file]) => [name, [file.filename, file.contentType, digestOf(file.bytes)].join()]),
  );
  const named = new Set<string>();
  const renamed = values.replace(/attach:\/\/([^"\\]+)/g, (whole, name: string) => {
    const text = texts.get(name);
    if (text === undefined) return whole;
    named.add(name);
    return `attach://${JSON.stringify(text)}`;
  });
  return [renamed, ...[...texts].filter(([name]) => !named.has(name)).sort()];
}

/**
 * Returns a text that is equal for equal parameters, whatever the order of names or the boundary of a multipart body.
 */
export function parametersText(
  request: ApiRequest,
  segments: Readonly<Record<string, string>> = {},
  raw?: true,
): string {
  if (raw) return JSON.stringify([segments, request.query, digestOf(request.body)], sorted);
  const { values, files } = parseParams(request);
  const text = JSON.stringify({ ...values, ...segments }, sorted);
  return files.size === 0 ? text : JSON.stringify(fileParts(text, files));
}

const isKept = ({ status }: Outcome) => status < 500 && status !== 429;

/**
 * Runs the call once and returns its answer, or returns the saved answer of an earlier attempt. Throws
 * `parameter_wrong`, `idempotency_key_reused` or `too_many_requests`.
 */
export async function answerOnce(
  { store, request, caller, method, segments, raw, grows, count }: KeyedCall,
  run: (store: Store) => Promise<Outcome>,
): Promise<Outcome> {
  const key = request.idempotencyKey;
  if ([...key].length > limits.idempotency_key_length_max || /[\u0000-\u001f\u007f]/.test(key)) {
    fail('parameter_wrong', {
      name: 'Idempotency-Key',
      what: `up to ${limits.idempotency_key_length_max} characters without control characters`,
    });
  }
  const call = { caller, method, key, parameters: parametersText(request, segments, raw), grows };
  const { time } = store;
  const deadline = time.monotonic() + limits.idempotency_wait_ms_max;
  for (;;) {
    const claim = await store.idempotency.claim(call);
    if (claim.state !== 'run') await count();
    switch (claim.state) {
      case 'run':
        return runOnce(claim, () => run(store.under(claim.seed, claim.again)));
      case 'answered':
        return JSON.parse(claim.answer) as Outcome;
      case 'other_parameters':
        return fail('idempotency_key_reused');
      case 'pending':
        if (time.monotonic() < deadline && !request.aborted) break;
        return fail('too_many_requests', { retry_after: 1 });
      case 'too_many':
        return fail('too_many_requests', { retry_after: 1 });
    }
    await time.sleep(limits.idempotency_look_ms);
  }
}

async function runOnce(
  claim: { keep(answer: string): Promise<void>; release(): Promise<void> },
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  // Ignores errors in saving the answer. A later attempt recognises the changes of this attempt and gives the same
  // answer.
  const settled = (note: Promise<void>) => note.catch(() => undefined);
  let outcome: Outcome;
  try {
    outcome = await run();
  } catch (error) {
    const released = settled(claim.release());
    // While Redis is unavailable, does not wait until the key is released, because the wait would only delay the error
    // answer.
    if (!(error instanceof ApiError && error.kind === 'unavailable')) await released;
    throw error;
  }
  const noted = settled(
    isKept(outcome)
      ? claim.keep(JSON.stringify({ status: outcome.status, body: outcome.body }))
      : claim.release(),
  );
  if (outcome.status < 500) await noted;
  return outcome;
}

/** Wraps the request for a handler that replies itself. A JSON reply is sent only after it is saved under the key. */
export function holdReply(request: ApiRequest): {
  readonly request: ApiRequest;
  readonly held: () => Outcome | undefined;
} {
  let held: Outcome | undefined;
  const reply: ApiRequest['reply'] = (status, body, retryAfter) => {
    held ??= { status, body: body.toString(), retryAfter };
  };
  // Replaces only the member `reply` of the request. All other members are those of the original request, which
  // remembers whether it has replied.
  const proxy = new Proxy(request, {
    get(target, name) {
      if (name === 'reply') return reply;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { request: proxy, held: () => held };
}
