/**
 * Removes the journaled entities of some partitions from Redis. After Redis lost changes that had reached Postgres,
 * its copies of these entities are outdated. They are read from Postgres again when they are needed.
 */
import { randomUUID } from 'node:crypto';
import { limits } from '../limits.js';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';

export interface Forgetter {
  /**
   * Removes the entities of partitions that are closed to the Redis with this run id. Requests made during a pass
   * over a server's keys share the next pass. Returns the partitions that hold no entities any more; another node
   * works on the others, or has opened them. Errors: `unavailable` while Redis is unavailable.
   */
  forget(partitions: readonly number[], runId: string): Promise<ReadonlySet<number>>;
}

interface Round {
  readonly partitions: Set<number>;
  readonly done: Promise<ReadonlySet<number>>;
}

const scanKeys = 1_000;

/** Key prefix of an entity: `{tag}:msg:` of `{tag}:msg:12.5:7`. */
const rootOf = (key: string): string => key.slice(0, key.indexOf(':', key.indexOf('}') + 2) + 1);

export function createForgetter(options: {
  readonly keys: Keys;
  readonly connection: RedisServers;
  readonly runner: () => ScriptRunner;
}): Forgetter {
  const { keys, connection, runner } = options;
  const owner = randomUUID();
  /** The pass that starts after the current one, by run id. */
  const waiting = new Map<string, Round>();
  const underWay = new Map<string, Promise<unknown>>();

  /** Removes entities of a partition. Returns false when another node owns the partition now. */
  async function remove(partition: number, entities: readonly string[], expected: string): Promise<boolean> {
    const at = { meta: keys.meta(partition), lease: keys.forgetting(partition), entities: [...entities] };
    return (await runner().call('partition/forget', partition, at, { expected, owner })).status === 'ok';
  }

  /** One pass over the keys of a server. Every batch renews the leases; a lease lasts much longer than a batch. */
  async function sweep(node: RedisConnection, held: Set<number>, runId: string): Promise<void> {
    const partitionOf = new Map(
      [...held].flatMap((partition) => keys.journaledRoots(partition).map((root) => [root, partition])),
    );
    const found = new Map<number, string[]>();
    const removeFound = async (min: number) => {
      for (const [partition, entities] of found) {
        if (entities.length <= min && min > 0) continue;
        found.delete(partition);
        if (held.has(partition) && !(await remove(partition, entities, runId))) held.delete(partition);
      }
    };
    let renewed = performance.now();
    for (let cursor = '0'; ; ) {
      const [next, page] = await node.client.scan(cursor, 'COUNT', scanKeys);
      for (const key of page) {
        const partition = partitionOf.get(rootOf(key));
        if (partition === undefined) continue;
        const entities = found.get(partition) ?? [];
        found.set(partition, entities);
        entities.push(key);
      }
      await removeFound(limits.forget_batch_keys_max);
      if (performance.now() - renewed > limits.forget_lease_ms / 3) {
        renewed = performance.now();
        for (const partition of held) if (!found.has(partition)) found.set(partition, []);
        await removeFound(0);
      }
      cursor = next;
      if (cursor === '0') break;
    }
    await removeFound(0);
  }

  async function pass(partitions: ReadonlySet<number>, runId: string): Promise<ReadonlySet<number>> {
    const held = new Set<number>();
    for (const partition of partitions) if (await remove(partition, [], runId)) held.add(partition);
    const byNode = new Map<RedisConnection, Set<number>>();
    for (const partition of held) {
      const node = connection.at(partition);
      if (node === null) continue;
      byNode.set(node, (byNode.get(node) ?? new Set()).add(partition));
    }
    await Promise.all([...byNode].map(([node, own]) => sweep(node, own, runId)));
    return new Set([...byNode.values()].flatMap((own) => [...own]));
  }

  return {
    forget(partitions, runId) {
      const present = waiting.get(runId);
      if (present) {
        for (const partition of partitions) present.partitions.add(partition);
        return present.done;
      }
      const wanted = new Set(partitions);
      const before = underWay.get(runId) ?? Promise.resolve();
      const done = before
        .catch(() => undefined)
        .then(() => {
          waiting.delete(runId);
          return pass(wanted, runId);
        });
      waiting.set(runId, { partitions: wanted, done });
      underWay.set(runId, done);
      const settled = () => {
        if (underWay.get(runId) === done) underWay.delete(runId);
      };
      done.then(settled, settled);
      return done;
    },
  };
}
