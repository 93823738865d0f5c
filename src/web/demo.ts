/**
 * Lets a person sign in with one click as one of the demo people that `dev` creates. This is possible only with the
 * one-time link that `npm start` prints.
 */
import { timingSafeEqual } from 'node:crypto';
import { readFile, unlink } from 'node:fs/promises';
import { fail } from '../errors.js';
import type { ApiRequest } from '../server/request.js';

interface Kept {
  readonly users: Readonly<Record<string, { readonly username: string; readonly token: string }>>;
  readonly bot?: { readonly id: number; readonly username: string };
}

/**
 * Returns whether the request comes from this machine and was sent to `localhost` or a loopback address. The second
 * condition prevents attacks by other sites (DNS rebinding).
 */
function isOwnMachine({ remoteAddress, forwardedFor, host }: ApiRequest): boolean {
  const local = /^127\./.test(remoteAddress) || /^(0{4}:){7}0{3}1$|^::1$/.test(remoteAddress);
  return local && forwardedFor === '' && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host);
}

const sameText = (a: Buffer, b: Buffer) => a.length === b.length && timingSafeEqual(a, b);

/**
 * Checks the key in the request, and removes the file with the key. If several fronts receive the same key, only one of
 * them can remove the file and succeeds.
 */
async function claim(path: string, { authorization }: ApiRequest): Promise<void> {
  const given = Buffer.from(authorization.replace(/^bearer /i, ''));
  const key = await readFile(path).catch(() => fail('not_found'));
  if (key.length === 0 || !sameText(key, given)) return fail('not_found');
  await unlink(path).catch(() => fail('not_found'));
}

/**
 * Returns the endpoint `/app/demo` for a front that `dev` started. `path` is the file with the demo data. If `path` is
 * undefined, there is no such endpoint. `keyPath` returns the path of the file with the one-time link's key.
 */
export function demoPages(
  path: string | undefined,
  keyPath: (path: string) => string,
): Readonly<Record<string, (request: ApiRequest) => Promise<void>>> {
  if (path === undefined) return {};
  return {
    async '/app/demo'(request) {
      if (request.method !== 'POST') return fail('method_not_allowed');
      if (!isOwnMachine(request)) return fail('not_found');
      // Reads the file at each request, because `dev` creates the demo data after it has started the fronts.
      const text = await readFile(path, 'utf8').catch(() => fail('not_found'));
      await claim(keyPath(path), request);
      const { users, bot } = JSON.parse(text) as Kept;
      const people = Object.values(users).map(({ username, token }) => ({ username, token }));
      request.reply(200, JSON.stringify({ ok: true, result: { people, bot: bot?.username } }));
    },
  };
}
