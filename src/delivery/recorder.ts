/**
 * Records delivery attempts for owners. Attempts are buffered and written to Postgres a few times a second;
 * deliveries never wait for the write. Successes of a busy bot are written every few seconds. A killed process loses
 * at most its buffer. While Postgres is down, failures beyond a limit are only counted.
 */
import { nowMs } from '../clock.js';
import { limits } from '../limits.js';
import { packUpdate } from '../store/updates/update_record.js';
import {
  type AttemptCounts,
  type Attempts,
  type NewAttempt,
  PartlyAppended,
  type RefusedAttempt,
} from '../store/webhooks/attempts.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import type { AttemptFacts } from './context.js';
import { beginningOf, shownAnswer } from './outbound/redact.js';
import { errorMessageOf, isDelivered, type Outcome } from './outcome.js';

export interface Recorder {
  /** Records one attempt. Takes the arguments of `DrainContext.onOutcome`. */
  note(
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void;
  start(): void;
  /** Writes the rest of the buffer, once. */
  stop(): Promise<void>;
  /** Attempts in the buffer. */
  waiting(): number;
  /** Attempts that Postgres refused. */
  refused(): number;
}

export interface RecorderOptions {
  append: Attempts['append'];
  /** Called for each attempt that Postgres refused. */
  onRefused(refused: RefusedAttempt): void;
  onError(error: unknown): void;
}

/**
 * A buffered attempt. It becomes a row only when written, because most successes are discarded before. It keeps only
 * the parts of the update and answer that the row needs.
 */
interface Gathered extends Omit<NewAttempt, 'answer' | 'record'> {
  /** beginning of the answer's body */
  readonly beginning: Buffer;
  readonly secrets: readonly string[];
  /** fields of the update; null if it is not kept */
  readonly fields: readonly Buffer[] | null;
  /** bytes of `fields` */
  readonly bytes: number;
}

interface OfBot {
  readonly counts: { -readonly [K in keyof AttemptCounts]: number };
  readonly failures: Gathered[];
  readonly successes: Gathered[];
}

/**
 * When a bot's successes are written next, by the monotonic clock: `few` while the buffer has room, `full` once new
 * successes replace older ones.
 */
interface Due {
  readonly few: number;
  readonly full: number;
}

const at_once: Due = { few: Number.NEGATIVE_INFINITY, full: Number.NEGATIVE_INFINITY };
const rowsMax = 1_000;
const reasons: Readonly<Record<DeadReason, string>> = {
  expired: 'The update is too old',
  too_large: 'The update is too large',
  queue_full: 'The queue is full',
};
const nothing = Buffer.alloc(0);

function rowOf({ beginning, secrets, fields, bytes, ...facts }: Gathered): NewAttempt {
  return { ...facts, answer: shownAnswer(beginning, secrets), record: fields && packUpdate(fields) };
}

export function createRecorder({ append, onRefused, onError }: RecorderOptions): Recorder {
  const bots = new Map<number, OfBot>();
  const due = new Map<number, Due>();
  let waiting = 0;
  let refused = 0;
  let recordBytes = 0;
  let started = false;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;

  function of(bot: number): OfBot {
    const known = bots.get(bot);
    if (known) return known;
    const made: OfBot = {
      counts: { delivered: 0, failed: 0, dead: 0, unkept: 0 },
      ...{ failures: [], successes: [] },
    };
    bots.set(bot, made);
    arm();
    return made;
  }

  /** Adds the attempts to the totals of the buffer, or subtracts them. */
  function weigh(gathered: readonly Gathered[], sign: 1 | -1): void {
    waiting += sign * gathered.length;
    for (const { bytes } of gathered) recordBytes += sign * bytes;
  }

  function keep(
    list: Gathered[],
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void {
    const room = limits.delivery_records_waiting_bytes_max - recordBytes;
    const fits = delivery.bytes <= Math.min(room, limits.delivery_record_kept_bytes_max);
    const delivered = outcome !== null && isDelivered(outcome);
    const kept = fits && delivered;
    const body = outcome?.kind === 'answered' ? outcome.body : nothing;
    const bytes = kept ? delivery.bytes : 0;
    list.push({
      bot,
      updateId: delivery.entry.shownId,
      at: nowMs(),
      delivered,
      tries: attempt.tries,
      dead,
      status: outcome?.kind === 'answered' ? outcome.status : null,
      error: delivered ? null : outcome === null ? reasons[dead as DeadReason] : errorMessageOf(outcome),
      latencyMs: Math.round(outcome?.latencyMs ?? 0),
      nextTryAt: attempt.nextAtMs,
      beginning: body.length === 0 ? nothing : beginningOf(body),
      secrets: attempt.secrets,
      fields: kept ? delivery.fields : null,
      bytes,
    });
    waiting++;
    recordBytes += bytes;
  }

  function note(...given: Parameters<Recorder['note']>): void {
    const [bot, , outcome, dead] = given;
    const { counts, failures, successes } = of(bot);
    if (dead !== null) counts.dead++;
    const full = waiting >= limits.delivery_attempts_waiting_max;
    if (outcome === null || !isDelivered(outcome)) {
      if (outcome !== null) counts.failed++;
      if (full) counts.unkept++;
      else keep(failures, ...given);
      return;
    }
    counts.delivered++;
    // Make room for the new one: Postgres keeps no more successes than this either.
    if (successes.length >= limits.delivery_successes_kept) weigh(successes.splice(0, 1), -1);
    else if (full) return;
    keep(successes, ...given);
  }

  /**
   * Whether a bot's write can wait. The first success after a pause is written soon. A busy bot's successes wait,
   * because newer ones will replace most of them.
   */
  function mayWait(bot: number, { failures, counts, successes }: OfBot, now: number): boolean {
    const { few, full } = due.get(bot) ?? at_once;
    const until = successes.length < limits.delivery_successes_kept ? few : full;
    return failures.length === 0 && counts.dead === 0 && now < until;
  }

  /** Random delays spread the writes of busy bots over time. */
  const dueAfter = (now: number): Due => ({
    few: now + limits.delivery_successes_flush_ms,
    full: now + limits.delivery_successes_full_flush_ms * (0.5 + Math.random() / 2),
  });

  function take(all: boolean): ReadonlyMap<number, OfBot> {
    const now = performance.now();
    for (const [bot, { full }] of due) if (now >= full) due.delete(bot);
    const taken = new Map<number, OfBot>();
    let rows = 0;
    for (const [bot, own] of bots) {
      if (rows >= rowsMax || taken.size >= rowsMax) break;
      if (!all && mayWait(bot, own, now)) continue;
      due.set(bot, dueAfter(now));
      bots.delete(bot);
      taken.set(bot, own);
      rows += own.failures.length + own.successes.length;
      weigh([...own.failures, ...own.successes], -1);
    }
    return taken;
  }

  /** Returns a failed batch to the buffer, before the attempts that arrived meanwhile. */
  function giveBack(taken: ReadonlyMap<number, OfBot>): void {
    for (const [bot, own] of taken) {
      const present = of(bot);
      for (const name of ['delivered', 'failed', 'dead', 'unkept'] as const)
        present.counts[name] += own.counts[name];
      const successes = [...own.successes, ...present.successes];
      const older = successes.slice(0, -limits.delivery_successes_kept);
      const kept = own.successes.slice(older.length);
      present.successes.unshift(...kept);
      present.failures.unshift(...own.failures);
      weigh([...kept, ...own.failures], 1);
    }
  }

  function tellRefused(found: readonly RefusedAttempt[]): void {
    for (const each of found) {
      refused++;
      onRefused(each);
    }
  }

  async function write(all: boolean): Promise<void> {
    for (let taken = take(all); taken.size > 0; taken = take(all)) {
      const rows = [...taken.values()].flatMap(({ failures, successes }) => [...failures, ...successes]);
      try {
        const counts = new Map([...taken].map(([bot, { counts }]) => [bot, counts]));
        tellRefused(await append(rows.map(rowOf), counts));
      } catch (error) {
        const partly = error instanceof PartlyAppended ? error : null;
        tellRefused(partly?.refused ?? []);
        giveBack(new Map([...taken].filter(([bot]) => partly?.bots.has(bot) ?? true)));
        throw error;
      }
    }
  }

  /** Schedules the next write while the buffer is not empty. */
  function arm(): void {
    if (!started || bots.size === 0 || writing !== undefined) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = write(false)
        .catch(onError)
        .finally(() => {
          writing = undefined;
          arm();
        });
    }, limits.delivery_attempts_flush_ms).unref();
  }

  return {
    note,
    start() {
      started = true;
      arm();
    },
    async stop() {
      started = false;
      clearTimeout(timer);
      await writing;
      await write(true).catch(onError);
    },
    waiting: () => waiting,
    refused: () => refused,
  };
}
