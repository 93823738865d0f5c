/** Calls of the scripts that share a queue among consumers. */
import type { Redis } from 'ioredis';
import type { Script } from '../../src/redis/scripts/contract.js';
import { queue } from './update_world.js';
import { bot, callScript, keys, type Seed, scripts } from './world.js';

export const consumerKeys = {
  ...queue,
  ...{ consumers: keys.consumers(bot), consumption: keys.consumption(bot) },
  ...{ assigned: keys.assigned(bot), holders: keys.holders(bot) },
};

export const stepArgs = (args = {}) => ({
  ...{
    bot: `${bot}`,
    name: 'a',
    poll: 'mine',
    first: true,
    offset: '0',
    limit: '100',
    mask: '',
    lease: '4000',
  },
  ...args,
});

/** Runs one step and returns its answer. */
export const step = (client: Redis, args = {}): Promise<unknown[]> =>
  callScript(client, scripts.get('updates/consume') as Script, consumerKeys, stepArgs(args));

/**
 * A step before the tested one. Its lease is a little shorter, so that the tested step changes the end of the lease also
 * within the same millisecond.
 */
export const stepped =
  (args = {}): Seed =>
  (client) =>
    step(client, { lease: '3990', ...args });

/** Ends the lease of a consumer. */
export const lapsed =
  (name: string): Seed =>
  (client) =>
    client.zadd(keys.consumers(bot), Date.now() - 1, name);

/** Confirms updates outside a poll, and returns the answer. */
export const confirm = (client: Redis, name: string, offset: number): Promise<unknown[]> =>
  callScript(client, scripts.get('updates/confirm') as Script, consumerKeys, { name, offset: `${offset}` });
