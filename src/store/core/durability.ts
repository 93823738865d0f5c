/**
 * Lets calls wait until their changes are in Postgres (decision 0055).
 *
 * A durable call runs on a store that records which partitions the call changed, and under which run id of Redis. When
 * the call is done, the newest journal entry of each partition is read. Its version is at least the version of the
 * changes. The call is answered once everything up to this version is in Postgres. A flusher announces its commits by a
 * hint. Because hints may get lost, the oldest entry of the journal is also read every durable_look_ms: a flusher
 * removes entries only after it has committed them.
 *
 * If Redis was restarted or replaced after a change, the change may be lost. The run id then differs, and the outcome
 * of the call is unknown.
 */
import { ApiError, fail } from '../../errors.js';
import type { Hints } from '../../redis/hints.js';
import type { ScriptRunner } from '../../redis/scripts/scripts.js';
import type { Time, Timer } from '../../time.js';
import { storeLimits as limits } from '../limits.js';
import type { StoreContext } from './context.js';
import { askFlush, marksTold } from './flush_hints.js';
import type { Keys } from './keys.js';

/**
 * The partitions that a call changed. Maps each partition to the run id that Redis had before the call's first change
 * in this partition.
 */
export type Changes = Map<number, string>;

export interface DurableCall {
  /** The account whose limits apply to the call: the id of a person, or an address. */
  readonly account: number | string;
  /** Calls `listener` when the caller disconnects, or immediately if the caller has already disconnected. */
  onGone(listener: () => void): void;
}

/**
 * The state of a durable call that waits until its changes are in Postgres. The caller may disconnect during the wait.
 */
interface Confirmation {
  isGone: boolean;
  readonly cancels: Array<() => void>;
}

interface Progress {
  readonly under: string;
  readonly first: number | null;
  readonly last: number | null;
}

interface Wait {
  readonly under: string;
  readonly version: number;
  /** The deadline by the monotonic clock, in ms. */
  readonly until: number;
  readonly end: (isConfirmed: boolean) => void;
}

interface Watched {
  readonly waits: Set<Wait>;
  /** The version up to which the journal's entries are in Postgres, as far as this process knows. */
  flushed: number;
  /**
   * The pending read of the journal's progress, which is sent at the end of this event loop turn. Resolves with
   * undefined if Redis does not reply in time.
   */
  reading: Promise<Progress | undefined> | undefined;
  /**
   * The monotonic time in ms at which a flush was last requested. Minus infinity if the flusher has announced a flush
   * since then.
   */
  askedAt: number;
  /** True while a regular read is running. Regular reads make up for lost hints. */
  looking: boolean;
}

const never = Number.NEGATIVE_INFINITY;

const incarnationOf = (version: number): number => Math.floor(version / limits.versions_per_incarnation);

/** Returns whether an announced flush up to `flushed` confirms the changes up to `version`. */
const isCovered = (version: number, flushed: number): boolean =>
  version <= flushed && incarnationOf(version) === incarnationOf(flushed);

/**
 * Returns whether the announced flush belongs to a later incarnation than the change. Redis may then have lost the
 * change, so no announcement can confirm it.
 */
const isPassed = (version: number, flushed: number): boolean =>
  incarnationOf(version) < incarnationOf(flushed);

async function readProgress(scripts: ScriptRunner, keys: Keys, partition: number): Promise<Progress> {
  const at = { meta: keys.meta(partition), journal: keys.journal(partition) };
  return scripts.call('journal/progress', partition, at, {});
}

/**
 * Wraps `scripts` and records each partition whose journal a script may write to. Also records a partition whose
 * journal may contain a change from an earlier attempt of the call.
 */
export function notingRunner(
  scripts: ScriptRunner,
  keys: Keys,
  changes: Changes,
  onSent: (partition: number) => void,
): ScriptRunner {
  const call: ScriptRunner['call'] = async (name, partition, at, args) => {
    if (('journal' in at || name === 'idempotency/recall') && !changes.has(partition)) {
      const under = scripts.runIdOf(partition) ?? (await readProgress(scripts, keys, partition)).under;
      if (!changes.has(partition)) changes.set(partition, under);
    }
    const reply = scripts.call(name, partition, at, args);
    if ('journal' in at) onSent(partition);
    return reply;
  };
  return {
    call,
    partitionsWith: (count, keysOf) => scripts.partitionsWith(count, keysOf),
    runIdOf: (partition) => scripts.runIdOf(partition),
    isFull: (partition) => scripts.isFull(partition),
    times: scripts.times,
    troubles: scripts.troubles,
  };
}

/**
 * The error of a durable call whose changes were not confirmed in Postgres, so that a loss of data in Redis may lose
 * them.
 */
const unconfirmed = () => new ApiError('not_durable', { retry_after: 1 });

export class Durability {
  /**
   * Counts unanswered durable calls (`waiting`) and the `bytes` of their answers. Also counts answered calls: those
   * whose changes are in Postgres (`confirmed`), and all others (`unconfirmed`).
   */
  readonly stats = { waiting: 0, bytes: 0, confirmed: 0, unconfirmed: 0 };
  readonly #scripts: ScriptRunner;
  readonly #keys: Keys;
  readonly #time: Time;
  readonly #hints: Pick<Hints, 'listen'>;
  readonly #watched = new Map<number, Watched>();
  readonly #asking = new Set<number>();
  /** For each account, how many of its durable calls are unanswered, and the total size of their answers. */
  readonly #accounts = new Map<number | string, { waiting: number; bytes: number }>();
  #waits = 0;
  #listens = false;
  #timer: Timer | undefined;

  constructor({ scripts, keys, time }: StoreContext, hints: Pick<Hints, 'listen'>) {
    this.#scripts = scripts;
    this.#keys = keys;
    this.#time = time;
    this.#hints = hints;
  }

  /**
   * Runs `work` on a store that records the changes of `work`. Resolves with the answer of `work` once these changes
   * are in Postgres. `sizeOf` returns the bytes of an answer. Errors: those of `work`, at once. `too_many_requests`,
   * without any change, if too many calls of the account or of all accounts wait. `not_durable` if the outcome is not
   * known within durable_wait_ms_max, or if the caller disconnects.
   */
  async run<T>(
    { account, onGone }: DurableCall,
    work: (changes: Changes) => Promise<T>,
    sizeOf: (answer: T) => number,
  ): Promise<T> {
    const { stats } = this;
    const own = this.#accounts.get(account) ?? { waiting: 0, bytes: 0 };
    const isFull =
      stats.waiting >= limits.durable_calls_max ||
      stats.bytes >= limits.durable_bytes_max ||
      own.waiting >= limits.durable_calls_per_account_max ||
      own.bytes >= limits.durable_bytes_per_account_max;
    if (isFull) fail('too_many_requests', { retry_after: 1 });
    this.#accounts.set(account, own);
    stats.waiting++;
    own.waiting++;
    let bytes = 0;
    try {
      const changes: Changes = new Map();
      const answer = await work(changes);
      bytes = sizeOf(answer);
      stats.bytes += bytes;
      own.bytes += bytes;
      if (changes.size > 0) await this.#confirm(changes, onGone);
      return answer;
    } finally {
      stats.waiting--;
      stats.bytes -= bytes;
      own.bytes -= bytes;
      if (--own.waiting === 0) this.#accounts.delete(account);
    }
  }

  /**
   * Requests a flush while the changes are still being sent to Redis, so that the flusher reads them while the call
   * waits for the reply of Redis.
   */
  soon(partition: number): void {
    this.#ask(partition, this.#watch(partition));
  }

  async #confirm(changes: Changes, onGone: DurableCall['onGone']): Promise<void> {
    const until = this.#time.monotonic() + limits.durable_wait_ms_max;
    const call: Confirmation = { isGone: false, cancels: [] };
    onGone(() => {
      call.isGone = true;
      for (const cancel of call.cancels) cancel();
    });
    const ends = await Promise.all(
      [...changes].map(([at, under]) => this.#isFlushed(at, under, until, call)),
    );
    const isConfirmed = ends.every(Boolean);
    if (isConfirmed || !call.isGone) this.stats[isConfirmed ? 'confirmed' : 'unconfirmed']++;
    if (!isConfirmed) throw unconfirmed();
  }

  async #isFlushed(partition: number, under: string, until: number, call: Confirmation): Promise<boolean> {
    const watched = this.#watch(partition);
    const progress = await this.#progress(partition, watched);
    if (progress?.under !== under) return false;
    const { last } = progress;
    if (last === null || isCovered(last, watched.flushed)) return true;
    if (call.isGone || isPassed(last, watched.flushed)) return false;
    return new Promise((resolve) => {
      const wait: Wait = { under, version: last, until, end: resolve };
      this.#add(partition, watched, wait);
      call.cancels.push(() => this.#end(watched, wait, false));
    });
  }

  #watch(partition: number): Watched {
    if (!this.#listens) {
      this.#listens = true;
      // Does not wait until the subscription is active, because the progress of journals is also read regularly.
      void this.#hints.listen(this.#keys.flushed(), (hint) => {
        for (const [flushed, version] of marksTold(hint)) this.#flushed(flushed, version);
      });
    }
    const known = this.#watched.get(partition);
    if (known !== undefined) return known;
    const watched = {
      waits: new Set<Wait>(),
      flushed: 0,
      reading: undefined,
      askedAt: never,
      looking: false,
    };
    this.#watched.set(partition, watched);
    return watched;
  }

  /**
   * Reads the progress of a journal and requests a flush. All calls of one event loop turn share one read, which is
   * sent at the end of the turn. The flush is requested after the read, so that the flusher finds at least the entries
   * that were read.
   */
  #progress(partition: number, watched: Watched): Promise<Progress | undefined> {
    watched.reading ??= new Promise<void>((resolve) => this.#time.soon(resolve)).then(() => {
      watched.reading = undefined;
      const read = readProgress(this.#scripts, this.#keys, partition);
      this.#ask(partition, watched);
      return this.#time.within(limits.durable_wait_ms_max, read).catch(() => undefined);
    });
    return watched.reading;
  }

  #add(partition: number, watched: Watched, wait: Wait): void {
    watched.waits.add(wait);
    this.#waits++;
    this.#timer ??= this.#time.every(limits.durable_look_ms, () => this.#look()).unref();
    this.#ask(partition, watched);
  }

  /**
   * Requests a flush, unless one was already requested since the flusher's last announcement. After durable_look_ms,
   * requests it again, because a flusher that finds no entries may announce nothing. Calls of one event loop turn share
   * one message.
   */
  #ask(partition: number, watched: Watched): void {
    const now = this.#time.monotonic();
    if (now - watched.askedAt < limits.durable_look_ms) return;
    watched.askedAt = now;
    this.#asking.add(partition);
    if (this.#asking.size > 1) return;
    this.#time.soon(() => {
      askFlush(this.#scripts, this.#keys, [...this.#asking]);
      this.#asking.clear();
    });
  }

  #end(watched: Watched, wait: Wait, isConfirmed: boolean): void {
    if (!watched.waits.delete(wait)) return;
    this.#waits--;
    wait.end(isConfirmed);
  }

  /** Handles the announcement that a journal's entries up to `version` are in Postgres. */
  #flushed(partition: number, version: number): void {
    const watched = this.#watched.get(partition);
    if (watched === undefined) return;
    watched.askedAt = never;
    watched.flushed = Math.max(watched.flushed, version);
    for (const wait of watched.waits) {
      if (isPassed(wait.version, version)) this.#end(watched, wait, false);
      else if (isCovered(wait.version, version)) this.#end(watched, wait, true);
    }
    if (watched.waits.size > 0) this.#ask(partition, watched);
  }

  /**
   * Ends waits that are too old. For the other waits, reads the progress of the journals and requests another flush.
   */
  #look(): void {
    if (this.#waits === 0) {
      this.#time.cancel(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = this.#time.monotonic();
    for (const [partition, watched] of this.#watched) {
      for (const wait of watched.waits) if (wait.until <= now) this.#end(watched, wait, false);
      if (watched.waits.size === 0 || watched.looking) continue;
      watched.looking = true;
      watched.askedAt = never;
      // Takes only the waits that have already begun, because a read cannot confirm a wait that begins after the read
      // was sent.
      const waits = [...watched.waits];
      this.#progress(partition, watched)
        .then((progress) => {
          if (progress === undefined) return;
          const { under, first } = progress;
          for (const wait of waits) {
            if (wait.under !== under) this.#end(watched, wait, false);
            else if (first === null || first > wait.version) this.#end(watched, wait, true);
          }
        })
        .finally(() => {
          watched.looking = false;
        });
    }
  }
}
