/** Authenticates callers: bots by the token in the path, people and administrators by a bearer token. */
import { timingSafeEqual } from 'node:crypto';
import { fail } from '../errors.js';
import { bearerToken } from '../rules/token.js';
import type { Bot, User } from '../store/core/control.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { Timer } from '../time.js';
import type { ApiRequest } from './request.js';

/** Verifies an external identity provider's tokens. Implemented in `identity/`. */
export interface TokenProvider {
  takes(token: string): boolean;
  /**
   * Returns the person whom a token identifies. Null if the token is not valid now, or if the person is unknown. An
   * unknown person gets an account, unless `known` is set. Throws `unavailable`.
   */
  person(token: string, known?: boolean): User | null | Promise<User | null>;
  /** Unix time in ms. */
  endOf(token: string): number;
}

export interface Operator {
  /** The administrator's id, or 0 for ADMIN_TOKEN. */
  readonly id: number;
  readonly name: string;
}

/** The administrator who uses the setting ADMIN_TOKEN. No named administrator can have this name. */
const fromSettings: Operator = { id: 0, name: 'ADMIN_TOKEN' };

/** The longest delay that setTimeout accepts, in ms. */
const timer_ms_max = 2 ** 31 - 1;

const bearer = ({ authorization }: ApiRequest): string => bearerToken(authorization);

function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}

export interface CallersOptions {
  readonly store: Store;
  readonly adminToken: string | undefined;
  readonly provider?: TokenProvider | undefined;
  readonly clientAddress: (request: ApiRequest) => string;
}

export class Callers {
  readonly #options: CallersOptions;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Rejects with 401, or with 429 if the address has tried many tokens that never existed. */
  async #refuse(request: ApiRequest, token: string): Promise<never> {
    const { store, clientAddress } = this.#options;
    const wait = await store.guesses.note(clientAddress(request), token);
    return wait > 0 ? fail('too_many_requests', { retry_after: wait }) : fail('unauthorized');
  }

  /**
   * Refuses an address that has guessed too many tokens, before the token is looked up. Tokens that this node already
   * knows skip this check.
   */
  #checkGuesser(request: ApiRequest, token: string): void {
    const { store, clientAddress } = this.#options;
    if (!store.guesses.slowing || store.auth.remembers(token)) return;
    const wait = store.guesses.refused(clientAddress(request), token);
    if (wait > 0) fail('too_many_requests', { retry_after: wait });
  }

  #personOf(token: string, known = false): User | null | Promise<User | null> {
    const { provider, store } = this.#options;
    return provider?.takes(token) ? provider.person(token, known) : store.auth.user(token);
  }

  /**
   * Returns the bot of a token. Creates no promise if the bot is in memory. Throws `unauthorized` or
   * `too_many_requests`.
   */
  bot(request: ApiRequest, token: string): Bot | Promise<Bot> {
    this.#checkGuesser(request, token);
    const bot = this.#options.store.auth.bot(token);
    if (bot instanceof Promise) return bot.then((found) => found ?? this.#refuse(request, token));
    return bot ?? this.#refuse(request, token);
  }

  /**
   * Returns the administrator of a token. Throws `unauthorized` if it belongs to no administrator, or
   * `too_many_requests`.
   */
  async operator(request: ApiRequest): Promise<Operator> {
    const token = bearer(request);
    const { store, adminToken } = this.#options;
    if (adminToken !== undefined && sameText(token, adminToken)) return fromSettings;
    this.#checkGuesser(request, token);
    return (await store.admins.find(token)) ?? this.#refuse(request, token);
  }

  /** Returns the person of a token. Throws `unauthorized` if the token is not valid, or `too_many_requests`. */
  person(request: ApiRequest): User | Promise<User> {
    const token = bearer(request);
    // If a token that the identity provider issued is rejected, this does not count as a guess of the client address.
    const isExternal = this.#options.provider?.takes(token) ?? false;
    const refused = () => (isExternal ? fail('unauthorized') : this.#refuse(request, token));
    if (!isExternal) this.#checkGuesser(request, token);
    const found = this.#personOf(token);
    if (found instanceof Promise) return found.then((user) => user ?? refused());
    return found ?? refused();
  }

  /** Calls `listener` once when the call's token is no longer accepted. Returns a function that stops watching. */
  onRevoked(request: ApiRequest, user: User, listener: () => void): () => void {
    const token = bearer(request);
    const { provider, store } = this.#options;
    const { time } = store;
    const issuer = provider?.takes(token) ? provider : undefined;
    let ended = false;
    let timer: Timer | undefined;
    const checkIn = (ms: number) => {
      time.cancel(timer);
      timer = time.after(Math.min(Math.max(ms, 0) + 1, timer_ms_max), check).unref();
    };
    const check = async (): Promise<void> => {
      try {
        // Compares the ids, because the account may have been deleted and its token may now belong to a newer account.
        const found = await this.#personOf(token, true);
        if (ended) return;
        if (found?.id !== user.id) {
          end();
          listener();
        } else if (issuer) checkIn(issuer.endOf(token) - time.now());
      } catch {
        // If the lookup failed, the token may still be valid. Checks it again later.
        if (!ended) checkIn(limits.auth_lease_ms);
      }
    };
    const forget = store.auth.onForgotten(`user:${user.id}`, () => void check());
    const end = () => {
      ended = true;
      time.cancel(timer);
      forget();
    };
    // Checks at once, because the token may have been revoked before `onForgotten` was called.
    void check();
    return end;
  }
}
