/** An HTTP client for load tests. Calls the service as a person or a bot, sets up load tests and verifies answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionCause } from '../rules/connection_causes.js';

export interface BenchBot {
  readonly id: number;
  readonly token: string;
  readonly name: string;
  readonly username: string;
}

export interface Pair {
  readonly bot: BenchBot;
  readonly user: { readonly id: number; readonly token: string };
}

/** Thrown when an answer is wrong. It makes the load test invalid and ends it. */
export class WrongAnswer extends Error {}

export function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new WrongAnswer(what);
}

export interface CallOptions {
  readonly verb?: 'GET' | 'POST' | 'DELETE';
  readonly token?: string;
  /** A string is sent unchanged. Other values are sent as JSON. */
  readonly body?: unknown;
}

/** Throws a WrongAnswer with the reason if the service cannot be reached. */
async function reached(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new WrongAnswer(`${new URL(url).origin} could not be reached: ${connectionCause(error)}`);
  }
}

/** Throws a WrongAnswer if the status is not 200 or the content type is not JSON. */
export async function textOf(url: string, { verb, token, body }: CallOptions = {}): Promise<string> {
  const response = await reached(url, {
    method: verb ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await response.text();
  const path = new URL(url).pathname.replace(/^\/bot[^/]+/, '/bot…');
  expect(response.status === 200, `${path} answered ${response.status} ${text.slice(0, 200)}`);
  expect(response.headers.get('content-type') === 'application/json', `${path} did not answer with JSON`);
  return text;
}

/** Returns an answer that has its fields beside `ok` instead of in `result`. Throws a WrongAnswer for a failure. */
export async function answerOf<T>(url: string, options: CallOptions = {}): Promise<T> {
  const text = await textOf(url, options);
  const answer = JSON.parse(text) as { readonly ok: boolean } & T;
  expect(
    answer.ok,
    `${new URL(url).pathname.replace(/^\/bot[^/]+/, '/bot…')} answered ${text.slice(0, 200)}`,
  );
  return answer;
}

const tries_max = 10;

/**
 * Makes a call that prepares a load test, and returns its result. Retries if the service is busy. Throws a WrongAnswer
 * for any other failure. Loads and verifications must not retry, so they use other functions.
 */
export async function call<T>(url: string, options: CallOptions = {}): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return (await answerOf<{ readonly result: T }>(url, options)).result;
    } catch (error) {
      if (tries === tries_max || !/ answered 503 /.test((error as Error).message)) throw error;
      await sleep(1_000);
    }
  }
}

export async function inParallel<T>(
  count: number,
  width: number,
  work: (i: number) => Promise<T>,
): Promise<T[]> {
  const done: T[] = new Array(count);
  let next = 0;
  const line = async () => {
    for (let i = next++; i < count; i = next++) done[i] = await work(i);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, line));
  return done;
}

export async function makePair(baseUrl: string, adminToken: string, name: string): Promise<Pair> {
  const made = await call<{ user: { id: number }; token: string }>(`${baseUrl}/api/admin/users`, {
    token: adminToken,
    body: { username: `${name}_person`, first_name: 'Person', language_code: 'en' },
  });
  const { token } = made;
  const username = `${name}_bot`;
  const bot = await call<{ id: number; token: string }>(`${baseUrl}/api/me/bots`, {
    token,
    body: { username, name: 'Bench' },
  });
  await call(`${baseUrl}/api/bots/${username}/start`, { token, body: {} });
  return {
    bot: { id: bot.id, token: bot.token, name: 'Bench', username },
    user: { id: made.user.id, token },
  };
}
