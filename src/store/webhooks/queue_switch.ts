/** Changes a queue from polling to a webhook, or back. Ignores changes that are older than the last change. */
import { fail } from '../../errors.js';
import type { Scripts } from '../../redis/scripts/scripts.gen.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { botOf } from '../core/queue_ids.js';
import { queueKeys } from '../core/script_keys.js';
import type { Queues } from '../updates/queues.js';

export type SwitchArgs = Omit<Scripts['webhooks/switch']['args'], 'bot'>;
export type QueueSwitch = ReturnType<typeof createQueueSwitch>;

export function createQueueSwitch(
  { scripts, keys }: StoreContext,
  queues: Queues,
  wake: (queue: number) => void,
) {
  /** Returns false if the queue is not open. */
  async function tryTo(queue: number, args: SwitchArgs): Promise<boolean> {
    const partition = keys.partitions.of(botOf(queue));
    const at = { ...queueKeys(keys, queue), consumption: keys.consumption(queue) };
    const result = await scripts.call('webhooks/switch', partition, at, { bot: String(queue), ...args });
    if (result.status !== 'ok') return false;
    if (result.wake) wake(queue);
    for (let more = result.more; more; )
      ({ more } = await scripts.call('webhooks/hasten', partition, at, { version: args.set }));
    return true;
  }

  return {
    tryTo,
    /** Opens the queue if necessary. Error: `unavailable`. */
    async to(queue: number, args: SwitchArgs): Promise<void> {
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        if (await tryTo(queue, args)) return;
        await queues.open(botOf(queue));
      }
      fail('unavailable', { retry_after: 1 });
    },
  };
}
