/**
 * Brings updates from a partition's outbox to the queues of bots that live elsewhere. Whoever forwards takes the whole
 * prefix that waits, in order; each queue keeps a mark per source and takes nothing twice; then the prefix is deleted. So
 * any number of nodes may forward, and one that dies half-way costs a second and no update.
 */
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import { kindBit, type UpdateKind } from '../rules/update_kinds.js';
import { fillAttemptsMax, type StoreContext } from './context.js';
import { type Queues, readEntry } from './queues.js';

export interface Forwarder {
  /** Forwards a partition's outbox soon; errors are left to the sweep. */
  forward(partition: number): void;
  /** Forwards a partition's whole outbox now. */
  forwardAll(partition: number): Promise<void>;
}

export function createForwarder(
  { scripts, keys }: StoreContext,
  queues: Queues,
  onError: (error: unknown) => void,
): Forwarder {
  /** Hands updates of one source partition to one bot. They enter its queue once, whoever hands them over. */
  async function handOver(
    bot: number,
    source: number,
    updates: ReadonlyArray<string | Buffer>,
  ): Promise<void> {
    const partition = keys.partitions.of(bot);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      state: keys.queueState(bot),
      queue: keys.queue(bot),
      marks: keys.queueMarks(bot),
      channel: keys.botChannel(bot),
    };
    const args = { bot: String(bot), source: String(source), updates };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('updates/accept_forwarded', partition, at, args);
      if (result.status === 'ok') return;
      await queues.open(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /** Takes the prefix that waits, up to a bound; true when more may wait. */
  async function forwardBatch(source: number): Promise<boolean> {
    const outbox = keys.outbox(source);
    const limit = limits.outbox_batch_entries_max;
    const { rows } = await scripts.call('updates/read_outbox', source, { outbox }, { limit });
    const entries = (rows as unknown[]).map(readEntry);
    const last = entries.at(-1);
    if (!last) return false;
    const byBot = new Map<number, Array<string | Buffer>>();
    for (const { id, fields } of entries) {
      const field = (name: string) => fields[name] as Buffer;
      const kind = String(field('k')) as UpdateKind;
      const version = id.slice(0, id.indexOf('-'));
      const update = [
        version,
        String(kindBit(kind)),
        kind,
        ...['c', 'm', 'r', 'f', 'p', 'y', 'x'].map(field),
      ];
      for (const bot of String(field('b')).split(',').map(Number)) {
        const list = byBot.get(bot) ?? [];
        byBot.set(bot, list);
        list.push(...update);
      }
    }
    await Promise.all([...byBot].map(([bot, updates]) => handOver(bot, source, updates)));
    await scripts.call('updates/trim_outbox', source, { outbox }, { last: last.id });
    return entries.length === limit;
  }

  /** Per partition: running, and whether something was added meanwhile. */
  const running = new Map<number, { again: boolean; done: Promise<void> }>();

  function forwardAll(partition: number): Promise<void> {
    const present = running.get(partition);
    if (present) {
      present.again = true;
      return present.done;
    }
    const state = { again: false, done: Promise.resolve() };
    state.done = (async () => {
      try {
        do {
          state.again = false;
          while (await forwardBatch(partition)) {
            // Each round takes the next batch.
          }
        } while (state.again);
      } finally {
        running.delete(partition);
      }
    })();
    running.set(partition, state);
    return state.done;
  }

  return {
    forwardAll,
    forward(partition) {
      forwardAll(partition).catch(onError);
    },
  };
}
