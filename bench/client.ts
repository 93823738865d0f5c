/** Calls the service as its people and bots do, to set a run up and to verify what it answered. */

export interface BenchBot {
  readonly id: number;
  readonly token: string;
  readonly name: string;
  readonly username: string;
}

/** A bot and the user who has opened its chat. */
export interface Pair {
  readonly bot: BenchBot;
  readonly user: { readonly id: number; readonly token: string };
}

/** A wrong answer: the run has proved nothing and ends. */
export class WrongAnswer extends Error {}

/** Throws WrongAnswer unless `holds`. */
export function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new WrongAnswer(what);
}

/** The result of a call. Throws WrongAnswer for anything but success. */
export async function call<T>(
  url: string,
  options: { readonly token?: string; readonly body?: unknown } = {},
): Promise<T> {
  const { token, body } = options;
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  const path = new URL(url).pathname.replace(/^\/bot[^/]+/, '/bot…');
  expect(response.status === 200, `${path} answered ${response.status} ${text.slice(0, 200)}`);
  const answer = JSON.parse(text) as { ok: boolean; result: T };
  expect(answer.ok, `${path} answered ${text.slice(0, 200)}`);
  return answer.result;
}

/** Makes a user, a bot of that user, and opens the chat between them. */
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
