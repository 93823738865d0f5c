/**
 * Records delivery attempts, which the bots' owners can read. Collects attempts and writes them to Postgres a few times
 * a second. Deliveries never wait for the write. The successes of a busy bot are written only every few seconds. A
 * process that is killed loses only the attempts that it has not written. While Postgres is down, failures beyond a
 * limit are counted but not kept.
 */
import { type Random, systemRandom } from '../random.js';
import { ruleLimits } from '../rules/limits.js';
import { slotOf } from '../store/core/queue_ids.js';
import { packUpdate } from '../store/updates/update_record.js';
import {
  type AttemptCounts,
  type Attempts,
  type NewAttempt,
  PartlyAppended,
  type RefusedAttempt,
} from '../store/webhooks/attempts.js';
import type { DeadReason, Delivery } from '../store/webhooks/deliveries.js';
import { systemTime, type Time, type Timer } from '../time.js';
import type { AttemptFacts } from './context.js';
import { deliveryLimits as limits } from './limits.js';
import { beginningOf, shownAnswer } from './outbound/redact.js';
import { errorMessageOf, isDelivered, type Outcome } from './outcome.js';

export interface RecorderOptions {
  append: Attempts['append'];
  /** Called for each attempt that Postgres refused. */
  onRefused(refused: RefusedAttempt): void;
  onError(error: unknown): void;
  readonly time?: Time;
  readonly random?: Random;
}

/**
 * An attempt with only the fields that its row in Postgres needs. The row is built only when it is written, because
 * most successes are dropped before they are written.
 */
interface Gathered extends Omit<NewAttempt, 'answer' | 'record'> {
  readonly beginning: Buffer;
  readonly secrets: readonly string[];
  /** The fields of the update, or null if the update is not kept with the attempt. */
  readonly fields: readonly Buffer[] | null;
  readonly bytes: number;
}

interface OfBot {
  readonly counts: { -readonly [K in keyof AttemptCounts]: number };
  readonly failures: Gathered[];
  readonly successes: Gathered[];
}

/**
 * The monotonic times before which a bot's successes need not be written. `few` applies while the buffer has fewer
 * successes than Postgres keeps for a bot. Otherwise `full` applies, which allows a longer wait, because each new
 * success replaces an older one.
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
  return { answer: shownAnswer(beginning, secrets), record: fields && packUpdate(fields), ...facts };
}

/** Returns the fields that a replay of the update needs. For a route, adds the route's slot, as in a dead letter. */
const fieldsFor = (queue: number, { fields }: Delivery): readonly Buffer[] =>
  slotOf(queue) === 0 ? fields : [...fields, Buffer.from('l'), Buffer.from(String(slotOf(queue)))];

const dueAfter = (now: number, random: number): Due => ({
  few: now + limits.delivery_successes_flush_ms,
  full: now + limits.delivery_successes_full_flush_ms * (0.5 + random / 2),
});

/** While the recorder runs and its buffer is not empty, either a timer is set or a write is in progress. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #time: Time;
  readonly #random: Random;
  readonly #bots = new Map<number, OfBot>();
  readonly #due = new Map<number, Due>();
  #waiting = 0;
  #recordBytes = 0;
  #refused = 0;
  #started = false;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#random = options.random ?? systemRandom;
  }

  /** Records an attempt. `bot` is the id of the queue. */
  note(
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void {
    const { counts, failures, successes } = this.#of(bot);
    if (dead !== null) counts.dead++;
    const full = this.#waiting >= limits.delivery_attempts_waiting_max;
    const delivered = outcome !== null && isDelivered(outcome);
    if (delivered) {
      counts.delivered++;
      // Drops the oldest success, because Postgres keeps only `delivery_successes_kept` successes per bot.
      if (successes.length >= ruleLimits.delivery_successes_kept) this.#weigh(successes.splice(0, 1), -1);
      else if (full) return;
    } else {
      if (outcome !== null) counts.failed++;
      if (full) {
        counts.unkept++;
        return;
      }
    }
    const gathered = this.#gather(bot, delivery, outcome, dead, attempt);
    (delivered ? successes : failures).push(gathered);
    this.#weigh([gathered], 1);
  }

  start(): void {
    this.#started = true;
    this.#arm();
  }

  async stop(): Promise<void> {
    this.#started = false;
    this.#time.cancel(this.#timer);
    await this.#writing;
    await this.#write(true).catch(this.#options.onError);
  }

  waiting(): number {
    return this.#waiting;
  }

  refused(): number {
    return this.#refused;
  }

  #of(bot: number): OfBot {
    const known = this.#bots.get(bot);
    if (known) return known;
    const counts = { delivered: 0, failed: 0, dead: 0, unkept: 0 };
    const made: OfBot = { counts, failures: [], successes: [] };
    this.#bots.set(bot, made);
    this.#arm();
    return made;
  }

  #weigh(gathered: readonly Gathered[], sign: 1 | -1): void {
    this.#waiting += sign * gathered.length;
    for (const { bytes } of gathered) this.#recordBytes += sign * bytes;
  }

  #gather(
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): Gathered {
    const room = limits.delivery_records_waiting_bytes_max - this.#recordBytes;
    const fits = delivery.bytes <= Math.min(room, limits.delivery_record_kept_bytes_max);
    const delivered = outcome !== null && isDelivered(outcome);
    const kept = fits && delivered;
    const body = outcome?.kind === 'answered' ? outcome.body : nothing;
    return {
      bot,
      updateId: delivery.entry.shownId,
      at: this.#time.now(),
      delivered,
      tries: attempt.tries,
      dead,
      status: outcome?.kind === 'answered' ? outcome.status : null,
      error: delivered ? null : outcome === null ? reasons[dead as DeadReason] : errorMessageOf(outcome),
      latencyMs: Math.round(outcome?.latencyMs ?? 0),
      nextTryAt: attempt.nextAtMs,
      beginning: body.length === 0 ? nothing : beginningOf(body),
      secrets: attempt.secrets,
      fields: kept ? fieldsFor(bot, delivery) : null,
      bytes: kept ? delivery.bytes : 0,
    };
  }

  /**
   * Returns whether a bot's attempts need not be written yet. The first success after a pause is written soon. The
   * successes of a busy bot wait, because newer successes replace most of them.
   */
  #mayWait(bot: number, { failures, counts, successes }: OfBot, now: number): boolean {
    const { few, full } = this.#due.get(bot) ?? at_once;
    const until = successes.length < ruleLimits.delivery_successes_kept ? few : full;
    return failures.length === 0 && counts.dead === 0 && now < until;
  }

  #take(all: boolean): ReadonlyMap<number, OfBot> {
    const now = this.#time.monotonic();
    for (const [bot, { full }] of this.#due) if (now >= full) this.#due.delete(bot);
    const taken = new Map<number, OfBot>();
    let rows = 0;
    for (const [bot, own] of this.#bots) {
      if (rows >= rowsMax || taken.size >= rowsMax) break;
      if (!all && this.#mayWait(bot, own, now)) continue;
      this.#due.set(bot, dueAfter(now, this.#random.number()));
      this.#bots.delete(bot);
      taken.set(bot, own);
      rows += own.failures.length + own.successes.length;
      this.#weigh([...own.failures, ...own.successes], -1);
    }
    return taken;
  }

  /** Puts the attempts of a failed write back into the buffer, before attempts that have arrived since. */
  #giveBack(bot: number, own: OfBot): void {
    const present = this.#of(bot);
    for (const name of ['delivered', 'failed', 'dead', 'unkept'] as const)
      present.counts[name] += own.counts[name];
    const surplus = own.successes.length + present.successes.length - ruleLimits.delivery_successes_kept;
    const kept = own.successes.slice(Math.max(0, surplus));
    present.successes.unshift(...kept);
    present.failures.unshift(...own.failures);
    this.#weigh([...kept, ...own.failures], 1);
  }

  #reportRefused(found: readonly RefusedAttempt[]): void {
    this.#refused += found.length;
    for (const each of found) this.#options.onRefused(each);
  }

  async #write(all: boolean): Promise<void> {
    for (let taken = this.#take(all); taken.size > 0; taken = this.#take(all)) {
      const rows = [...taken.values()].flatMap(({ failures, successes }) => [...failures, ...successes]);
      try {
        const counts = new Map([...taken].map(([bot, { counts }]) => [bot, counts]));
        this.#reportRefused(await this.#options.append(rows.map(rowOf), counts));
      } catch (error) {
        const partly = error instanceof PartlyAppended ? error : null;
        this.#reportRefused(partly?.refused ?? []);
        for (const [bot, own] of taken) if (partly?.bots.has(bot) ?? true) this.#giveBack(bot, own);
        throw error;
      }
    }
  }

  #arm(): void {
    if (!this.#started || this.#bots.size === 0 || this.#writing !== undefined) return;
    this.#timer ??= this.#time
      .after(limits.delivery_attempts_flush_ms, () => {
        this.#timer = undefined;
        this.#writing = this.#write(false)
          .catch(this.#options.onError)
          .finally(() => {
            this.#writing = undefined;
            this.#arm();
          });
      })
      .unref();
  }
}
