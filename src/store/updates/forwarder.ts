/**
 * Forwards updates from a partition's outbox to queues of bots in other partitions. A forwarder takes all pending
 * updates from the start of the outbox, in order, and deletes them once they are queued. Any number of nodes may
 * forward, because each queue stores a mark per source partition and rejects duplicates. A node that dies midway delays
 * updates by a second, but loses none.
 *
 * On a cluster, the master of some bots may be down. The forwarder skips these bots and continues with later batches
 * for the others. The outbox stays until the skipped bots have all their updates. They are retried from its start, so
 * that no update overtakes an earlier one.
 *
 * A queue accepts updates only if its Redis has not restarted since they were read from the outbox. A restarted Redis
 * may have lost earlier updates of the queue, which are then still in the outbox. `test/models/outbox.pml` models this
 * protocol. In the model, `owed` and `passed` are the fields of `Detour`, `last` is the field of `Batch`, and `under`
 * and `retried_under` stand for `runs`.
 */
import { fail } from '../../errors.js';
import { kindBit, type UpdateKind } from '../../rules/update_kinds.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { queuesIn } from '../core/queue_ids.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readEntry } from './queues.js';

const valuesPerUpdate = 10;

/** A change triggers a retry for unreachable bots only if the last retry was at least this long ago. */
const retryMs = 1_000;

/** The run id of each partition's Redis server, all from the same moment. Null if the server was unavailable. */
type RunIds = ReadonlyArray<string | null>;

interface Batch {
  readonly last: string;
  /**
   * The run ids from just before the batch was read. While unreachable bots are skipped, the run ids from before the
   * first batch that skipped a bot.
   */
  readonly runs: RunIds;
  readonly incarnation: number;
  readonly full: boolean;
  /** The batch's updates by bot. Each update has ten values, in the order of the script's arguments. */
  readonly byBot: ReadonlyMap<number, Array<string | Buffer>>;
}

/**
 * The state while unreachable bots are skipped. `owed` contains the skipped bots. `passed` is the last outbox entry
 * that was forwarded to all other bots.
 */
interface Detour {
  readonly owed: Set<number>;
  readonly runs: RunIds;
  passed: string;
  /** The monotonic time of the last retry. A retry starts at the beginning of the outbox. */
  tried: number;
}

/**
 * Forwards the outbox of one partition. Only one call at a time forwards it. Remembers between calls which bots are
 * unreachable.
 */
class Outbox {
  readonly #forwarder: Forwarder;
  readonly #context: StoreContext;
  readonly #queues: Queues;
  readonly #source: number;
  readonly #at: { readonly meta: string; readonly outbox: string };
  #running: Promise<void> | undefined;
  #again = false;
  #detour: Detour | undefined;
  #retrying: Promise<void> | undefined;

  constructor(forwarder: Forwarder, context: StoreContext, queues: Queues, source: number) {
    this.#forwarder = forwarder;
    this.#context = context;
    this.#queues = queues;
    this.#source = source;
    this.#at = { meta: context.keys.meta(source), outbox: context.keys.outbox(source) };
  }

  /** Forwards all entries. Retries unreachable bots if the last retry was at least `patienceMs` ago. */
  async forward(patienceMs: number): Promise<void> {
    const detour = this.#detour;
    if (!detour || this.#context.time.monotonic() - detour.tried < patienceMs) return this.#run();
    this.#retrying ??= this.#retryOwed(detour).finally(() => {
      this.#retrying = undefined;
    });
    const [, retried] = await Promise.allSettled([this.#run(), this.#retrying]);
    if (retried.status === 'rejected') throw retried.reason;
    return this.#run();
  }

  #run(): Promise<void> {
    if (this.#running) this.#again = true;
    else this.#running = this.#forwardRest();
    return this.#running;
  }

  async #forwardRest(): Promise<void> {
    const failures: unknown[] = [];
    try {
      do {
        this.#again = false;
        for (let more = true; more; ) more = await this.#forwardBatch(failures);
      } while (this.#again);
    } finally {
      this.#running = undefined;
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Forwards one batch. Returns true if there may be more entries. If forwarding to a bot fails, later batches skip the
   * bot.
   */
  async #forwardBatch(failures: unknown[]): Promise<boolean> {
    const detour = this.#detour;
    const batch = await this.#readBatch(detour?.passed, detour?.runs);
    if (!batch) return false;
    const failed = await this.#handOut(batch, (bot) => !detour?.owed.has(bot));
    failures.push(...failed.values());
    if (failed.size === 0 && !detour) return (await this.#trim(batch)) ? batch.full : true;
    if (!detour) {
      const { runs, last } = batch;
      this.#detour = {
        owed: new Set(failed.keys()),
        runs,
        passed: last,
        tried: this.#context.time.monotonic(),
      };
    } else {
      // If a retry has reached all skipped bots in the meantime, `detour` is no longer used, and the outbox is read
      // again from the start.
      for (const bot of failed.keys()) detour.owed.add(bot);
      detour.passed = batch.last;
    }
    return batch.full;
  }

  /**
   * Forwards all pending updates to the skipped bots. The outbox is then read again from the start and trimmed. Each
   * queue records the last entry that it got, so no update is added twice.
   */
  async #retryOwed(detour: Detour): Promise<void> {
    detour.tried = this.#context.time.monotonic();
    const owed = new Set(detour.owed);
    const runs = this.#runIds();
    for (let after = ''; ; ) {
      const batch = await this.#readBatch(after, runs);
      if (!batch) break;
      const [failed] = [...(await this.#handOut(batch, (bot) => owed.has(bot))).values()];
      if (failed !== undefined) throw failed;
      after = batch.last;
      if (!batch.full) break;
    }
    this.#detour = undefined;
  }

  #runIds(): RunIds {
    const { scripts, keys } = this.#context;
    return Array.from({ length: keys.partitions.count }, (_, partition) => scripts.runIdOf(partition));
  }

  /** Reads the batch after the entry `after`. Returns null if there are no more entries. */
  async #readBatch(after = '', runs = this.#runIds()): Promise<Batch | null> {
    const args = { after, limit: limits.outbox_batch_entries_max };
    const read = await this.#context.scripts.call('updates/read_outbox', this.#source, this.#at, args);
    const entries = (read.rows as unknown[]).map(readEntry);
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
    return { last: last.id, runs, incarnation: read.incarnation, full: read.more, byBot };
  }

  /**
   * Deletes a forwarded batch. Returns false if Redis may have lost writes since the batch was read, and the batch must
   * be forwarded again.
   */
  async #trim({ last, incarnation }: Batch): Promise<boolean> {
    const args = { last, incarnation };
    const { status } = await this.#context.scripts.call('updates/trim_outbox', this.#source, this.#at, args);
    return status === 'ok';
  }

  async #handOut({ byBot, runs }: Batch, takes: (bot: number) => boolean) {
    const failed = new Map<number, unknown>();
    await Promise.all(
      [...byBot]
        .filter(([bot]) => takes(bot))
        .map(([bot, updates]) => this.#handOver(bot, updates, runs).catch((error) => failed.set(bot, error))),
    );
    return failed;
  }

  /**
   * Adds updates to a queue. Each update is added only once, even if several nodes forward it. Updates for a deleted
   * bot are dropped.
   */
  async #handOver(bot: number, updates: ReadonlyArray<string | Buffer>, runs: RunIds): Promise<void> {
    const { scripts, keys } = this.#context;
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
    const source = String(this.#source);
    const expected = runs[partition] ?? '';
    const piece = limits.outbox_handover_max * valuesPerUpdate;
    for (let from = 0, attempt = 0; from < updates.length; ) {
      const args = { bot: String(bot), source, expected, updates: updates.slice(from, from + piece) };
      const result = await scripts.call('updates/accept_forwarded', partition, at, args);
      if (result.status === 'ok') {
        this.#forwarder.follow(bot, result);
        from += piece;
      } else {
        if (result.status === 'moved' || ++attempt === fillAttemptsMax)
          fail('unavailable', { retry_after: 1 });
        if (!(await this.#queues.open(bot))) return;
      }
    }
  }
}

export class Forwarder {
  readonly #wake: (bot: number) => void;
  readonly #onError: (error: unknown) => void;
  readonly #partitionOf: (id: number) => number;
  readonly #outboxes: readonly Outbox[];

  constructor(
    context: StoreContext,
    queues: Queues,
    wake: (bot: number) => void,
    onError: (error: unknown) => void,
  ) {
    const { partitions } = context.keys;
    this.#wake = wake;
    this.#onError = onError;
    this.#partitionOf = partitions.of;
    this.#outboxes = Array.from(
      { length: partitions.count },
      (_, partition) => new Outbox(this, context, queues, partition),
    );
  }

  /**
   * Continues a change that a script made: forwards the outbox of the partition of `id`, or wakes the workers of the
   * bot's queues. Each bit of `wake` stands for the queue in one slot. Returns immediately. If something fails, the
   * sweep retries it.
   */
  follow(id: number, change: { readonly forward?: boolean; readonly wake?: number }): void {
    if (change.forward) this.#outbox(this.#partitionOf(id)).forward(retryMs).catch(this.#onError);
    if (change.wake) for (const queue of queuesIn(id, change.wake)) this.#wake(queue);
  }

  /**
   * Forwards the outbox of a partition after a script added updates to it. Returns immediately. If forwarding fails,
   * the sweep retries it.
   */
  followPartition(partition: number, { forward }: { readonly forward: boolean }): void {
    if (forward) this.#outbox(partition).forward(retryMs).catch(this.#onError);
  }

  forwardAll(partition: number): Promise<void> {
    return this.#outbox(partition).forward(0);
  }

  #outbox(partition: number): Outbox {
    return this.#outboxes[partition] as Outbox;
  }
}
