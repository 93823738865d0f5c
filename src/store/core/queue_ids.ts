/**
 * Builds the ids of queues. A bot's queue has the bot's id. A webhook route's queue (decision 0072) has the id `slot *
 * 10^13 + bot`, because bot ids are below 10^13. Both queues are in the bot's partition, and have the same kinds of
 * keys. `lua/lib/routes.lua` builds the same ids.
 */
import { ruleLimits as limits } from '../../rules/limits.js';

const slotStep = 10 ** limits.bot_id_length_max;

/** Returns the id of a queue. Slot 0 stands for the bot's own queue. */
export const queueId = (bot: number, slot: number): number => slot * slotStep + bot;
export const botOf = (queue: number): number => (queue < slotStep ? queue : queue % slotStep);
export const slotOf = (queue: number): number => Math.floor(queue / slotStep);

/**
 * Returns the ids of those queues of a bot whose bits are set. A script sets bit `n` if a worker must be woken for the
 * queue in slot `n`.
 */
export function queuesIn(bot: number, bits: number): number[] {
  const queues = [];
  for (let slot = 0, left = bits; left > 0; slot++, left >>>= 1)
    if (left & 1) queues.push(queueId(bot, slot));
  return queues;
}
