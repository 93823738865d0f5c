/**
 * Which keys and peppers the running nodes hold. A node joins only if every other one can open what it seals, and the other way
 * round, so that a key which was introduced in the wrong order stops a start instead of a call; and a rotation learns whether
 * somebody still seals under a former key.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.js';
import type { Logger } from '../obs/log.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Secrets } from '../store/core/secrets.js';
import { StartError } from './installation.js';

type Checks = Secrets['checks'];

export interface Ring {
  /** Announces this node for as long as it runs. Errors: StartError while a running node holds other keys. */
  join(log: Logger): Promise<void>;
  /** What the other running nodes hold. */
  others(): Promise<readonly Checks[]>;
  leave(): Promise<void>;
}

export interface RingOptions {
  readonly connection: RedisServers;
  readonly runner: Pick<ScriptRunner, 'call'>;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly onError: (error: unknown) => void;
}

/** Why two nodes must not run side by side; null when they may. Each reads what the other makes. */
export function conflict(own: Checks, other: Checks): string | null {
  const [key, theirs] = [own.keys[0], other.keys[0]];
  const [pepper, theirPepper] = [own.peppers[0], other.peppers[0]];
  const differs = own.keys.find(({ id, check }) =>
    other.keys.some((each) => each.id === id && each.check !== check),
  );
  if (differs) return `TOKEN_KEYS ${differs.id} is another key on a node that runs`;
  if (key && !other.keys.some(({ id }) => id === key.id))
    return `a node that runs lacks the key ${key.id}: list it in TOKEN_KEYS of every node before it comes first on any`;
  if (theirs && !own.keys.some(({ id }) => id === theirs.id))
    return `TOKEN_KEYS lacks the key ${theirs.id}, under which a node that runs seals`;
  if (pepper && !other.peppers.includes(pepper))
    return 'a node that runs lacks the first pepper: list it in TOKEN_PEPPER of every node before it comes first on any';
  if (theirPepper && !own.peppers.includes(theirPepper))
    return 'TOKEN_PEPPER lacks the first pepper of a node that runs';
  return null;
}

export function createRing({ connection, runner, keys, secrets, onError }: RingOptions): Ring {
  const node = randomUUID();
  const own = JSON.stringify(secrets.checks);
  const key = keys.rings();
  let timer: NodeJS.Timeout | undefined;

  /** The server, and its time in ms: nodes' clocks may differ. */
  async function open() {
    await connection.ready(limits.redis_command_timeout_ms, 0);
    const client = connection.at(0)?.client;
    if (!client) throw new Error('the server of partition 0 is away');
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
      // A node that was killed is listed until its time is over.
      if (Number(text.slice(0, space)) + limits.ring_age_ms_max < now) await client.hdel(key, name);
      else if (name !== node) found.push(JSON.parse(text.slice(space + 1)));
    }
    return found;
  }

  async function leave(): Promise<void> {
    clearInterval(timer);
    await connection
      .at(0)
      ?.client.hdel(key, node)
      .catch(() => undefined);
  }

  return {
    others,
    leave,
    async join(log) {
      const deadline = performance.now() + limits.ring_age_ms_max + limits.ring_interval_ms;
      for (let told = false; ; told = true) {
        await announce();
        const reason = (await others()).map((other) => conflict(secrets.checks, other)).find(Boolean);
        if (!reason) break;
        if (performance.now() > deadline) {
          await leave();
          throw new StartError(reason);
        }
        if (!told) log.warn(`${reason}; waiting for it to end`);
        await sleep(250);
      }
      timer = setInterval(() => void announce().catch(onError), limits.ring_interval_ms);
      timer.unref();
    },
  };
}
