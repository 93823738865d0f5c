/** Who calls the application API: a person by a token, or an administrator by a token of theirs. */
import { timingSafeEqual } from 'node:crypto';
import { nowMs } from '../clock.js';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import type { Admins } from '../store/access/admins.js';
import type { Auth } from '../store/access/auth.js';
import type { User } from '../store/core/control.js';
import type { ApiRequest } from './request.js';

/** Tokens that an identity provider issued; `jwt/` implements it. */
export interface TokenProvider {
  /** Whether a text has the form of such a token. */
  takes(token: string): boolean;
  /** Null for a token that is not valid now, or speaks of nobody here; with `known` nobody becomes a person by this. Error:
   * `unavailable`. */
  person(token: string, known?: boolean): User | null | Promise<User | null>;
  /** When a token that was valid ends: Unix time in ms. */
  endOf(token: string): number;
}

/** An administrator, by the token of the call. */
export interface Operator {
  /** 0 for ADMIN_TOKEN. */
  readonly id: number;
  readonly name: string;
}

/** Whose token is the setting. No other can have this name. */
const fromSettings: Operator = { id: 0, name: 'ADMIN_TOKEN' };

export interface Callers {
  /** Error: `unauthorized` for a token that is no administrator's now. */
  operator(request: ApiRequest): Promise<Operator>;
  /** Error: `unauthorized` for a token that is not valid now. */
  person(request: ApiRequest): User | Promise<User>;
  /** Calls `listener` once when the token of a call is no longer accepted. Returns what ends that. */
  onRevoked(request: ApiRequest, user: User, listener: () => void): () => void;
}

/** As far as timers reach. */
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
  /** Answers a token that is not valid: `unauthorized`, or `too_many_requests` where too many were tried. */
  readonly refuse: (request: ApiRequest, token: string) => Promise<never>;
  /** Before a token is looked up. Error: `too_many_requests` where it may not be. */
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
      // What a provider signed once is no guess.
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
          // Whoever came after one whose account has ended is somebody else.
          if ((await personOf(token, true))?.id !== user.id) {
            if (ended) return;
            end();
            listener();
          } else if (!ended && provider?.takes(token)) checkIn(provider.endOf(token) - nowMs());
        } catch {
          // What could tell is away: nothing says that the token is not valid.
          if (!ended) checkIn(limits.auth_lease_ms);
        }
      };
      const forget = auth.onForgotten(`user:${user.id}`, () => void check());
      const end = () => {
        ended = true;
        clearTimeout(timer);
        forget();
      };
      // It may have been revoked before anyone listened.
      void check();
      return end;
    },
  };
}
