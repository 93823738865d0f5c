/**
 * Resolves tokens to their owners, and ids to bots. A node caches both while its lease is fresh. A revocation returns
 * only when no node can still have the revoked token in its cache (architecture, Authentication). Bot names are cached
 * under the same lease, so renaming a bot revokes them too.
 *
 * A lease starts when its renewal was sent and is checked by the monotonic clock at each request. A node that was
 * suspended or disconnected therefore finds its lease expired and asks Redis. A lookup that overlaps a change of epoch
 * is not cached.
 */

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from '../../clock.js';
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import { moveUserToken } from '../../postgres/accounts/rotation.js';
import type { Hints } from '../../redis/hints.js';
import { parseToken } from '../../rules/token.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import type { Bot, ControlCopies, User } from '../core/control.js';
import { createTokenUse } from './token_use.js';

export type Subject = `bot:${number}` | `user:${number}`;

export interface Auth {
  /** The bot of a token, synchronously if cached. Null if the token is not valid. */
  bot(token: string): Bot | null | Promise<Bot | null>;
  user(token: string): User | null | Promise<User | null>;
  /** Whether this node has the token in its cache and received no revocation since. The entry may have expired. */
  remembers(token: string): boolean;
  /**
   * The person of a token from an external issuer. `resolve` is called for tokens that are not cached. Its result is
   * trusted, and cached until the token expires (`expiresAt`, Unix ms) at the latest.
   */
  external(
    token: string,
    resolve: () => Promise<{ readonly id: number; readonly expiresAt: number } | null>,
  ): User | null | Promise<User | null>;
  /**
   * A bot by id, synchronously if cached. The cache obeys revocations, so no node shows an old name once the renaming
   * call has returned. Null if there is no such bot.
   */
  botById(id: number): Bot | null | Promise<Bot | null>;
  /**
   * Resolves when no node accepts the revoked tokens: every node has acknowledged, or its lease has expired. The caller
   * must have committed the change before. Several subjects share one epoch and one wait.
   */
  revoke(...subjects: readonly Subject[]): Promise<void>;
  /**
   * Runs a change that limits what a subject's tokens may do, and revokes them. `change` commits in Postgres and
   * refreshes copies. Nothing is committed while Redis cannot accept revocations. If Redis fails after the commit, the
   * error is thrown once every lease has expired. Error: `unavailable`.
   */
  revoking<T>(subject: Subject, change: () => Promise<T>): Promise<T>;
  /**
   * Calls `listener` when cached data of a subject becomes invalid, for example by a revocation. Returns the function
   * that unsubscribes.
   */
  onForgotten(subject: Subject, listener: () => void): () => void;
  /** Acquires the lease. Nothing is cached before. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * State of the cache. `leased`: the lease is valid, or was allowed to expire because there was no request for
   * limits.auth_idle_ms.
   */
  readonly stats: { readonly remembered: number; readonly epoch: number; readonly leased: boolean };
  /** Runs between a lookup and caching its result; tests use it to force an interleaving. */
  beforeRemember?: () => Promise<void>;
}

interface Memory<T> {
  readonly value: T;
  /** expiry by the monotonic clock, in whole ms: V8 stores a small integer inside the object */
  readonly until: number;
}

interface TokenMemory extends Memory<Bot | User> {
  readonly kind: 'bot' | 'user';
}

/** Copies a string. A substring of a request's path would keep the whole path in memory. */
const ownText = (text: string): string => Buffer.from(text).toString();

export function createAuth(context: StoreContext, control: ControlCopies, hints: Hints): Auth {
  const { db, scripts, keys, secrets } = context;
  const node = uniqueText();
  const memories = new Map<string, TokenMemory>();
  const bots = new Map<number, Memory<Bot>>();
  const tokensOf = new Map<Subject, Set<string>>();
  const listeners = new Map<Subject, Set<() => void>>();
  const tokenUse = createTokenUse(context.db);
  const at = {
    meta: keys.meta(0),
    nodes: keys.authNodes(),
    revoked: keys.authRevoked(),
    channel: keys.authChannel(),
  };
  let leaseUntil = 0;
  let epoch = 0;
  /** Epochs restart with each incarnation, so this node acknowledges both together. */
  let incarnation = 0;
  /** The incarnation that Redis reported last, and since when by the monotonic clock. */
  let seen = { incarnation: 0, since: 0 };
  /** Incremented whenever cache entries are removed. A lookup that started before is not cached. */
  let forgotten = 0;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;
  /** Time of the last cache access, by the monotonic clock. */
  let usedAt = 0;
  /** True while there are no requests: the lease may expire and revokers need not wait for this node. */
  let resting = false;
  let unlisten: (() => void) | undefined;

  function forget(revoked: readonly string[]): void {
    forgotten++;
    // Subjects revoked together are joined in one text.
    const subjects = revoked.flatMap((text) => text.split(' '));
    if (subjects.includes('*')) {
      memories.clear();
      tokensOf.clear();
      bots.clear();
      for (const those of listeners.values()) for (const listener of those) listener();
      return;
    }
    for (const subject of subjects as Subject[]) {
      for (const token of tokensOf.get(subject) ?? []) memories.delete(token);
      tokensOf.delete(subject);
      if (subject.startsWith('bot:')) bots.delete(Number(subject.slice(4)));
      for (const listener of listeners.get(subject) ?? []) listener();
    }
  }

  /** Milliseconds since this node first saw this incarnation of Redis. */
  function ageOf(present: number): number {
    if (seen.incarnation !== present) seen = { incarnation: present, since: performance.now() };
    return performance.now() - seen.since;
  }

  async function renewOnce(): Promise<void> {
    const sent = performance.now();
    const result = await scripts.call(
      'auth/renew',
      0,
      { meta: at.meta, nodes: at.nodes, revoked: at.revoked },
      { node, known: incarnation, acked: epoch, lease_ms: limits.auth_lease_ms },
    );
    if (result.subjects.length > 0) forget(result.subjects);
    ageOf(result.incarnation);
    const moved = result.epoch !== epoch || result.incarnation !== incarnation;
    epoch = result.epoch;
    incarnation = result.incarnation;
    leaseUntil = sent + limits.auth_lease_ms;
    // Acknowledge the new epoch at once, because the revoker waits for it.
    if (moved) await renewOnce();
  }

  function renew(): Promise<void> {
    renewing ??= renewOnce()
      .catch(() => undefined)
      .finally(() => {
        renewing = undefined;
      });
    return renewing;
  }

  /** Renews after any renewal in progress, which may have started before the hint. */
  async function renewAgain(): Promise<void> {
    await renewing;
    await renew();
  }

  function use(now: number): void {
    usedAt = now;
    if (resting) keepLease();
  }

  function keepLease(): void {
    resting = false;
    timer = setInterval(tick, limits.auth_lease_renew_ms).unref();
    void renew();
  }

  /** Renews the lease, unless there are no requests and no listeners for revocations. */
  function tick(): void {
    resting = listeners.size === 0 && performance.now() - usedAt > limits.auth_idle_ms;
    if (resting) clearInterval(timer);
    else void renew();
  }

  function fresh(memory: Memory<unknown>, now: number): boolean {
    use(now);
    return now < leaseUntil && now < memory.until;
  }

  function rememberBot(value: Bot): void {
    if (bots.size >= limits.auth_cache_entries_max) forget(['*']);
    bots.set(value.id, { value, until: Math.floor(performance.now() + limits.auth_cache_age_ms_max) });
  }

  function remember(
    given: string,
    kind: 'bot' | 'user',
    value: Bot | User,
    ms: number = limits.auth_cache_age_ms_max,
  ): void {
    if (memories.size >= limits.auth_cache_entries_max) forget(['*']);
    const token = ownText(given);
    const subject: Subject = `${kind}:${value.id}`;
    memories.set(token, { value, kind, until: Math.floor(performance.now() + ms) });
    if (!('tokens' in value)) rememberBot(value);
    const tokens = tokensOf.get(subject) ?? new Set();
    tokensOf.set(subject, tokens);
    tokens.add(token);
  }

  /**
   * Rehashes a token under the first pepper, in the background. If it fails, the token stays valid and is rehashed at
   * its next use.
   */
  function moveToFirstPepper(user: number, was: string, token: string): void {
    const [present = ''] = secrets.checks.peppers;
    moveUserToken(db, user, Buffer.from(was, 'base64'), secrets.lookup(token), present)
      .then(async (moved) => {
        if (moved) await control.refresh('user', user);
      })
      .catch(() => undefined);
  }

  async function lookUp(token: string, kind: 'bot' | 'user', id: number): Promise<Bot | User | null> {
    const began = forgotten;
    const value = await control.read(kind, id);
    if (auth.beforeRemember) await auth.beforeRemember();
    if (!value) return null;
    const lookups = secrets.lookups(token).map((lookup) => lookup.toString('base64'));
    const valid = 'tokens' in value ? value.tokens : [value.token];
    const pepper = lookups.findIndex((lookup) => valid.includes(lookup));
    // Tokens of suspended owners are kept, but not accepted.
    if (pepper < 0 || value.state !== undefined) return null;
    if ('tokens' in value) tokenUse.note(secrets.lookup(token));
    // A bot's token can be decrypted, so key rotation rehashes it without its being used.
    if (pepper > 0 && 'tokens' in value) moveToFirstPepper(id, lookups[pepper] as string, token);
    if (began === forgotten) remember(token, kind, value);
    return value;
  }

  async function lookUpExternal(key: string, resolve: Parameters<Auth['external']>[1]): Promise<User | null> {
    const began = forgotten;
    const found = await resolve();
    const user = found && (await control.read('user', found.id));
    if (auth.beforeRemember) await auth.beforeRemember();
    const left = (found?.expiresAt ?? 0) - nowMs();
    if (!user || user.state !== undefined || left <= 0) return null;
    if (began === forgotten) remember(key, 'user', user, Math.min(left, limits.auth_cache_age_ms_max));
    return user;
  }

  async function lookUpById(id: number): Promise<Bot | null> {
    const began = forgotten;
    const bot = await control.read('bot', id);
    if (auth.beforeRemember) await auth.beforeRemember();
    if (bot && began === forgotten) rememberBot(bot);
    return bot;
  }

  function resolve(token: string, kind: 'bot' | 'user'): Bot | User | null | Promise<Bot | User | null> {
    const memory = memories.get(token);
    if (memory !== undefined && fresh(memory, performance.now()))
      return memory.kind === kind ? memory.value : null;
    const parsed = parseToken(token);
    if (parsed === null || parsed.kind !== kind) return null;
    return lookUp(token, kind, parsed.id);
  }

  /** How long a node that cannot renew its lease may still trust its cache. */
  const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;

  /** Throws `unavailable` while Redis cannot accept revocations of this subject. */
  async function assertRevocable(subject: Subject): Promise<void> {
    const [kind, id] = subject.split(':') as ['bot' | 'user', string];
    await Promise.all([
      scripts.call('auth/pending', 0, { nodes: at.nodes }, { epoch: 0 }),
      control.forgetMany(kind, [Number(id)]),
    ]);
  }

  const auth: Auth = {
    bot: (token) => resolve(token, 'bot') as Bot | null | Promise<Bot | null>,
    user: (token) => resolve(token, 'user') as User | null | Promise<User | null>,
    remembers: (token) => memories.has(token),
    external(token, resolve) {
      // External tokens are long. Hash them so that cache keys have a fixed size.
      const key = createHash('sha256').update(token).digest('base64');
      const memory = memories.get(key);
      if (memory !== undefined && fresh(memory, performance.now())) return memory.value as User;
      return lookUpExternal(key, resolve);
    },
    botById(id) {
      const memory = bots.get(id);
      return memory !== undefined && fresh(memory, performance.now()) ? memory.value : lookUpById(id);
    },
    async revoke(...subjects) {
      if (subjects.length === 0) return;
      const raised = await scripts.call('auth/revoke', 0, at, { subjects: subjects.join(' ') });
      // The lease of a node that may still cache the token began earlier, because it starts when its renewal is sent.
      const deadline = performance.now() + leaseMs;
      // After a data loss Redis does not list a node until it renews. Until then an empty list proves nothing.
      if (ageOf(raised.incarnation) < leaseMs) {
        await sleep(leaseMs);
        return;
      }
      if (timer !== undefined) await renewAgain();
      for (;;) {
        const { pending } = await scripts.call(
          'auth/pending',
          0,
          { nodes: at.nodes },
          { epoch: raised.epoch },
        );
        if (pending === 0 || performance.now() >= deadline) return;
        await sleep(10);
      }
    },
    async revoking(subject, change) {
      await assertRevocable(subject);
      try {
        const changed = await change();
        await auth.revoke(subject);
        return changed;
      } catch (error) {
        if (error instanceof ApiError && error.kind === 'unavailable') await sleep(leaseMs);
        throw error;
      }
    },
    onForgotten(subject, listener) {
      const those = listeners.get(subject) ?? new Set();
      use(performance.now());
      listeners.set(subject, those.add(listener));
      return () => {
        those.delete(listener);
        if (those.size === 0 && listeners.get(subject) === those) listeners.delete(subject);
      };
    },
    async start() {
      if (timer !== undefined) return;
      unlisten = await hints.listen(at.channel, () => void renewAgain());
      await renew();
      usedAt = performance.now();
      keepLease();
    },
    async stop() {
      clearInterval(timer);
      resting = false;
      unlisten?.();
      leaseUntil = 0;
      await tokenUse.flush();
      await scripts.call('auth/leave', 0, { nodes: at.nodes }, { node }).catch(() => undefined);
    },
    get stats() {
      return { remembered: memories.size, epoch, leased: resting || performance.now() < leaseUntil };
    },
  };
  return auth;
}
