import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, request } from 'undici';
import { holdEndpoint, holdMethod } from './results.js';
import type { Front } from './role_process.js';
import { type Answer, resultOf, type Service } from './service.js';

/** For how long a test retries a call while a busy front answers 503. */
const patience_ms = 60_000;

/** Makes a call and retries it while the status is 503, as a client does, for up to a minute. */
export async function answered<T extends Pick<Answer, 'status'>>(call: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + patience_ms; ; await sleep(200)) {
    const answer = await call();
    if (answer.status !== 503 || performance.now() > end) return answer;
  }
}

/** Makes a call and retries it while the status is 503, as `answered` does. Returns the `result` of the answer. */
export const patiently = (call: () => Promise<Answer>) => resultOf(answered(call));

type Calls = Pick<Service, 'app' | 'bot' | 'newUser' | 'newBot' | 'openChat' | 'newGroup'>;

/**
 * Makes calls to fronts over HTTP. Validates answers against the OpenAPI documents, and adds the tokens in the answers
 * to `issued`.
 */
export function createCalls(
  fronts: readonly Front[],
  admin: string,
  dispatcher: Agent,
  issued: Set<string>,
): Calls {
  let named = 0;
  async function call(
    url: string,
    method: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<Answer> {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await request(url, {
      method: method as 'GET',
      dispatcher,
      headers: { ...headers, ...type },
      ...given,
    });
    const text = await answer.body.text();
    const parsed = text === '' ? null : JSON.parse(text);
    if (typeof parsed?.result?.token === 'string') issued.add(parsed.result.token);
    return { status: answer.statusCode, headers: answer.headers, body: parsed };
  }

  const urlOf = (front: number) => (fronts[front] as Front).url;
  const app: Service['app'] = async (user, verb, path, body, front = 0) => {
    const headers = { authorization: `Bearer ${user.token}` };
    return holdEndpoint(verb, path, await call(urlOf(front) + path, verb, body, headers));
  };

  return {
    app,
    async bot(bot, method, params, front = 0) {
      const token = typeof bot === 'string' ? bot : bot.token;
      const url = `${urlOf(front)}/bot${token}/${method}`;
      return holdMethod(method, await call(url, 'POST', params ?? {}, {}));
    },
    async newUser(name) {
      let username = '';
      const { user, token } = await patiently(() => {
        // Uses a new name for each attempt, because an attempt that was answered with 503 may have taken its name.
        username = `${name}_${++named}`;
        return app({ token: admin }, 'POST', '/api/admin/users', { username, first_name: name });
      });
      return { id: user.id, username, first_name: name, token };
    },
    newBot: (owner, name) =>
      patiently(() => app(owner, 'POST', '/api/me/bots', { username: `${name}_${++named}_bot`, name })),
    openChat: (user, bot, payload) =>
      patiently(() =>
        app(user, 'POST', `/api/bots/${bot.username}/start`, payload === undefined ? {} : { payload }),
      ),
    async newGroup(owner, title, members = []) {
      const { id } = await patiently(() => app(owner, 'POST', '/api/chats', { type: 'group', title }));
      for (const member of members)
        await patiently(() => app(owner, 'PUT', `/api/chats/${id}/members/${member.id}`, {}));
      return id;
    },
  };
}
