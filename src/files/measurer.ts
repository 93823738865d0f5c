/** Measures uploads in a separate thread. Limits how long a measurement takes and how many files wait. */

import { Worker } from 'node:worker_threads';
import { fail } from '../errors.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { fileLimits as limits } from './limits.js';
import type { Measured } from './measure.js';
import { type MeasureAnswer, type MeasureTask, ready } from './measure_answer.js';
import { OwnerQueue } from './owner_queue.js';

interface Waiting extends MeasureTask {
  readonly since: number;
  readonly done: (measured: Measured) => void;
}

const heap_mb_max = 256;
/** How long a new thread may take to load its libraries, in ms. On a busy machine, loading takes long. */
const start_ms_max = 15_000;
const thread = new URL('./measure_worker.js', import.meta.url);

/**
 * Measures one file at a time in one thread. Owners of files take turns. The thread starts with the first file. If a
 * file kills the thread, a new thread starts with the next file.
 */
export class Measurer {
  readonly #program: URL;
  readonly #time: Time;
  readonly #queue = new OwnerQueue<Waiting>({
    items: limits.measure_waiting_max,
    bytes: limits.measure_waiting_bytes_max,
    ownItems: limits.measure_waiting_own_max,
    ownBytes: limits.measure_waiting_own_bytes_max,
  });
  #worker: Worker | undefined;
  #current: Waiting | undefined;
  #timer: Timer | undefined;
  #ids = ready;
  #closed = false;

  constructor(program: URL = thread, time = systemTime) {
    this.#program = program;
    this.#time = time;
  }

  /**
   * Returns the metadata of a file of `owner`. The result is empty if measuring takes longer than
   * `limits.measure_ms_max` or kills the thread. The result has only `late` if the file waited
   * `limits.measure_wait_ms_max` for its turn. For a photo with metadata, the result has `cleaned`. Throws
   * `too_many_requests` if this owner, or all owners together, already have too many waiting files or bytes.
   */
  measure(owner: number, bytes: Uint8Array, isPhoto = false): Promise<Measured> {
    return new Promise((done) => {
      const waiting = { id: ++this.#ids, bytes, isPhoto, since: this.#time.monotonic(), done };
      if (!this.#queue.add(owner, bytes.length, waiting)) fail('too_many_requests', { retry_after: 1 });
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const last = this.#worker;
    this.#worker = undefined;
    await last?.terminate();
    if (this.#current) this.#finish({});
  }

  #next(): void {
    if (this.#current) return;
    this.#current = this.#queue.take();
    if (!this.#current) return;
    const late = this.#time.monotonic() - this.#current.since > limits.measure_wait_ms_max;
    if (late || this.#closed) {
      this.#finish(late ? { late } : {});
      return;
    }
    const fresh = this.#worker === undefined;
    this.#worker ??= this.#start();
    this.#allow(fresh ? start_ms_max : limits.measure_ms_max);
    // Copies the file out of the request body, because a transfer to the thread would take away the memory of the whole
    // body.
    const bytes = new Uint8Array(this.#current.bytes);
    const task: MeasureTask = { id: this.#current.id, bytes, isPhoto: this.#current.isPhoto };
    this.#worker.postMessage(task, [bytes.buffer]);
  }

  #start(): Worker {
    const started = new Worker(this.#program, { resourceLimits: { maxOldGenerationSizeMb: heap_mb_max } });
    // An idle thread must not keep the process alive.
    started.unref();
    started.on('message', (answer: MeasureAnswer) => {
      if (this.#worker !== started) return;
      if (answer.id === ready) this.#allow(limits.measure_ms_max);
      else if (this.#current?.id === answer.id) this.#finish(answer.measured);
    });
    const lost = () => {
      if (this.#worker !== started) return;
      this.#worker = undefined;
      if (this.#current) this.#finish({});
    };
    started.on('error', lost);
    started.on('exit', lost);
    return started;
  }

  #allow(ms: number): void {
    this.#time.cancel(this.#timer);
    if (this.#current) this.#timer = this.#time.after(ms, () => this.#giveUp());
  }

  #giveUp(): void {
    const hung = this.#worker;
    this.#worker = undefined;
    void hung?.terminate();
    this.#finish({});
  }

  #finish(measured: Measured): void {
    const { done } = this.#current as Waiting;
    this.#time.cancel(this.#timer);
    this.#current = undefined;
    done(measured);
    this.#next();
  }
}
