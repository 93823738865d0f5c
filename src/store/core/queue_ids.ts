/**
 * Builds the ids of queues. The queue of a bot has the id of the bot. The queue of a webhook route (decision 0072) has
 * the id `slot * 10^13 + bot`, because ids of bots are below 10^13. Both queues are in the partition of the bot, and
 * have the same kinds of keys. `lua/lib/routes.lua` builds the same ids.
 */
import { ruleLimits as limits } from '../../rules/limits.js';

const slotStep = 10 ** limits.bot_id_length_max;

/** Returns the id of a queue. Slot 0 is the queue of the bot itself. */
export const queueId = (bot: number, slot: number): number => slot * slotStep + bot;
export const botOf = (queue: number): number => (queue < slotStep ? queue : queue % slotStep);
export const slotOf = (queue: number): number => Math.floor(queue / slotStep);

/** Returns the queues in `bits`, as scripts report them: bit `n` is set if the queue in slot `n` must be woken. */
export function queuesIn(bot: number, bits: number): number[] {
  const queues = [];
  for (let slot = 0, left = bits; left > 0; slot++, left >>>= 1)
    if (left & 1) queues.push(queueId(bot, slot));
  return queues;
}
