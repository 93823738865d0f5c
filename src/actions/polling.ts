/** Defines the parameters and checks that long polls and update streams share. */
import { fail } from '../errors.js';
import type { Bot } from '../store/core/control.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import { clampedInteger, optional, text } from '../wire/schema.js';

export const consumerName = text.regex(new RegExp(`^[A-Za-z0-9._-]{1,${limits.consumer_name_length_max}}$`), {
  error: `1 to ${limits.consumer_name_length_max} letters, digits, dots, hyphens and underscores`,
});

export const consumerParams = {
  consumer: optional(consumerName).describe(
    `Name of a process of the bot. Up to ${limits.consumers_max} consumers share the updates; the updates of one chat go to one consumer at a time`,
  ),
  consumer_timeout: optional(
    clampedInteger(limits.consumer_lease_s_default, limits.consumer_lease_s_max),
  ).describe(
    `Seconds without a poll or stream after which the chats of the consumer move to others, ${limits.consumer_lease_s_default} (default) to ${limits.consumer_lease_s_max}`,
  ),
};

interface Shared {
  readonly offset?: number | undefined;
  readonly consumer?: string | undefined;
  readonly consumer_timeout?: number | undefined;
}

/**
 * Returns the consumer that a call names, or undefined if it names none. Error: `parameter_wrong` for a negative
 * offset, because a negative offset would also confirm other consumers' updates.
 */
export function consumerOf({ consumer, consumer_timeout, offset = 0 }: Shared) {
  if (consumer === undefined) return undefined;
  if (offset < 0) fail('parameter_wrong', { name: 'offset', what: 'at least 0 if consumer is set' });
  return { name: consumer, leaseMs: (consumer_timeout ?? limits.consumer_lease_s_default) * 1_000 };
}

/** Returns a function that checks whether the token with which a bot called is still accepted. */
export function tokenCheck(store: Store, bot: Bot): () => boolean | Promise<boolean> {
  const accepted = ({ token, state }: Bot) => token === bot.token && state === undefined;
  return () => {
    const known = store.bots.present(bot);
    return known instanceof Promise ? known.then(accepted) : accepted(known);
  };
}
