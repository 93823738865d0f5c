/** Calls the application API with the token of the signed-in person. */
import { takeEarlyAnswer } from './early_calls.js';
import { signOut, token } from './session.js';

export class ApiFailure extends Error {
  readonly status: number;
  /** How many seconds to wait before a retry, or 0 if the service did not say. */
  readonly retryAfter: number;

  constructor(status: number, description: string, retryAfter = 0) {
    super(description.replace(/^(Bad Request|Forbidden|Not Found|Conflict|Too Many Requests): /, ''));
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export interface CallOptions {
  /** The idempotency key. If several calls have the same key, only one takes effect. */
  key?: string;
  /** A token to use instead of the signed-in person's token. A 401 for this token does not sign the person out. */
  as?: string;
  signal?: AbortSignal;
  /**
   * Called with the number of bytes of the body that were sent so far. If the call is repeated, the count starts again
   * at 0.
   */
  onProgress?: (bytes: number) => void;
}

/** Returns whether the service refused the call. The service would refuse a repeated call too. */
export const isRefusal = (error: unknown): boolean => error instanceof ApiFailure && error.status < 429;

type Body = Record<string, unknown> | Blob | FormData | undefined;

const tries_max = 3;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface UploadOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Blob | FormData | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Does what `fetch` does, and also reports the progress of the upload. Uses XMLHttpRequest, because `fetch` cannot
 * report it.
 */
function upload(
  path: string,
  { method, headers, body, signal }: UploadOptions,
  onProgress: (bytes: number) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open(method, path);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    request.onload = () => {
      const { response, status, statusText } = request;
      resolve(new Response(response, { status, statusText }));
    };
    request.onerror = () => reject(new TypeError('the upload failed'));
    request.onabort = () => reject(signal?.reason ?? new TypeError('the upload ended'));
    signal?.addEventListener('abort', () => request.abort(), { once: true });
    request.send(body);
  });
}

async function once(verb: string, path: string, body: Body, options: CallOptions): Promise<unknown> {
  const secret = options.as ?? token.value;
  const headers: Record<string, string> = { Authorization: `Bearer ${secret}` };
  const plain = body !== undefined && !(body instanceof Blob) && !(body instanceof FormData);
  if (plain) headers['Content-Type'] = 'application/json';
  if (options.key) headers['Idempotency-Key'] = options.key;
  const sent = plain ? JSON.stringify(body) : (body as Blob | FormData | undefined);
  const given = { method: verb, headers, body: sent, signal: options.signal };
  const { onProgress } = options;
  const early = verb === 'GET' ? takeEarlyAnswer(path, secret) : undefined;
  const answer = await (onProgress
    ? upload(path, given, onProgress)
    : (early ?? fetch(path, { ...given, cache: 'no-store' })));
  const reply = (await answer.json().catch((error) => {
    // The connection broke in the middle of the answer, so the outcome is unknown.
    if (answer.ok) throw new TypeError('incomplete answer', { cause: error });
    return {};
  })) as {
    ok?: boolean;
    result?: unknown;
    description?: string;
    parameters?: { retry_after?: number };
  };
  if (answer.ok && reply.ok) return 'result' in reply ? reply.result : reply;
  if (answer.status === 401 && options.as === undefined) signOut(false);
  throw new ApiFailure(answer.status, reply.description ?? answer.statusText, reply.parameters?.retry_after);
}

/** Returns whether a call is safe to repeat. Reads and calls with an idempotency key are safe to repeat. */
const repeats = (verb: string, options: CallOptions) => verb === 'GET' || options.key !== undefined;

/**
 * Returns the `result` of a call, or the whole body if it has no envelope. Throws an ApiFailure, or the error of
 * `fetch`.
 */
export async function call<T>(
  verb: string,
  path: string,
  body?: Body,
  options: CallOptions = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await once(verb, path, body, options)) as T;
    } catch (error) {
      if (options.signal?.aborted || attempt >= tries_max || !repeats(verb, options)) throw error;
      if (error instanceof ApiFailure && error.status !== 429 && error.status !== 503) throw error;
      const seconds = error instanceof ApiFailure ? Math.min(error.retryAfter || 1, 5) : attempt;
      await wait(seconds * 1_000);
    }
  }
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, undefined, { signal });

const blobs = new Map<string, Promise<string>>();
const blobs_max = 300;

/** Returns a blob URL for a stored file. The URL is valid only in this page. Each file is loaded only once. */
export function fileUrl(path: string): Promise<string> {
  const known = blobs.get(path);
  if (known) return known;
  const loaded = (async () => {
    const answer = await fetch(path, { headers: { Authorization: `Bearer ${token.value}` } });
    if (!answer.ok) throw new ApiFailure(answer.status, answer.statusText);
    return URL.createObjectURL(await answer.blob());
  })();
  blobs.set(path, loaded);
  loaded.catch(() => blobs.delete(path));
  if (blobs.size > blobs_max) {
    const [oldest] = blobs;
    if (oldest) {
      blobs.delete(oldest[0]);
      oldest[1].then((url) => URL.revokeObjectURL(url)).catch(() => {});
    }
  }
  return loaded;
}
