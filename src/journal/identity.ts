/**
 * Prevents a node from using a Redis and a Postgres that do not belong together. Both store the id of the
 * installation and a generation: how often the installation began to use an empty Redis. A node compares them at its
 * start, at each new connection and every four seconds, and uses no Redis that does not match. An empty Redis becomes
 * the next generation unless other nodes use the current one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
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
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';

/** Redis and Postgres do not belong together. The message says why, and what the operator should do. */
export class IdentityError extends Error {
  /** Whether the problem may go away without an operator. */
  readonly passing: boolean;

  constructor(message: string, passing = false) {
    super(message);
    this.passing = passing;
  }
}

/** The identity that a Redis stores. */
export interface RedisIdentity {
  /** Id of the installation; null in a Redis that no node of this version has used. */
  readonly id: string | null;
  readonly generation: number;
  /** Whether partitions were opened in this Redis. */
  readonly used: boolean;
  /** Run id under which partition 0 was opened, and its seal if the partition is closed. */
  readonly run: string | null;
  readonly seal: string | null;
}

/**
 * What to do with an empty Redis. A role uses it unless other nodes use the current one (`unless_used`); a command
 * never does (`never`). `petrel redis rebuild` (`rebuild`) also uses it while the Redis of the other nodes is
 * unavailable, and can return to a former Redis.
 */
export type Adoption = 'unless_used' | 'never' | 'rebuild';

/**
 * The generation under which a Redis may be used and whether it already carries it, or the reason why it may not be
 * used.
 */
export type Decision =
  | { readonly generation: number; readonly marked: boolean }
  | { readonly refusal: IdentityError };

const rebuildHint = 'stop all nodes and run "petrel redis rebuild" with this REDIS_URL';
const nodesText = (count: number) => `${count} ${count === 1 ? 'node' : 'nodes'}`;

function holdersOf(others: readonly OtherNode[], generation: number, adoption: Adoption): number {
  const holding = others.filter((other) => other.generation === generation);
  return (adoption === 'rebuild' ? holding.filter(({ away }) => !away) : holding).length;
}

/** Whether partition 0 was last opened by a node on this Postgres. */
const openedHere = ({ run, seal }: RedisIdentity, opened: OpenedAs | null): boolean =>
  opened !== null &&
  run !== null &&
  (run === opened.run_id || run === opened.seal_run || (run === 'sealed' && seal === opened.seal));

function refuse(message: string, passing = false): Decision {
  return { refusal: new IdentityError(message, passing) };
}

/**
 * Compares the identities in Redis and Postgres; a pure function. `isSameServer`: this server had the current
 * generation a moment ago and has lost its data.
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
  // A greater generation in Redis shows that Postgres was restored to an earlier state.
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
  /** URL of Postgres: decisions use their own connection, because calls on the pool wait for Redis. */
  readonly url: string;
  readonly keys: Keys;
  /** Name of this node. */
  readonly node: string;
  readonly adoption: Adoption;
  /**
   * Called when this node stops using Redis or Postgres, and when an empty Redis becomes the Redis of the
   * installation.
   */
  readonly onRefused: (reason: string) => void;
  readonly onAdopted: (generation: number) => void;
  readonly onError: (error: Error) => void;
}

export interface Identity {
  /** Reads the id of the installation after `check` has passed. Must be called first. */
  open(check: (pool: Pool) => Promise<void>): Promise<void>;
  /** Id of the installation. */
  id(): string;
  /** Checks each new connection to Redis before it is used. Returns false if it must not be used. */
  admit(connection: RedisConnection, partition: number | null): Promise<boolean>;
  /** Throws if a connection leads to the Postgres of another installation. */
  checkPostgres(id: string | null): void;
  /** Whether the last check found that no request may be sent to receivers outside. */
  held(): boolean;
  /** Why Redis is not used at the moment; null while it is used. */
  refusal(): IdentityError | null;
  /** Compares Redis and Postgres every limits.identity_check_ms. Returns a function that ends this. */
  watch(pool: Pool, connection: RedisServers): () => Promise<void>;
}

/** Marks a Redis, unless another node marked it later. */
const mark = `local known = redis.call('HMGET', KEYS[1], 'ID', 'GENERATION')
if known[1] == ARGV[1] and tonumber(known[2] or 0) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'ID', ARGV[1], 'GENERATION', ARGV[2])
return 1`;

const refusedRest_ms = 500;
const failedRest_ms = 100;

/**
 * Whether the partition has moved from this server or is about to. The server that gets it is checked when a
 * connection to it opens.
 */
async function isElsewhere(error: Error): Promise<boolean> {
  if (/^(MOVED|ASK|TRYAGAIN)/.test(error.message)) return true;
  await sleep(failedRest_ms);
  throw error;
}

export function createIdentity(options: IdentityOptions): Identity {
  const { url, keys, node, adoption, onRefused, onAdopted, onError } = options;
  let own: PostgresIdentity = { id: '', generation: 0, held: true };
  let refusal: IdentityError | null = null;
  let told = '';
  /** The last report about a master. The master of partition 0 may be accepted in between. */
  let toldOfMaster = '';
  let deciding: Promise<Decision> | undefined;

  function tellRefused(error: IdentityError): void {
    if (told !== error.message) onRefused(error.message);
    told = error.message;
  }

  function accept(): void {
    refusal = null;
    told = '';
  }

  const withPool = async <T>(work: (pool: Pool) => Promise<T>): Promise<T> => {
    const pool = createPool({ url, max: 1, name: 'identity', onError });
    return work(pool).finally(() => pool.close());
  };

  async function read({ client }: RedisConnection): Promise<RedisIdentity> {
    const [[id, generation, partitions], [run, seal]] = await Promise.all([
      client.hmget(keys.installation(), 'ID', 'GENERATION', 'PARTITIONS'),
      client.hmget(keys.meta(0), 'run', 'seal'),
    ]);
    return {
      id: id ?? null,
      generation: Number(generation ?? 0),
      used: (partitions ?? run ?? null) !== null,
      ...{ run: run ?? null, seal: seal ?? null },
    };
  }

  const matches = ({ id, generation }: RedisIdentity) => id === own.id && generation === own.generation;

  /** Decides under a lock in Postgres and records the generation this node uses. */
  async function settle(connection: RedisConnection, isSameServer: boolean): Promise<Decision> {
    const found = await read(connection);
    const decision = await withPool((pool) =>
      pool.transaction(async (tx) => {
        const { others, opened, ...postgres } = await lockIdentity(tx, node);
        const decided = decide(found, postgres, others, opened, adoption, isSameServer);
        const generation = 'refusal' in decided ? null : decided.generation;
        if (generation !== null && generation !== postgres.generation) await saveGeneration(tx, generation);
        if (adoption === 'unless_used') await noteNode(tx, node, { generation, away: false });
        if (generation !== null) own = { ...postgres, generation };
        return decided;
      }),
    );
    if (!('refusal' in decision) && !decision.marked) {
      const { generation } = decision;
      await connection.client.eval(mark, 1, keys.installation(), own.id, generation);
      if (generation > 1) onAdopted(generation);
    }
    return decision;
  }

  /** Shares one decision among connections that reach the same Redis. */
  function settleOnce(connection: RedisConnection, isSameServer: boolean): Promise<Decision> {
    deciding ??= settle(connection, isSameServer).finally(() => {
      deciding = undefined;
    });
    return deciding;
  }

  function judge(decision: Decision): boolean {
    if ('refusal' in decision) {
      refusal = decision.refusal;
      // Other nodes may be about to find the same, so only a lasting refusal is reported.
      if (!refusal.passing) tellRefused(refusal);
    } else accept();
    return !('refusal' in decision);
  }

  async function mayUse(connection: RedisConnection): Promise<boolean> {
    if (!matches(await read(connection))) return judge(await settleOnce(connection, false));
    accept();
    return true;
  }

  /**
   * Whether a Redis server holds a partition of this installation. A master of another cluster holds partitions of
   * another one.
   */
  async function isOfOurs({ client }: RedisConnection, partition: number): Promise<boolean> {
    const of = await client.hget(keys.meta(partition), 'of');
    if (of === null || of === own.id) return true;
    refusal = new IdentityError(
      `a master of this Redis Cluster belongs to the installation ${of}, and DATABASE_URL to ${own.id}`,
    );
    if (toldOfMaster !== refusal.message) onRefused(refusal.message);
    toldOfMaster = refusal.message;
    return false;
  }

  async function look(pool: Pool, connection: RedisServers): Promise<void> {
    const server = connection.at(0);
    const usable = server?.runId() ? server : null;
    const found = usable && (await read(usable));
    // An unreachable Redis still counts as in use: it may hold data that exists nowhere else.
    const holds = refusal === null && (found === null || matches(found));
    const state = { generation: holds ? own.generation : null, away: found === null };
    const { id, generation, held } = await noteNode(pool, node, state);
    if (id === own.id) own = { ...own, held };
    if (usable === null || (found !== null && matches(found) && generation === own.generation)) return;
    if (id !== own.id || judge(await settleOnce(usable, generation === own.generation))) return;
    // New connections are refused until one reaches a Redis that matches.
    for (const { client } of connection.nodes()) client.disconnect(true);
  }

  return {
    async open(check) {
      own = await withPool(async (pool) => {
        await check(pool);
        return loadIdentity(pool);
      });
    },
    id: () => own.id,
    async admit(connection, partition) {
      if (partition === null) return true;
      const admitted =
        partition === 0
          ? await mayUse(connection).catch(isElsewhere)
          : await isOfOurs(connection, partition).catch(isElsewhere);
      if (!admitted) await sleep(refusedRest_ms * (0.75 + Math.random() / 2));
      return admitted;
    },
    checkPostgres(id) {
      if (id === own.id) return;
      const error = new IdentityError(
        `DATABASE_URL leads to the installation ${id ?? 'without an id'}, and this node works for ${own.id}`,
      );
      tellRefused(error);
      throw error;
    },
    held: () => own.held,
    refusal: () => refusal,
    watch(pool, connection) {
      let looking: Promise<void> | undefined;
      const lookOnce = () => {
        looking ??= look(pool, connection)
          .catch(onError)
          .finally(() => {
            looking = undefined;
          });
      };
      lookOnce();
      const timer = setInterval(lookOnce, limits.identity_check_ms);
      timer.unref();
      return async () => {
        clearInterval(timer);
        await looking;
        await forgetNode(pool, node).catch(onError);
      };
    },
  };
}
