/**
 * Forwards updates from a partition's outbox to queues of bots in other partitions. A forwarder takes the complete
 * pending prefix, in order. Each queue stores a mark per source and rejects duplicates. Then the prefix is deleted. So
 * any number of nodes may forward, and a node that dies midway costs a second but no update.
 *
 * On a cluster, the master of some bots may be down. The other bots get later batches meanwhile. The unreachable bots
 * are skipped, so that nothing overtakes the updates they missed. They are retried from the start of the outbox, which
 * is kept until they have caught up.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { kindBit, type UpdateKind } from '../../rules/update_kinds.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type Queues, readEntry } from './queues.js';

export interface Forwarder {
  /**
   * Handles the side effects of a change: forwards the outbox of this id's partition, or wakes the bot's worker.
   * Returns at once; the sweep retries failures.
   */
  follow(id: number, change: { readonly forward?: boolean; readonly wake?: boolean }): void;
  /** Starts forwarding a partition's outbox. The sweep retries failures. */
  forward(partition: number): void;
  /** Forwards a partition's whole outbox now. */
  forwardAll(partition: number): Promise<void>;
}

/** Number of arguments per update in `updates/accept_forwarded`. */
const valuesPerUpdate = 10;

/** Minimum time between retries of unreachable bots when changes trigger forwarding. */
const retryMs = 1_000;

export function createForwarder(
  { scripts, keys }: StoreContext,
  queues: Queues,
  wake: (bot: number) => void,
  onError: (error: unknown) => void,
): Forwarder {
  function forward(partition: number): void {
    serve(partition, retryMs).catch(onError);
  }

  function follow(id: number, change: { readonly forward?: boolean; readonly wake?: boolean }): void {
    if (change.forward) forward(keys.partitions.of(id));
    if (change.wake) wake(id);
  }

  /**
   * Delivers updates of one source partition to one bot's queue. Each enters the queue once, even if several nodes
   * deliver it.
   */
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
      due: keys.webhooksDue(partition),
    };
    const piece = limits.outbox_handover_max * valuesPerUpdate;
    for (let from = 0, attempt = 0; from < updates.length; ) {
      const args = { bot: String(bot), source: String(source), updates: updates.slice(from, from + piece) };
      const result = await scripts.call('updates/accept_forwarded', partition, at, args);
      if (result.status === 'ok') {
        follow(bot, result);
        from += piece;
      } else {
        if (++attempt === fillAttemptsMax) fail('unavailable', { retry_after: 1 });
        await queues.open(bot);
      }
    }
  }

  interface Batch {
    readonly last: string;
    /** incarnation of the source partition when the batch was read */
    readonly incarnation: number;
    readonly full: boolean;
    /** Values of each bot's updates, ten per update, in the order of the script's arguments. */
    readonly byBot: ReadonlyMap<number, Array<string | Buffer>>;
  }

  /** Reads pending entries after an entry, up to a limit; null if there are none. */
  async function readBatch(source: number, after: string): Promise<Batch | null> {
    const at = { meta: keys.meta(source), outbox: keys.outbox(source) };
    const limit = limits.outbox_batch_entries_max;
    const { rows, incarnation, more } = await scripts.call('updates/read_outbox', source, at, {
      after,
      limit,
    });
    const entries = (rows as unknown[]).map(readEntry);
    const last = entries.at(-1);
    if (!last) return null;
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
    return { last: last.id, incarnation, full: more, byBot };
  }

  /**
   * Deletes a forwarded batch. Returns false if Redis may have lost writes since the batch was read: it is then
   * forwarded again.
   */
  async function trim(source: number, { last, incarnation }: Batch): Promise<boolean> {
    const at = { meta: keys.meta(source), outbox: keys.outbox(source) };
    const { status } = await scripts.call('updates/trim_outbox', source, at, { last, incarnation });
    return status === 'ok';
  }

  /** Unreachable bots of a source partition, and the last entry forwarded to all others. */
  interface Detour {
    readonly owed: Set<number>;
    passed: string;
    /** monotonic time of the last retry from the start of the outbox */
    tried: number;
  }
  const detours = new Map<number, Detour>();

  /** Delivers a batch to those of its bots accepted by `takes`. Returns the bots that failed, with their errors. */
  async function handOut(source: number, { byBot }: Batch, takes: (bot: number) => boolean) {
    const failed = new Map<number, unknown>();
    await Promise.all(
      [...byBot]
        .filter(([bot]) => takes(bot))
        .map(([bot, updates]) => handOver(bot, source, updates).catch((error) => failed.set(bot, error))),
    );
    return failed;
  }

  /** Forwards one batch; returns true when there may be more. Bots that fail are skipped from now on. */
  async function forwardBatch(source: number, failures: unknown[]): Promise<boolean> {
    const detour = detours.get(source);
    const batch = await readBatch(source, detour?.passed ?? '');
    if (!batch) return false;
    const failed = await handOut(source, batch, (bot) => !detour?.owed.has(bot));
    failures.push(...failed.values());
    if (failed.size === 0 && !detour) return (await trim(source, batch)) ? batch.full : true;
    if (!detour) {
      detours.set(source, { owed: new Set(failed.keys()), passed: batch.last, tried: performance.now() });
    } else {
      // If the detour ended meanwhile, this has no effect, and everything is read again from the start.
      for (const bot of failed.keys()) detour.owed.add(bot);
      detour.passed = batch.last;
    }
    return batch.full;
  }

  const retrying = new Map<number, Promise<void>>();

  /**
   * Delivers all pending updates to the skipped bots. Afterwards everything is read again from the start and trimmed;
   * marks prevent duplicates.
   */
  async function retryOwed(source: number, detour: Detour): Promise<void> {
    detour.tried = performance.now();
    const owed = new Set(detour.owed);
    for (let after = ''; ; ) {
      const batch = await readBatch(source, after);
      if (!batch) break;
      const [failed] = [...(await handOut(source, batch, (bot) => owed.has(bot))).values()];
      if (failed !== undefined) throw failed;
      after = batch.last;
      if (!batch.full) break;
    }
    detours.delete(source);
  }

  function retry(source: number, detour: Detour): Promise<void> {
    const present = retrying.get(source);
    if (present) return present;
    const retried = retryOwed(source, detour).finally(() => retrying.delete(source));
    retrying.set(source, retried);
    return retried;
  }

  /** The running forwarder of each partition, and whether it must run again for new entries. */
  const running = new Map<number, { again: boolean; done: Promise<void> }>();

  function run(partition: number): Promise<void> {
    const present = running.get(partition);
    if (present) {
      present.again = true;
      return present.done;
    }
    const state = { again: false, done: Promise.resolve() };
    state.done = (async () => {
      const failures: unknown[] = [];
      try {
        do {
          state.again = false;
          while (await forwardBatch(partition, failures)) {
            // The loop body is empty, because its condition does the work.
          }
        } while (state.again);
      } finally {
        running.delete(partition);
      }
      if (failures.length > 0) throw failures[0];
    })();
    running.set(partition, state);
    return state.done;
  }

  async function serve(partition: number, patience_ms: number): Promise<void> {
    const detour = detours.get(partition);
    if (!detour || performance.now() - detour.tried < patience_ms) return run(partition);
    const [, retried] = await Promise.allSettled([run(partition), retry(partition, detour)]);
    if (retried.status === 'rejected') throw retried.reason;
    return run(partition);
  }

  return {
    forwardAll: (partition) => serve(partition, 0),
    forward,
    follow,
  };
}
