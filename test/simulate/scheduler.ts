/**
 * Decides what happens next in a simulated installation. Each event that could happen next is a choice: a command of
 * Redis, a reply, a statement of Postgres, an answer of a receiver, or the next timer. A step makes one choice and lets
 * all promises settle.
 */
import { Time, type Timer } from '../../src/time.js';
import type { SeededRandom } from './seeded_random.js';

export interface Choice {
  /** Describes the choice for the trace. Called only if the scheduler makes this choice. */
  what(): string;
  run(): unknown;
}

interface Noted {
  readonly step: number;
  readonly nowMs: number;
  readonly what: string;
}

/** The process that a choice belongs to. A frozen process makes no choices until it continues. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  readonly frozen: boolean;
}

interface Pending {
  dueMs: number;
  readonly everyMs: number | undefined;
  readonly work: () => void;
}

class SimulatedTimer implements Timer {
  readonly pending: Pending;

  constructor(pending: Pending) {
    this.pending = pending;
  }

  unref(): Timer {
    return this;
  }
}

const startMs = 1_800_000_000_000;

/** The clock and the timers of one process. The clock may run faster or slower than the scheduler’s time. */
export class ProcessTime extends Time {
  readonly #scheduler: Scheduler;
  readonly #rate: number;
  readonly #pending = new Set<Pending>();

  constructor(scheduler: Scheduler, driftPpm: number) {
    super();
    this.#scheduler = scheduler;
    this.#rate = 1 + driftPpm / 1_000_000;
  }

  machine(): number {
    return startMs + Math.floor(this.monotonic());
  }

  monotonic(): number {
    return this.#scheduler.nowMs * this.#rate;
  }

  after(ms: number, work: () => void): Timer {
    return this.#add(ms, undefined, work);
  }

  every(ms: number, work: () => void): Timer {
    return this.#add(ms, Math.max(1, ms), work);
  }

  cancel(timer: Timer | undefined): void {
    if (timer instanceof SimulatedTimer) this.#pending.delete(timer.pending);
  }

  soon(work: () => void): void {
    this.#scheduler.atTurnEnd(work);
  }

  stop(): void {
    this.#pending.clear();
  }

  /** Returns the process’s first timer, and when it is due by the scheduler’s time. */
  next(): { readonly atMs: number; readonly fire: () => void } | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending)
      if (first === undefined || pending.dueMs < first.dueMs) first = pending;
    const found = first;
    return found && { atMs: found.dueMs / this.#rate, fire: () => this.#fire(found) };
  }

  #fire(pending: Pending): void {
    if (pending.everyMs === undefined) this.#pending.delete(pending);
    else pending.dueMs = this.monotonic() + pending.everyMs;
    pending.work();
  }

  #add(ms: number, everyMs: number | undefined, work: () => void): SimulatedTimer {
    const pending = { dueMs: this.monotonic() + Math.max(1, ms), everyMs, work };
    this.#pending.add(pending);
    return new SimulatedTimer(pending);
  }
}

export class Scheduler {
  readonly random: SeededRandom;
  readonly #noted: Noted[] = [];
  steps = 0;
  nowMs = 1_000;
  readonly #sources: Array<() => readonly Choice[]> = [];
  readonly #clocks = new Map<Owner, ProcessTime>();
  #turnEnd: Array<() => void> = [];
  readonly #traceMax: number;
  readonly #impatience: number;

  /** `impatience` is the share of steps that move the simulated time although another event could happen first. */
  constructor(random: SeededRandom, impatience: number, traceMax: number) {
    this.random = random;
    this.#impatience = impatience;
    this.#traceMax = traceMax;
  }

  addSource(source: () => readonly Choice[]): void {
    this.#sources.push(source);
  }

  addClock(owner: Owner, time: ProcessTime): void {
    this.#clocks.set(owner, time);
  }

  removeClock(owner: Owner): void {
    this.#clocks.get(owner)?.stop();
    this.#clocks.delete(owner);
  }

  atTurnEnd(work: () => void): void {
    this.#turnEnd.push(work);
  }

  note(what: string): void {
    this.#noted.push({ step: this.steps, nowMs: this.nowMs, what });
    if (this.#noted.length > 2 * this.#traceMax) this.#noted.splice(0, this.#traceMax);
  }

  /** Returns the last steps, for the report of a failure. */
  trace(): string[] {
    return this.#noted
      .slice(-this.#traceMax)
      .map(({ step, nowMs, what }) => `${step} ${(nowMs / 1_000).toFixed(3)}s ${what}`);
  }

  /** Makes one choice, and waits until the work that follows from this choice has settled. */
  async step(): Promise<void> {
    this.steps++;
    const choices: Choice[] = [];
    for (const source of this.#sources) choices.push(...source());
    if (choices.length === 0 || this.random.chance(this.#impatience)) this.#nextTimer();
    else {
      const choice = this.random.pick(choices);
      this.note(choice.what());
      await choice.run();
    }
    await this.settle();
  }

  /** Waits until every promise has settled, except those that wait for a choice of the scheduler. */
  async settle(): Promise<void> {
    do {
      for (const work of this.#turnEnd.splice(0)) work();
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#turnEnd.length > 0);
  }

  /**
   * Moves the time forward to the next timer, and fires this timer. A timer of a process that was frozen fires late.
   */
  #nextTimer(): void {
    let first: { readonly atMs: number; readonly fire: () => void } | undefined;
    let of: Owner | undefined;
    for (const [owner, clock] of this.#clocks) {
      const next = owner.frozen ? undefined : clock.next();
      if (next === undefined || (first !== undefined && next.atMs >= first.atMs)) continue;
      first = next;
      of = owner;
    }
    if (first === undefined || of === undefined) return;
    this.nowMs = Math.max(this.nowMs, first.atMs);
    this.note(`${of.name}: timer`);
    first.fire();
  }
}
