/** Signing in with one click as one of the people whom `dev` makes; only its fronts are told where they are kept. */
import { readFile } from 'node:fs/promises';
import type { ApiRequest } from '../api/request.js';
import { fail } from '../errors.js';

interface Kept {
  readonly users: Readonly<Record<string, { readonly username: string; readonly token: string }>>;
  readonly bot?: { readonly id: number; readonly username: string };
}

/** The same machine, spoken to by its own name: what another site's name was made to point here is not. */
function isOwnMachine({ remoteAddress, forwardedFor, host }: ApiRequest): boolean {
  const local = /^127\./.test(remoteAddress) || /^(0{4}:){7}0{3}1$|^::1$/.test(remoteAddress);
  return local && forwardedFor === '' && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host);
}

/** `/app/demo` for a front of `dev`, nothing for every other. `path` is the file that keeps the demo data. */
export function demoPages(
  path: string | undefined,
): Readonly<Record<string, (request: ApiRequest) => Promise<void>>> {
  if (path === undefined) return {};
  return {
    async '/app/demo'(request) {
      if (request.method !== 'GET') return fail('method_not_allowed');
      if (!isOwnMachine(request)) return fail('not_found');
      // The data are made once the fronts run.
      const text = await readFile(path, 'utf8').catch(() => fail('not_found'));
      const { users, bot } = JSON.parse(text) as Kept;
      const people = Object.values(users).map(({ username, token }) => ({ username, token }));
      const body = Buffer.from(JSON.stringify({ ok: true, result: { people, bot: bot?.username } }));
      request.replyWith(200, 'application/json', body);
    },
  };
}
