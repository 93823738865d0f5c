/** Calls the service as people and bots do, to set up a run and to verify answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectionCause } from '../rules/connection_causes.js';

export interface BenchBot {
  readonly id: number;
  readonly token: string;
  readonly name: string;
  readonly username: string;
}

/** A bot and a user who has opened its chat. */
export interface Pair {
  readonly bot: BenchBot;
  readonly user: { readonly id: number; readonly token: string };
}

/** An answer was wrong, so the run is invalid and ends. */
export class WrongAnswer extends Error {}

/** Throws WrongAnswer unless `holds`. */
export function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new WrongAnswer(what);
}

export interface CallOptions {
  readonly verb?: 'GET' | 'POST' | 'DELETE';
  readonly token?: string;
  /** Sent as JSON; a string is sent unchanged. */
  readonly body?: unknown;
}

/** Errors: WrongAnswer with the reason why the service could not be reached. */
async function reached(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new WrongAnswer(`${new URL(url).origin} could not be reached: ${connectionCause(error)}`);
  }
}

/** The text of an answer. Throws WrongAnswer for a status other than 200, and for another content type than JSON. */
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

/** An answer whose fields stand beside `ok`. Throws WrongAnswer for a failure. */
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
 * The result of a call that sets up a run. Retries when the service answers that it is busy; loads and verifications
 * must not, and use other functions. Throws WrongAnswer for any other failure.
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

/** Does `count` pieces of work, at most `width` in parallel. */
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

/** Creates a user and a bot of that user, and opens their chat. */
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
