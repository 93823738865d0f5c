/** Calls a server over HTTP. After an answer 429 or 503, waits for `retry_after` and repeats the call. */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionCause } from '../rules/connection_causes.js';
import { type Encoded, type Encoding, encode, type Given, type Upload } from './encodings.js';
import { conformanceLimits as limits } from './limits.js';

/** Thrown when a check fails. The message says how the server differs from the interface. */
export class Failed extends Error {}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: checks look into answers of every shape
  readonly body: any;
}

export interface CallOptions {
  readonly encoding?: Encoding;
  readonly files?: Readonly<Record<string, Upload>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
  /** True if the check expects 429 or 503. The client then returns this answer and does not repeat the call. */
  readonly once?: boolean;
}

export interface RawCall {
  readonly verb: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
}

export interface Client {
  readonly token: string;
  /** Returns how many requests were sent so far. */
  readonly sent: () => number;
  call(method: string, params?: Given, options?: CallOptions): Promise<Answer>;
  /** Sends a request unchanged. Throws unless the answer is JSON. */
  raw(request: RawCall): Promise<Answer>;
  download(filePath: string): Promise<{ readonly status: number; readonly bytes: Buffer }>;
}

async function bytesOf(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > limits.conformance_answer_bytes_max)
      throw new Failed(`the answer has more than ${limits.conformance_answer_bytes_max} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Returns the `retry_after` of an answer, in seconds. Throws if the value is missing, wrong or too large. */
function retryAfter({ status, headers, body }: Answer): number {
  const seconds = body?.parameters?.retry_after;
  if (!Number.isInteger(seconds) || seconds < 1 || headers.get('retry-after') !== String(seconds))
    throw new Failed(`an answer with ${status} does not say when to call again: ${JSON.stringify(body)}`);
  if (seconds > limits.conformance_retry_after_s_max)
    throw new Failed(`the server asks to wait ${seconds} s. Its rate limits are too low for this run.`);
  return seconds;
}

/** `url` has no trailing slash. */
export function createClient(url: string, token: string): Client {
  let sent = 0;

  async function reach(path: string, init: RequestInit): Promise<{ response: Response; bytes: Buffer }> {
    sent++;
    try {
      const signal = AbortSignal.timeout(limits.conformance_call_ms_max);
      const response = await fetch(url + path, { redirect: 'manual', signal, ...init });
      return { response, bytes: await bytesOf(response) };
    } catch (error) {
      if (error instanceof Failed) throw error;
      if ((error as Error).name === 'TimeoutError')
        throw new Failed(`no answer within ${limits.conformance_call_ms_max / 1_000} s`);
      throw new Failed(`the server could not be reached: ${connectionCause(error)}`);
    }
  }

  async function raw({ verb, path, headers = {}, body }: RawCall): Promise<Answer> {
    const init = { method: verb, headers, ...(body === undefined ? {} : { body }) };
    const { response, bytes } = await reach(path, init);
    const text = bytes.toString('utf8');
    try {
      return { status: response.status, headers: response.headers, body: JSON.parse(text) };
    } catch {
      throw new Failed(`an answer with ${response.status} is not JSON: ${text.slice(0, 200)}`);
    }
  }

  async function repeated(encoded: Encoded, path: string, headers: RawCall['headers'], once: boolean) {
    for (let repeats = 0; ; repeats++) {
      const { verb, query, body } = encoded;
      const all = { ...encoded.headers, ...headers };
      const answer = await raw({
        verb,
        path: path + query,
        headers: all,
        ...(body === undefined ? {} : { body }),
      });
      const isBusy = answer.status === 429 || answer.status === 503;
      if (once || !isBusy || repeats === limits.conformance_repeats_max) return answer;
      await sleep(retryAfter(answer) * 1_000);
    }
  }

  return {
    token,
    sent: () => sent,
    raw,
    call(method, params = {}, options = {}) {
      const { files, headers, once = false } = options;
      const encoding = options.encoding ?? (files === undefined ? 'JSON' : 'multipart');
      const encoded = encode(params, encoding, files);
      return repeated(encoded, `/bot${options.token ?? token}/${method}`, headers, once);
    },
    async download(filePath) {
      const { response, bytes } = await reach(`/file/bot${token}/${filePath}`, {});
      return { status: response.status, bytes };
    },
  };
}
