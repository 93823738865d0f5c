/**
 * Finds the owners of tokens, and bots by id. A node caches both while its lease is valid. A revocation returns only
 * when no node can still have the revoked token in its cache (architecture, Authentication). Renaming a bot also needs
 * a revocation, because nodes cache bot names under the same lease. A lease starts when the node sends its renewal. The
 * node checks its lease with the monotonic clock at each request. After a suspension or a disconnect, the node
 * therefore finds its lease expired and asks Redis. If the epoch changes during a lookup, the node does not cache the
 * result. `test/models/token_lease.pml` models this protocol. In the model, `lease_left`, `epoch` and `known` stand for
 * `#leaseUntil`, `#epoch` and `#incarnation`. `cached` is an entry of `#memories`, and `caches` means that `#forgotten`
 * has not changed since the lookup began.
 */

import { createHash } from 'node:crypto';
import { ApiError } from '../../errors.js';
import { moveUserToken } from '../../postgres/accounts/rotation.js';
import type { Hints } from '../../redis/hints.js';
import { parseToken } from '../../rules/token.js';
import type { Timer } from '../../time.js';
import type { StoreContext } from '../core/context.js';
import type { Bot, ControlCopies, User } from '../core/control.js';
import type { Keys } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import { createTokenUse, type TokenUse } from './token_use.js';

export type Subject = `bot:${number}` | `user:${number}`;

type Known<T> = T | null | Promise<T | null>;

/** Verifies an external token. `expiresAt` is Unix time in ms. */
type External = () => Promise<{ readonly id: number; readonly expiresAt: number } | null>;

interface Memory<T> {
  readonly value: T;
  /**
   * The monotonic time in ms at which the entry expires. A whole number, because V8 stores small integers inside the
   * object.
   */
  readonly until: number;
}

interface TokenMemory extends Memory<Bot | User> {
  readonly kind: 'bot' | 'user';
}

/** Copies a string. A substring of a request's path would keep the whole path in memory. */
const ownText = (text: string): string => Buffer.from(text).toString();

const authKeys = (keys: Keys) => ({
  meta: keys.meta(0),
  nodes: keys.authNodes(),
  revoked: keys.authRevoked(),
  channel: keys.authChannel(),
});

/** How long a node may use its cache after the last renewal of its lease, in ms. */
const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;

/**
 * Caches tokens. A node may use its cache only while it has a lease. After `start`, the node renews its lease. Without
 * requests and listeners, the node lets the lease expire, and the next request renews it. `stop` ends the lease.
 */
export class Auth {
  readonly #context: StoreContext;
  readonly #control: ControlCopies;
  readonly #hints: Hints;
  readonly #node: string;
  readonly #memories = new Map<string, TokenMemory>();
  readonly #bots = new Map<number, Memory<Bot>>();
  readonly #tokensOf = new Map<Subject, Set<string>>();
  readonly #listeners = new Map<Subject, Set<() => void>>();
  readonly #tokenUse: TokenUse;
  readonly #at: ReturnType<typeof authKeys>;
  #leaseUntil = 0;
  #epoch = 0;
  /**
   * The incarnation to which the acknowledged epoch belongs. Epochs start again with each incarnation, so the node
   * acknowledges epoch and incarnation together.
   */
  #incarnation = 0;
  /** The incarnation that Redis last reported, and the monotonic time at which this node first saw it. */
  #seen = { incarnation: 0, since: 0 };
  /**
   * The number of removals from the cache. If this number changes during a lookup, the result of the lookup is not
   * cached.
   */
  #forgotten = 0;
  #timer: Timer | undefined;
  #renewing: Promise<void> | undefined;
  #usedAt = 0;
  /**
   * True if there have been no requests for a while. The lease may then expire, and revocations need not wait for this
   * node.
   */
  #resting = false;
  #unlisten: (() => void) | undefined;

  /**
   * Tests set this function to make calls overlap in a chosen order. It runs after a lookup, before the result is
   * cached.
   */
  beforeRemember: (() => Promise<void>) | undefined;

  constructor(context: StoreContext, control: ControlCopies, hints: Hints) {
    this.#context = context;
    this.#node = context.uniqueText();
    this.#control = control;
    this.#hints = hints;
    this.#tokenUse = createTokenUse(context.db, context.time);
    this.#at = authKeys(context.keys);
  }

  #forget(revoked: readonly string[]): void {
    this.#forgotten++;
    // A revocation may name several subjects that were revoked together, separated by spaces.
    const subjects = revoked.flatMap((text) => text.split(' '));
    if (subjects.includes('*')) {
      this.#memories.clear();
      this.#tokensOf.clear();
      this.#bots.clear();
      for (const those of this.#listeners.values()) for (const listener of those) listener();
      return;
    }
    for (const subject of subjects as Subject[]) {
      for (const token of this.#tokensOf.get(subject) ?? []) this.#memories.delete(token);
      this.#tokensOf.delete(subject);
      if (subject.startsWith('bot:')) this.#bots.delete(Number(subject.slice(4)));
      for (const listener of this.#listeners.get(subject) ?? []) listener();
    }
  }

  #ageOf(present: number): number {
    if (this.#seen.incarnation !== present)
      this.#seen = { incarnation: present, since: this.#context.time.monotonic() };
    return this.#context.time.monotonic() - this.#seen.since;
  }

  async #renewOnce(): Promise<void> {
    const sent = this.#context.time.monotonic();
    const args = {
      node: this.#node,
      known: this.#incarnation,
      acked: this.#epoch,
      lease_ms: limits.auth_lease_ms,
    };
    const result = await this.#context.scripts.call('auth/renew', 0, this.#at, args);
    if (result.subjects.length > 0) this.#forget(result.subjects);
    this.#ageOf(result.incarnation);
    const moved = result.epoch !== this.#epoch || result.incarnation !== this.#incarnation;
    this.#epoch = result.epoch;
    this.#incarnation = result.incarnation;
    this.#leaseUntil = sent + limits.auth_lease_ms;
    // Acknowledges the new epoch immediately, because the revoking call waits for this acknowledgement.
    if (moved) await this.#renewOnce();
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce()
      .catch(() => undefined)
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  /**
   * Waits for a running renewal and then renews the lease again, because the running renewal may have started before
   * the hint arrived.
   */
  async #renewAgain(): Promise<void> {
    await this.#renewing;
    await this.#renew();
  }

  #use(now: number): void {
    this.#usedAt = now;
    if (this.#resting) this.#keepLease();
  }

  #keepLease(): void {
    this.#resting = false;
    this.#timer = this.#context.time.every(limits.auth_lease_renew_ms, () => this.#tick()).unref();
    void this.#renew();
  }

  #tick(): void {
    this.#resting =
      this.#listeners.size === 0 && this.#context.time.monotonic() - this.#usedAt > limits.auth_idle_ms;
    if (this.#resting) this.#context.time.cancel(this.#timer);
    else void this.#renew();
  }

  #fresh(memory: Memory<unknown>, now: number): boolean {
    this.#use(now);
    return now < this.#leaseUntil && now < memory.until;
  }

  #rememberBot(value: Bot): void {
    if (this.#bots.size >= limits.auth_cache_entries_max) this.#forget(['*']);
    this.#bots.set(value.id, {
      value,
      until: Math.floor(this.#context.time.monotonic() + limits.auth_cache_age_ms_max),
    });
  }

  #remember(
    given: string,
    kind: 'bot' | 'user',
    value: Bot | User,
    ms: number = limits.auth_cache_age_ms_max,
  ): void {
    if (this.#memories.size >= limits.auth_cache_entries_max) this.#forget(['*']);
    const token = ownText(given);
    const subject: Subject = `${kind}:${value.id}`;
    this.#memories.set(token, { value, kind, until: Math.floor(this.#context.time.monotonic() + ms) });
    if (!('tokens' in value)) this.#rememberBot(value);
    const tokens = this.#tokensOf.get(subject) ?? new Set();
    this.#tokensOf.set(subject, tokens);
    tokens.add(token);
  }

  /**
   * Replaces the stored hash of a token by a hash with the first pepper, in the background. If this fails, the token
   * stays valid, and the next use of the token tries again.
   */
  #moveToFirstPepper(user: number, was: string, token: string): void {
    const { db, secrets } = this.#context;
    const [present = ''] = secrets.checks.peppers;
    moveUserToken(db, user, Buffer.from(was, 'base64'), secrets.lookup(token), present)
      .then(async (moved) => {
        if (moved) await this.#control.refresh('user', user);
      })
      .catch(() => undefined);
  }

  async #lookUp(token: string, kind: 'bot' | 'user', id: number): Promise<Bot | User | null> {
    const began = this.#forgotten;
    const value = await this.#control.read(kind, id);
    await this.beforeRemember?.();
    if (!value) return null;
    const { secrets } = this.#context;
    const lookups = secrets.lookups(token).map((lookup) => lookup.toString('base64'));
    const valid = 'tokens' in value ? value.tokens : [value.token];
    const pepper = lookups.findIndex((lookup) => valid.includes(lookup));
    // The tokens of suspended owners are rejected but not removed.
    if (pepper < 0 || value.state !== undefined) return null;
    if ('tokens' in value) this.#tokenUse.note(secrets.lookup(token));
    // Only the hashes of people's tokens are replaced here. Key rotation replaces the hashes of bots' tokens, because
    // it can decrypt these tokens.
    if (pepper > 0 && 'tokens' in value) this.#moveToFirstPepper(id, lookups[pepper] as string, token);
    if (began === this.#forgotten) this.#remember(token, kind, value);
    return value;
  }

  async #lookUpExternal(key: string, resolve: External): Promise<User | null> {
    const began = this.#forgotten;
    const found = await resolve();
    const user = found && (await this.#control.read('user', found.id));
    await this.beforeRemember?.();
    const left = (found?.expiresAt ?? 0) - this.#context.time.now();
    if (!user || user.state !== undefined || left <= 0) return null;
    if (began === this.#forgotten)
      this.#remember(key, 'user', user, Math.min(left, limits.auth_cache_age_ms_max));
    return user;
  }

  async #lookUpById(id: number): Promise<Bot | null> {
    const began = this.#forgotten;
    const bot = await this.#control.read('bot', id);
    await this.beforeRemember?.();
    if (bot && began === this.#forgotten) this.#rememberBot(bot);
    return bot;
  }

  #resolve(token: string, kind: 'bot' | 'user'): Known<Bot | User> {
    const memory = this.#memories.get(token);
    if (memory !== undefined && this.#fresh(memory, this.#context.time.monotonic()))
      return memory.kind === kind ? memory.value : null;
    const parsed = parseToken(token);
    if (parsed === null || parsed.kind !== kind) return null;
    return this.#lookUp(token, kind, parsed.id);
  }

  async #assertRevocable(subject: Subject): Promise<void> {
    const [kind, id] = subject.split(':') as ['bot' | 'user', string];
    await Promise.all([
      this.#context.scripts.call('auth/pending', 0, this.#at, { epoch: 0, incarnation: 0, gone: [] }),
      this.#control.forgetMany(kind, [Number(id)]),
    ]);
  }

  /**
   * Returns the bot with this token, or null if the token is not valid. Returns a promise only if the bot is not
   * cached.
   */
  bot(token: string): Known<Bot> {
    return this.#resolve(token, 'bot') as Known<Bot>;
  }

  user(token: string): Known<User> {
    return this.#resolve(token, 'user') as Known<User>;
  }

  /**
   * Returns whether this node has the token in its cache and has received no revocation of the token. The entry may
   * have expired.
   */
  remembers(token: string): boolean {
    return this.#memories.has(token);
  }

  /**
   * Returns the person with this token from an external issuer. If the token is not cached, calls `resolve` and caches
   * the result, at most until the token expires.
   */
  external(token: string, resolve: External): Known<User> {
    // The cache key is a hash, so that it has a fixed size even for long tokens.
    const key = createHash('sha256').update(token).digest('base64');
    const memory = this.#memories.get(key);
    if (memory !== undefined && this.#fresh(memory, this.#context.time.monotonic()))
      return memory.value as User;
    return this.#lookUpExternal(key, resolve);
  }

  /**
   * Returns the bot with this id, or null if there is none. Returns a promise only if the bot is not cached. A call
   * that renames a bot waits until the bot is removed from the cache of every node.
   */
  botById(id: number): Known<Bot> {
    const memory = this.#bots.get(id);
    return memory !== undefined && this.#fresh(memory, this.#context.time.monotonic())
      ? memory.value
      : this.#lookUpById(id);
  }

  /**
   * Revokes all tokens of these subjects. The caller must already have committed the change. Resolves when each node
   * has acknowledged the epoch or its lease has expired. Afterwards no node accepts the tokens. Several subjects share
   * one epoch and one wait.
   */
  async revoke(...subjects: readonly Subject[]): Promise<void> {
    if (subjects.length === 0) return;
    const raised = await this.#context.scripts.call('auth/revoke', 0, this.#at, {
      subjects: subjects.join(' '),
    });
    // After Redis lost data, waits until every lease has expired. Redis lists a node again only when the node renews
    // its lease, so a missing node may still have a valid lease.
    if (this.#ageOf(raised.incarnation) < leaseMs) {
      await this.#context.time.sleep(leaseMs);
      return;
    }
    if (this.#timer !== undefined) await this.#renewAgain();
    const { scripts, time } = this.#context;
    const pending = (gone: readonly string[]) =>
      scripts.call('auth/pending', 0, this.#at, { ...raised, gone });
    const first = await pending([]);
    // By this time, every lease that was renewed before the revocation has ended.
    const deadline = time.monotonic() + leaseMs;
    for (let left = first.pending; left > 0; left = (await pending([])).pending) {
      if (time.monotonic() < deadline) {
        await time.sleep(10);
        continue;
      }
      // Removes the nodes whose entries have not changed since the first call of `auth/pending`. These nodes have not
      // renewed their leases, so the leases have ended.
      await pending(first.late);
      return;
    }
  }

  /**
   * Runs `change`, which limits the rights of a subject's tokens, and then revokes the tokens. `change` commits in
   * Postgres and refreshes copies in Redis. If Redis cannot accept revocations, commits nothing. If Redis fails after
   * the commit, waits until every lease has expired and then throws the error. Error: `unavailable`.
   */
  async revoking<T>(subject: Subject, change: () => Promise<T>): Promise<T> {
    await this.#assertRevocable(subject);
    try {
      const changed = await change();
      await this.revoke(subject);
      return changed;
    } catch (error) {
      if (error instanceof ApiError && error.kind === 'unavailable') await this.#context.time.sleep(leaseMs);
      throw error;
    }
  }

  /**
   * Calls `listener` when cached data of the subject becomes invalid, for example after a revocation. Returns a
   * function that removes the listener.
   */
  onForgotten(subject: Subject, listener: () => void) {
    const those = this.#listeners.get(subject) ?? new Set();
    this.#use(this.#context.time.monotonic());
    this.#listeners.set(subject, those.add(listener));
    return () => {
      those.delete(listener);
      if (those.size === 0 && this.#listeners.get(subject) === those) this.#listeners.delete(subject);
    };
  }

  async start() {
    if (this.#timer !== undefined) return;
    this.#unlisten = await this.#hints.listen(this.#at.channel, () => void this.#renewAgain());
    await this.#renew();
    this.#usedAt = this.#context.time.monotonic();
    this.#keepLease();
  }

  async stop() {
    this.#context.time.cancel(this.#timer);
    this.#resting = false;
    this.#unlisten?.();
    this.#leaseUntil = 0;
    await this.#tokenUse.flush();
    await this.#context.scripts
      .call('auth/leave', 0, { nodes: this.#at.nodes }, { node: this.#node })
      .catch(() => undefined);
  }

  /**
   * Returns figures about the cache. `leased` is true while the lease is valid. It is also true if the lease expired
   * only because the node got no request for limits.auth_idle_ms.
   */
  get stats() {
    return {
      remembered: this.#memories.size,
      epoch: this.#epoch,
      leased: this.#resting || this.#context.time.monotonic() < this.#leaseUntil,
    };
  }
}
