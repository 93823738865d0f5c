/**
 * Removes the journaled entities of some partitions from Redis. This is needed if Redis lost changes that are already
 * in Postgres, because Redis then has outdated copies of the changed entities. Removed entities are loaded from
 * Postgres again on demand.
 */
import { type Random, systemRandom } from '../random.js';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { unavailable } from '../redis/waiting.js';
import type { Keys } from '../store/core/keys.js';
import { systemTime, type Time } from '../time.js';
import { journalLimits as limits } from './limits.js';

interface ForgetterOptions {
  readonly keys: Keys;
  readonly connection: RedisServers;
  readonly runner: () => ScriptRunner;
  readonly time?: Time;
  readonly random?: Random;
}

interface Round {
  readonly partitions: Set<number>;
  readonly done: Promise<ReadonlySet<number>>;
}

export const scanKeys = 1_000;

/** Returns the part of a key before its id, for example `{tag}:msg:` for the key `{tag}:msg:12.5:7`. */
export const rootOf = (key: string): string => key.slice(0, key.indexOf(':', key.indexOf('}') + 2) + 1);

type Found = Map<number, string[]>;

export class Forgetter {
  readonly #options: ForgetterOptions;
  readonly #time: Time;
  readonly #owner: string;
  /** The next removal pass for each Redis, keyed by the Redis run id. It starts when the current pass has ended. */
  readonly #waiting = new Map<string, Round>();
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(options: ForgetterOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#owner = (options.random ?? systemRandom).uuid();
  }

  /**
   * Removes the entities of closed partitions from the Redis with this run id. Requests that arrive during a removal
   * pass share the next pass. Returns the partitions whose entities are all removed. A partition that is missing from
   * the result is being processed by another node, or another node has already opened it. Errors: `unavailable` while
   * Redis is unavailable.
   */
  forget(partitions: readonly number[], runId: string): Promise<ReadonlySet<number>> {
    const next = this.#waiting.get(runId);
    if (next) {
      for (const partition of partitions) next.partitions.add(partition);
      return next.done;
    }
    const wanted = new Set(partitions);
    const before = this.#underWay.get(runId) ?? Promise.resolve();
    const done = before
      .catch(() => undefined)
      .then(() => {
        this.#waiting.delete(runId);
        return this.#pass(wanted, runId);
      })
      .finally(() => {
        if (this.#underWay.get(runId) === done) this.#underWay.delete(runId);
      });
    this.#waiting.set(runId, { partitions: wanted, done });
    this.#underWay.set(runId, done);
    return done;
  }

  async #pass(partitions: ReadonlySet<number>, runId: string): Promise<ReadonlySet<number>> {
    const byNode = new Map<RedisConnection, Set<number>>();
    for (const partition of partitions) {
      if (!(await this.#remove(partition, [], runId))) continue;
      const node = this.#options.connection.at(partition);
      if (node !== null) byNode.set(node, (byNode.get(node) ?? new Set()).add(partition));
    }
    await Promise.all([...byNode].map(([node, held]) => this.#sweep(node, held, runId)));
    return new Set([...byNode.values()].flatMap((held) => [...held]));
  }

  /**
   * Scans a server's keys once and removes the entities of the partitions in `held`. Each batch renews the leases,
   * which last much longer than a batch takes. Removes a partition from `held` if another node now has its lease.
   */
  async #sweep(node: RedisConnection, held: Set<number>, runId: string): Promise<void> {
    const { keys } = this.#options;
    const partitionOf = new Map(
      [...held].flatMap((partition) => keys.journaledRoots(partition).map((root) => [root, partition])),
    );
    const found: Found = new Map();
    let renewed = this.#time.monotonic();
    let cursor = '0';
    do {
      const [next, page] = await node.client
        .scan(cursor, 'COUNT', scanKeys)
        .catch((error: Error) => Promise.reject(unavailable(error.message)));
      for (const key of page) {
        const partition = partitionOf.get(rootOf(key));
        if (partition === undefined) continue;
        const entities = found.get(partition) ?? [];
        found.set(partition, entities);
        entities.push(key);
      }
      await this.#removeFound(found, limits.forget_batch_keys_max, held, runId);
      if (this.#time.monotonic() - renewed > limits.forget_lease_ms / 3) {
        renewed = this.#time.monotonic();
        for (const partition of held) if (!found.has(partition)) found.set(partition, []);
        await this.#removeFound(found, -1, held, runId);
      }
      cursor = next;
    } while (cursor !== '0');
    await this.#removeFound(found, -1, held, runId);
  }

  async #removeFound(found: Found, min: number, held: Set<number>, runId: string): Promise<void> {
    for (const [partition, entities] of found) {
      if (entities.length <= min) continue;
      found.delete(partition);
      if (held.has(partition) && !(await this.#remove(partition, entities, runId))) held.delete(partition);
    }
  }

  async #remove(partition: number, entities: string[], expected: string): Promise<boolean> {
    const { keys, runner } = this.#options;
    const at = { meta: keys.meta(partition), lease: keys.forgetting(partition), entities };
    const result = await runner().call('partition/forget', partition, at, { expected, owner: this.#owner });
    return result.status === 'ok';
  }
}
