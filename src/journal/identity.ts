/**
 * Prevents a node from using a Redis and a Postgres that do not belong to the same installation. Both store the id of
 * the installation and a generation, which counts how often the installation has started with an empty Redis. A node
 * compares the two at its start, at each new connection to Redis, and every four seconds. It does not use a Redis that
 * does not match. An empty Redis becomes the next generation, unless other nodes still use the current one.
 */

import {
  forgetNode,
  loadIdentity,
  lockIdentity,
  noteNode,
  type OpenedAs,
  type OtherNode,
  type PostgresIdentity,
  saveGeneration,
} from '../postgres/identity.js';
import { createPool, type Pool } from '../postgres/pool.js';
import { type Random, systemRandom } from '../random.js';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import { shared } from '../shared.js';
import type { Keys } from '../store/core/keys.js';
import { systemTime, type Time } from '../time.js';
import { journalLimits as limits } from './limits.js';

/**
 * The error that Redis and Postgres do not belong to the same installation. The message states the reason and the
 * remedy.
 */
export class IdentityError extends Error {
  /** Whether the problem may disappear without an operator's help. */
  readonly passing: boolean;

  constructor(message: string, passing = false) {
    super(message);
    this.passing = passing;
  }
}

export interface RedisIdentity {
  /** The id of the installation, or null if no node of this version has used this Redis. */
  readonly id: string | null;
  readonly generation: number;
  /** Whether partitions were opened in this Redis. */
  readonly used: boolean;
  /** The Redis run id that was stored when partition 0 was last opened. `sealed` after a clean shutdown. */
  readonly run: string | null;
  /** The seal of partition 0, which a clean shutdown of Redis leaves. Null if there is none. */
  readonly seal: string | null;
}

/**
 * The condition on which a node may start to use an empty Redis. The former Redis is the one that the installation used
 * last.
 * - `unless_used` (roles): only if no other node uses the former Redis.
 * - `never` (commands): only if the installation has never used a Redis.
 * - `rebuild` (`petrel redis rebuild`): unless another node can still reach the former Redis. The new Redis may be one
 *   that the installation used earlier.
 */
export type Adoption = 'unless_used' | 'never' | 'rebuild';

/** The generation to use and whether Redis already stores it, or the reason why Redis is refused. */
export type Decision =
  | { readonly generation: number; readonly marked: boolean }
  | { readonly refusal: IdentityError };

const rebuildHint = 'stop all nodes and run "petrel redis rebuild" with this REDIS_URL';
const nodesText = (count: number) => `${count} ${count === 1 ? 'node' : 'nodes'}`;

function holdersOf(others: readonly OtherNode[], generation: number, adoption: Adoption): number {
  const holding = others.filter((other) => other.generation === generation);
  return (adoption === 'rebuild' ? holding.filter(({ away }) => !away) : holding).length;
}

/** Returns whether the node that last opened partition 0 in this Redis used this Postgres. */
const openedHere = ({ run, seal }: RedisIdentity, opened: OpenedAs | null): boolean =>
  opened !== null &&
  run !== null &&
  (run === opened.run_id || run === opened.seal_run || (run === 'sealed' && seal === opened.seal));

function refuse(message: string, passing = false): Decision {
  return { refusal: new IdentityError(message, passing) };
}

/**
 * Compares the identities in Redis and Postgres, and decides whether to use this Redis. Changes nothing. `isSameServer`
 * says that this Redis server had the current generation until a moment ago. If the generation is gone, the server has
 * just lost its data.
 */
export function decide(
  redis: RedisIdentity,
  postgres: PostgresIdentity,
  others: readonly OtherNode[],
  opened: OpenedAs | null,
  adoption: Adoption,
  isSameServer = false,
): Decision {
  if (redis.id !== null && redis.id !== postgres.id)
    return refuse(
      `this Redis belongs to the installation ${redis.id}, and DATABASE_URL to ${postgres.id}: one of them is the wrong server`,
    );
  // A greater generation in Redis means that Postgres was restored to an earlier state.
  if (redis.id !== null && redis.generation >= postgres.generation)
    return { generation: redis.generation, marked: true };
  const next: Decision = { generation: postgres.generation + 1, marked: false };
  const holders =
    isSameServer || postgres.generation === 0 ? 0 : holdersOf(others, postgres.generation, adoption);
  const using = `${nodesText(holders)} of this installation ${holders === 1 ? 'uses' : 'use'} another one`;
  if (redis.id !== null || (redis.used && !openedHere(redis, opened))) {
    const what =
      redis.id !== null
        ? 'this Redis is a former one of this installation, which uses another one since'
        : 'this Redis is in use and does not name its installation';
    if (adoption !== 'rebuild') return refuse(`${what}: correct REDIS_URL, or ${rebuildHint}`);
    return holders > 0 ? refuse(`${what}; ${using}: stop them first`) : next;
  }
  const empty = redis.used ? 'this Redis does not name its installation' : 'this Redis is empty';
  if (holders > 0)
    return refuse(
      `${empty}, and ${using}: correct REDIS_URL, or if Redis lost its data, ${rebuildHint}`,
      true,
    );
  if (adoption === 'never' && postgres.generation > 0 && !redis.used)
    return refuse(
      'this Redis is empty, and the installation has used one: correct REDIS_URL, or if Redis lost its data, start a role or run "petrel redis rebuild"',
    );
  return next;
}

export interface IdentityOptions {
  /**
   * The URL of Postgres. Each decision opens its own connection, because calls on the shared pool wait until Redis is
   * accepted.
   */
  readonly url: string;
  readonly keys: Keys;
  readonly node: string;
  readonly adoption: Adoption;
  readonly time?: Time;
  readonly random?: Random;
  /**
   * `onRefused` is called when this node refuses Redis or Postgres, `onAdopted` when the installation starts to use an
   * empty Redis.
   */
  readonly onRefused: (reason: string) => void;
  readonly onAdopted: (generation: number) => void;
  readonly onError: (error: Error) => void;
}

/** Stores the identity in a Redis. Refuses if another node has already stored a later generation. */
const mark = `local known = redis.call('HMGET', KEYS[1], 'ID', 'GENERATION')
if known[1] == ARGV[1] and tonumber(known[2] or 0) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'ID', ARGV[1], 'GENERATION', ARGV[2])
return 1`;

const refusedRest_ms = 500;
const failedRest_ms = 100;

/**
 * Returns true if the error says that the partition has left this server or is about to leave it. The partition's new
 * server is checked when a connection to that server opens. Rethrows any other error after a pause.
 */
async function isElsewhere(time: Time, error: Error): Promise<boolean> {
  if (/^(MOVED|ASK|TRYAGAIN)/.test(error.message)) return true;
  await time.sleep(failedRest_ms);
  throw error;
}

export class Identity {
  readonly #options: IdentityOptions;
  readonly #time: Time;
  readonly #random: Random;
  #own: PostgresIdentity = { id: '', generation: 0, held: true };
  #refusal: IdentityError | null = null;
  /** The message of the last reported refusal. Reset to '' when Redis is accepted. */
  #reported = '';
  /**
   * The last reported message about any cluster master except the one that serves partition 0. It stays set when the
   * master of partition 0 is accepted.
   */
  #reportedOfMaster = '';

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#random = options.random ?? systemRandom;
  }

  readonly id = (): string => this.#own.id;
  readonly held = (): boolean => this.#own.held;
  /** The reason why this node does not use Redis now, or null if it does. */
  readonly refusal = (): IdentityError | null => this.#refusal;

  async open(check: (pool: Pool) => Promise<void>): Promise<void> {
    this.#own = await this.#withPool(async (pool) => {
      await check(pool);
      return loadIdentity(pool);
    });
  }

  /** Checks a new connection to Redis. Returns false if the connection must not be used. */
  async admit(connection: RedisConnection, partition: number | null): Promise<boolean> {
    if (partition === null) return true;
    const admitted =
      partition === 0
        ? await this.#mayUse(connection).catch((error) => isElsewhere(this.#time, error))
        : await this.#isOfOurs(connection, partition).catch((error) => isElsewhere(this.#time, error));
    if (!admitted) await this.#time.sleep(refusedRest_ms * (0.75 + this.#random.number() / 2));
    return admitted;
  }

  checkPostgres(id: string | null): void {
    if (id === this.#own.id) return;
    const error = new IdentityError(
      `DATABASE_URL leads to the installation ${id ?? 'without an id'}, and this node works for ${this.#own.id}`,
    );
    this.#reportRefused(error);
    throw error;
  }

  watch(pool: Pool, connection: RedisServers): () => Promise<void> {
    const { node, onError } = this.#options;
    const lookOnce = shared(() => this.#look(pool, connection).catch(onError));
    lookOnce();
    const stop = this.#time.repeat(limits.identity_check_ms, lookOnce);
    return async () => {
      stop();
      await lookOnce.running();
      await forgetNode(pool, node).catch(onError);
    };
  }

  #reportRefused(error: IdentityError): void {
    if (this.#reported !== error.message) this.#options.onRefused(error.message);
    this.#reported = error.message;
  }

  #accept(): true {
    this.#refusal = null;
    this.#reported = '';
    return true;
  }

  #withPool<T>(work: (pool: Pool) => Promise<T>): Promise<T> {
    const { url, onError } = this.#options;
    const pool = createPool({ url, max: 1, name: 'identity', onError });
    return work(pool).finally(() => pool.close());
  }

  async #read({ client }: RedisConnection): Promise<RedisIdentity> {
    const [[id, generation, partitions], [run, seal]] = await Promise.all([
      client.hmget(this.#options.keys.installation(), 'ID', 'GENERATION', 'PARTITIONS'),
      client.hmget(this.#options.keys.meta(0), 'run', 'seal'),
    ]);
    return {
      id: id ?? null,
      generation: Number(generation ?? 0),
      used: (partitions ?? run ?? null) !== null,
      run: run ?? null,
      seal: seal ?? null,
    };
  }

  #matches({ id, generation }: RedisIdentity): boolean {
    return id === this.#own.id && generation === this.#own.generation;
  }

  /**
   * Decides under a lock in Postgres, and records the generation that this node uses. All connections to the same Redis
   * share one decision.
   */
  readonly #settle = shared(async (connection: RedisConnection, isSameServer: boolean): Promise<Decision> => {
    const { node, adoption, keys, onAdopted } = this.#options;
    const decision = await this.#withPool((pool) =>
      pool.transaction(async (tx) => {
        const { others, opened, ...postgres } = await lockIdentity(tx, node);
        // Reads the identity again, because another node may have stored it while this node waited for the lock.
        const found = await this.#read(connection);
        const decided = decide(found, postgres, others, opened, adoption, isSameServer);
        const generation = 'refusal' in decided ? null : decided.generation;
        if (generation !== null && generation !== postgres.generation) await saveGeneration(tx, generation);
        if (adoption === 'unless_used') await noteNode(tx, node, { generation, away: false });
        if (generation !== null) this.#own = { ...postgres, generation };
        // If the commit fails, the next decision finds the higher generation in Redis and stores it in Postgres.
        if (!('refusal' in decided) && !decided.marked)
          await connection.client.eval(mark, 1, keys.installation(), postgres.id, decided.generation);
        return decided;
      }),
    );
    if (!('refusal' in decision) && !decision.marked && decision.generation > 1)
      onAdopted(decision.generation);
    return decision;
  });

  #judge(decision: Decision): boolean {
    if (!('refusal' in decision)) return this.#accept();
    this.#refusal = decision.refusal;
    // Reports only lasting refusals, because a temporary one may end as soon as the other nodes notice the same
    // problem.
    if (!this.#refusal.passing) this.#reportRefused(this.#refusal);
    return false;
  }

  async #mayUse(connection: RedisConnection): Promise<boolean> {
    const matches = this.#matches(await this.#read(connection));
    return matches ? this.#accept() : this.#judge(await this.#settle(connection, false));
  }

  /**
   * Returns whether a cluster master belongs to this installation. A used partition stores the id of the installation
   * that used it, so a master of another cluster is recognised by that id.
   */
  async #isOfOurs({ client }: RedisConnection, partition: number): Promise<boolean> {
    const of = await client.hget(this.#options.keys.meta(partition), 'of');
    if (of === null || of === this.#own.id) return true;
    this.#refusal = new IdentityError(
      `a master of this Redis Cluster belongs to the installation ${of}, and DATABASE_URL to ${this.#own.id}`,
    );
    if (this.#reportedOfMaster !== this.#refusal.message) this.#options.onRefused(this.#refusal.message);
    this.#reportedOfMaster = this.#refusal.message;
    return false;
  }

  async #look(pool: Pool, connection: RedisServers): Promise<void> {
    const server = connection.at(0);
    const usable = server?.runId() ? server : null;
    const found = usable && (await this.#read(usable));
    // If Redis is unreachable, this node still counts as using it, because this Redis may have the only copy of some
    // data.
    const holds = this.#refusal === null && (found === null || this.#matches(found));
    const state = { generation: holds ? this.#own.generation : null, away: found === null };
    const { id, generation, held } = await noteNode(pool, this.#options.node, state);
    if (id === this.#own.id) this.#own = { ...this.#own, held };
    if (usable === null || (found !== null && this.#matches(found) && generation === this.#own.generation))
      return;
    if (id !== this.#own.id || this.#judge(await this.#settle(usable, generation === this.#own.generation)))
      return;
    // Drops the connections. New connections are refused until one of them reaches a matching Redis.
    for (const { client } of connection.nodes()) client.disconnect(true);
  }
}
