/** Who calls the application API: a person by a token, or the operator by the token of the installation. */
import { timingSafeEqual } from 'node:crypto';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import type { Auth } from '../store/auth.js';
import type { User } from '../store/control.js';
import type { ApiRequest } from './request.js';

export interface Callers {
  /** Error: `unauthorized` for every token but the operator's. */
  operator(request: ApiRequest): null;
  /** Error: `unauthorized` for a token that is not valid now. */
  person(request: ApiRequest): User | Promise<User>;
  /** Calls `listener` once when the token of a call is no longer accepted. Returns what ends that. */
  onRevoked(request: ApiRequest, user: User, listener: () => void): () => void;
}

function bearer({ authorization }: ApiRequest): string {
  return /^bearer /i.test(authorization) ? authorization.slice(7).trim() : '';
}

function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

/** Without an `adminToken` nobody is the operator. */
export function createCallers(auth: Auth, adminToken: string | undefined): Callers {
  return {
    operator(request) {
      return adminToken !== undefined && sameText(bearer(request), adminToken) ? null : fail('unauthorized');
    },
    person(request) {
      const found = auth.user(bearer(request));
      if (found instanceof Promise) return found.then((user) => user ?? fail('unauthorized'));
      return found ?? fail('unauthorized');
    },
    onRevoked(request, user, listener) {
      const token = bearer(request);
      let ended = false;
      const check = async (): Promise<void> => {
        try {
          if ((await auth.user(token)) !== null || ended) return;
        } catch {
          // Redis is away: nothing says that it is not valid.
          if (!ended) setTimeout(check, limits.auth_lease_ms).unref();
          return;
        }
        end();
        listener();
      };
      const forget = auth.onForgotten(`user:${user.id}`, () => void check());
      const end = () => {
        ended = true;
        forget();
      };
      // It may have been revoked before anyone listened.
      void check();
      return end;
    },
  };
}
