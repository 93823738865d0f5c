/** Authenticates callers of the application API: people and administrators, each by a bearer token. */
import { timingSafeEqual } from 'node:crypto';
import { nowMs } from '../clock.js';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import type { Admins } from '../store/access/admins.js';
import type { Auth } from '../store/access/auth.js';
import type { User } from '../store/core/control.js';
import type { ApiRequest } from './request.js';

/** Tokens issued by an external identity provider. `identity/` implements it. */
export interface TokenProvider {
  /** Whether the text has the form of a provider token. */
  takes(token: string): boolean;
  /**
   * Resolves a token to a person. Null when the token is not valid now or names nobody here. With `known`, no account
   * is created. Error: `unavailable`.
   */
  person(token: string, known?: boolean): User | null | Promise<User | null>;
  /** When a valid token expires: Unix time in ms. */
  endOf(token: string): number;
}

/** An administrator, identified by the token of the call. */
export interface Operator {
  /** 0 for ADMIN_TOKEN. */
  readonly id: number;
  readonly name: string;
}

/** The administrator of setting ADMIN_TOKEN. No other administrator can have this name. */
const fromSettings: Operator = { id: 0, name: 'ADMIN_TOKEN' };

export interface Callers {
  /** Error: `unauthorized` when the token belongs to no administrator. */
  operator(request: ApiRequest): Promise<Operator>;
  /** Error: `unauthorized` when the token is not valid. */
  person(request: ApiRequest): User | Promise<User>;
  /** Calls `listener` once when the token of the call is no longer accepted. Returns a function that stops watching. */
  onRevoked(request: ApiRequest, user: User, listener: () => void): () => void;
}

/** The longest delay setTimeout accepts, in ms. */
const timer_ms_max = 2 ** 31 - 1;

function bearer({ authorization }: ApiRequest): string {
  return /^bearer /i.test(authorization) ? authorization.slice(7).trim() : '';
}

function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

export interface CallersOptions {
  readonly auth: Auth;
  /** Setting ADMIN_TOKEN. */
  readonly adminToken: string | undefined;
  readonly admins: Pick<Admins, 'find'>;
  readonly provider: TokenProvider | undefined;
  /** Rejects an invalid token with `unauthorized`, or `too_many_requests` when the address tried too many. */
  readonly refuse: (request: ApiRequest, token: string) => Promise<never>;
  /** Runs before each token lookup. Error: `too_many_requests` when the address is throttled. */
  readonly check: (request: ApiRequest, token: string) => void;
}

export function createCallers({
  auth,
  adminToken,
  admins,
  provider,
  refuse,
  check,
}: CallersOptions): Callers {
  const personOf = (token: string, known = false) =>
    provider?.takes(token) ? provider.person(token, known) : auth.user(token);

  return {
    async operator(request) {
      const token = bearer(request);
      if (adminToken !== undefined && sameText(token, adminToken)) return fromSettings;
      check(request, token);
      return (await admins.find(token)) ?? refuse(request, token);
    },
    person(request) {
      const token = bearer(request);
      // A token signed by the provider is not a guess, so it is not throttled.
      const isExternal = provider?.takes(token) ?? false;
      const refused = () => (isExternal ? fail('unauthorized') : refuse(request, token));
      if (!isExternal) check(request, token);
      const found = personOf(token);
      if (found instanceof Promise) return found.then((user) => user ?? refused());
      return found ?? refused();
    },
    onRevoked(request, user, listener) {
      const token = bearer(request);
      let ended = false;
      let timer: NodeJS.Timeout | undefined;
      const checkIn = (ms: number) => {
        clearTimeout(timer);
        timer = setTimeout(check, Math.min(Math.max(ms, 0) + 1, timer_ms_max)).unref();
      };
      const check = async (): Promise<void> => {
        try {
          // The token may now resolve to a newer account: the old one was removed.
          if ((await personOf(token, true))?.id !== user.id) {
            if (ended) return;
            end();
            listener();
          } else if (!ended && provider?.takes(token)) checkIn(provider.endOf(token) - nowMs());
        } catch {
          // The lookup failed, which does not make the token invalid. Try again later.
          if (!ended) checkIn(limits.auth_lease_ms);
        }
      };
      const forget = auth.onForgotten(`user:${user.id}`, () => void check());
      const end = () => {
        ended = true;
        clearTimeout(timer);
        forget();
      };
      // The token may have been revoked before this watch started.
      void check();
      return end;
    },
  };
}
