/**
 * Who a token belongs to, and what a bot is called. A node remembers what it learned of a token, keyed by the token's text,
 * while its lease is fresh; revoking answers only when no node can remember the old token any more (architecture,
 * Authentication). A bot's names are remembered under the same lease, and changing one revokes what was remembered.
 *
 * A lease counts from the moment its renewal was sent and is read by the monotonic clock at each request, so a node that
 * was stopped or cut off finds it stale and asks Redis. A fill that was under way while the epoch moved is not kept.
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
  /** The bot of a token, at once if this node remembers it. Null for a token that is not valid now. */
  bot(token: string): Bot | null | Promise<Bot | null>;
  user(token: string): User | null | Promise<User | null>;
  /** Whether this node has found the token good, and has heard of nothing that ended it since. It may still have to be looked up
   * again. */
  remembers(token: string): boolean;
  /** The person of a token that was issued elsewhere. What `resolve` says of one that is not remembered is believed, and
   * remembered as other tokens are, until it ends (Unix time in ms). */
  external(
    token: string,
    resolve: () => Promise<{ readonly id: number; readonly expiresAt: number } | null>,
  ): User | null | Promise<User | null>;
  /** A bot as it is shown now, by its id: at once if this node remembers it. Memory of it holds as that of tokens does, so
   * that no node shows a former name once the call that changed it has returned. Null when there is no such bot. */
  botById(id: number): Bot | null | Promise<Bot | null>;
  /** Returns when no node accepts what was revoked: every node has acknowledged, or its lease has run out. The truth must
   * have been written before. Many subjects cost one epoch and one wait. */
  revoke(...subjects: readonly Subject[]): Promise<void>;
  /**
   * Runs a change that ends what the tokens of a subject may do, and revokes them. `change` commits in Postgres and refreshes
   * copies. Nothing is committed while Redis takes no revocation. If Redis fails after the commit, the error is answered once
   * every lease has run out. Error: `unavailable`.
   */
  revoking<T>(subject: Subject, change: () => Promise<T>): Promise<T>;
  /** Tells when what was remembered of a subject is no more to be relied on, as after a revocation. Returns what ends it. */
  onForgotten(subject: Subject, listener: () => void): () => void;
  /** Takes up the lease; until then nothing is remembered. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** `leased`: the lease holds, or has run out because nobody asked for limits.auth_idle_ms. */
  readonly stats: { readonly remembered: number; readonly epoch: number; readonly leased: boolean };
  /** For tests that force an interleaving: runs between a look-up and remembering it. */
  beforeRemember?: () => Promise<void>;
}

interface Memory<T> {
  readonly value: T;
  /** monotonic time in whole ms after which it is looked up anew: a small integer lies in the record itself */
  readonly until: number;
}

interface TokenMemory extends Memory<Bot | User> {
  readonly kind: 'bot' | 'user';
}

/** A text in memory of its own. What is cut out of a request's path keeps the path, and is read through it. */
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
  /** Epochs count within an incarnation: this node acknowledges both together. */
  let incarnation = 0;
  /** The incarnation that Redis spoke of last, and since when by the monotonic clock. */
  let seen = { incarnation: 0, since: 0 };
  /** Moves whenever anything was forgotten: a fill that began before is not kept. */
  let forgotten = 0;
  let timer: NodeJS.Timeout | undefined;
  let renewing: Promise<void> | undefined;
  /** Time of the last use of the memory, by the monotonic clock. */
  let usedAt = 0;
  /** Nobody asks: the lease may run out, and a revoker need not wait for it. */
  let resting = false;
  let unlisten: (() => void) | undefined;

  function forget(revoked: readonly string[]): void {
    forgotten++;
    // What was revoked together stands in one text.
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

  /** Milliseconds for which this node has known that Redis is in this incarnation. */
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
    // What was learned is acknowledged at once: a revoker waits for it.
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

  /** A hint may come while a renewal that does not know of it is under way. */
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

  /** Renews unless nobody asks. What listens to revocations counts as asking. */
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

  /** In the background: the token is valid meanwhile, and is moved at its next use if this fails. */
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
    // The token of who is suspended stays theirs, and is not accepted.
    if (pepper < 0 || value.state !== undefined) return null;
    if ('tokens' in value) tokenUse.note(secrets.lookup(token));
    // A bot's token can be read from its box, and moves without being used.
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

  /** How long a node that cannot renew its lease may still trust what it remembers. */
  const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;

  /** Error: `unavailable` while Redis takes no revocation of this subject. */
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
      // Such tokens are long: what is remembered has a bound.
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
      // A node that may still remember began its lease before now, and its clock started when it sent the renewal.
      const deadline = performance.now() + leaseMs;
      // A Redis that lost its data lists a node only once the node has renewed; until then nobody's silence is consent.
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
