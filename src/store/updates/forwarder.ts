/**
 * Brings updates from a partition's outbox to the queues of bots that live elsewhere. Whoever forwards takes the whole
 * prefix that waits, in order; each queue keeps a mark per source and takes nothing twice; then the prefix is deleted. So
 * any number of nodes may forward, and one that dies half-way costs a second and no update.
 *
 * On a cluster, some bots may live on a master that is away. The others are handed what comes behind; those are passed
 * over from then on, so that nothing reaches them ahead of what they are owed, and are tried again from the start of the
 * outbox, which stays until they have taken it.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { kindBit, type UpdateKind } from '../../rules/update_kinds.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type Queues, readEntry } from './queues.js';

export interface Forwarder {
  /** Does what a change calls for besides itself: forwards the outbox beside the chat (or bot) of this id, or rings its bot's
   * doorbell. Both are soon, and what fails is left to a sweep. */
  follow(id: number, change: { readonly forward?: boolean; readonly wake?: boolean }): void;
  /** Forwards a partition's outbox soon; errors are left to the sweep. */
  forward(partition: number): void;
  /** Forwards a partition's whole outbox now. */
  forwardAll(partition: number): Promise<void>;
}

/** What `updates/accept_forwarded` takes of an update. */
const valuesPerUpdate = 10;

/** How soon those who are owed something are tried again, when a change calls for forwarding. */
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
    /** of the source partition, when the batch was read */
    readonly incarnation: number;
    readonly full: boolean;
    /** Ten values of each update, as the script takes them. */
    readonly byBot: ReadonlyMap<number, Array<string | Buffer>>;
  }

  /** Reads what waits behind an entry, up to a bound; null when nothing does. */
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

  /** False when Redis may have lost its tail since the batch was read: then it waits to be forwarded again. */
  async function trim(source: number, { last, incarnation }: Batch): Promise<boolean> {
    const at = { meta: keys.meta(source), outbox: keys.outbox(source) };
    const { status } = await scripts.call('updates/trim_outbox', source, at, { last, incarnation });
    return status === 'ok';
  }

  /** Bots of a source partition that could not be reached, and the entry up to which all others were served. */
  interface Detour {
    readonly owed: Set<number>;
    passed: string;
    /** monotonic time of the last try from the start */
    tried: number;
  }
  const detours = new Map<number, Detour>();

  /** Hands a batch to those of its bots that `takes` names; returns who could not be reached, and why. */
  async function handOut(source: number, { byBot }: Batch, takes: (bot: number) => boolean) {
    const failed = new Map<number, unknown>();
    await Promise.all(
      [...byBot]
        .filter(([bot]) => takes(bot))
        .map(([bot, updates]) => handOver(bot, source, updates).catch((error) => failed.set(bot, error))),
    );
    return failed;
  }

  /** Takes what waits, up to a bound; true when more may wait. Bots that could not be reached are owed from now on. */
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
      // Also where the detour ended meanwhile: then all of this is read again.
      for (const bot of failed.keys()) detour.owed.add(bot);
      detour.passed = batch.last;
    }
    return batch.full;
  }

  const retrying = new Map<number, Promise<void>>();

  /** Hands all that waits to those who are owed something. Then everything is read from the start again, and trimmed:
   * marks let nothing in twice. */
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

  /** Per partition: running, and whether something was added meanwhile. */
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
            // Each round takes the next batch.
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
