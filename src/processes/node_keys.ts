/**
 * Records which keys and peppers the running nodes have. A new node starts only if it and every running node can
 * decrypt each other's values and find tokens by each other's hashes. Without this check, keys that are introduced in
 * the wrong order would make calls fail later. A rotation also checks here whether a node still uses an old key.
 */

import type { Logger } from '../obs/log.js';
import type { Random } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import { redisLimits } from '../redis/limits.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Secrets } from '../store/core/secrets.js';
import { storeLimits } from '../store/limits.js';
import type { Time } from '../time.js';
import { StartError } from './installation.js';

type Checks = Secrets['checks'];

export type NodeKeys = ReturnType<typeof createNodeKeys>;

export interface NodeKeysOptions {
  readonly connection: RedisServers;
  readonly runner: Pick<ScriptRunner, 'call'>;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly time: Time;
  readonly random: Random;
  readonly onError: (error: unknown) => void;
}

/**
 * Returns why two nodes must not run at the same time, or null if they may. Each must be able to use the values that
 * the other writes.
 */
export function conflict(own: Checks, other: Checks): string | null {
  const [key, theirs] = [own.keys[0], other.keys[0]];
  const [pepper, theirPepper] = [own.peppers[0], other.peppers[0]];
  const differs = own.keys.find(({ id, check }) =>
    other.keys.some((each) => each.id === id && each.check !== check),
  );
  if (differs) return `TOKEN_KEYS ${differs.id} is a different key on a running node`;
  if (key && !other.keys.some(({ id }) => id === key.id))
    return `a running node lacks the key ${key.id}: add it to TOKEN_KEYS of every node before it is first on any node`;
  if (theirs && !own.keys.some(({ id }) => id === theirs.id))
    return `TOKEN_KEYS lacks the key ${theirs.id}, which a running node encrypts with`;
  if (pepper && !other.peppers.includes(pepper))
    return 'a running node lacks the first pepper: add it to TOKEN_PEPPER of every node before it is first on any node';
  if (theirPepper && !own.peppers.includes(theirPepper))
    return 'TOKEN_PEPPER lacks the first pepper of a running node';
  return null;
}

export function createNodeKeys(options: NodeKeysOptions) {
  const { connection, runner, keys, secrets, time, random, onError } = options;
  const node = random.uuid();
  const own = JSON.stringify(secrets.checks);
  const key = keys.rings();
  let stopAnnouncing: (() => void) | undefined;

  /** Returns the time of Redis in ms, because the clocks of nodes may differ. */
  async function open() {
    await connection.ready(redisLimits.redis_command_timeout_ms, 0);
    const client = connection.at(0)?.client;
    if (!client) throw new Error('the server of partition 0 is unavailable');
    const [seconds] = await client.time();
    return { client, now: Number(seconds) * 1_000 };
  }

  async function announce(): Promise<void> {
    await runner.call('presence/announce', 0, { processes: key }, { id: node, report: own });
  }

  async function others(): Promise<Checks[]> {
    const { client, now } = await open();
    const found: Checks[] = [];
    for (const [name, text] of Object.entries(await client.hgetall(key))) {
      const space = text.indexOf(' ');
      // Removes expired entries. A killed node's entry stays until it expires.
      if (Number(text.slice(0, space)) + storeLimits.ring_age_ms_max < now) await client.hdel(key, name);
      else if (name !== node) found.push(JSON.parse(text.slice(space + 1)));
    }
    return found;
  }

  async function leave(): Promise<void> {
    stopAnnouncing?.();
    await connection
      .at(0)
      ?.client.hdel(key, node)
      .catch(() => undefined);
  }

  return {
    others,
    leave,
    /**
     * Announces this node to the others until it shuts down. Throws a StartError if a running node has conflicting
     * keys.
     */
    async join(log: Logger) {
      const deadline = time.monotonic() + storeLimits.ring_age_ms_max + storeLimits.ring_interval_ms;
      for (let warned = false; ; warned = true) {
        await announce();
        const reason = (await others()).map((other) => conflict(secrets.checks, other)).find(Boolean);
        if (!reason) break;
        if (time.monotonic() > deadline) {
          await leave();
          throw new StartError(reason);
        }
        if (!warned) log.warn(`${reason}; waiting for that node to stop`);
        await time.sleep(250);
      }
      stopAnnouncing = time.repeat(storeLimits.ring_interval_ms, () => void announce().catch(onError));
    },
  };
}
