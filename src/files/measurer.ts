/** Measures uploads on a separate thread, bounded in time and number. */
import { Worker } from 'node:worker_threads';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import type { Measured } from './measure.js';
import { type MeasureAnswer, ready } from './measure_answer.js';

export interface Measurer {
  /**
   * Metadata of the file. Empty when measuring takes longer than `limits.measure_ms_max` or kills the thread. Only
   * `late` when the file waited `limits.measure_wait_ms_max` for its turn. Error: `too_many_requests` when
   * `limits.measure_waiting_max` files or more than `limits.measure_waiting_bytes_max` bytes wait.
   */
  measure(bytes: Uint8Array): Promise<Measured>;
  close(): Promise<void>;
}

interface Waiting {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly since: number;
  readonly done: (measured: Measured) => void;
}

const heap_mb_max = 256;
/** A new thread first loads its libraries, which takes long on a busy machine. */
const start_ms_max = 15_000;
const thread = new URL('./measure_worker.js', import.meta.url);

/** One thread, one file at a time. The thread starts with the first file, and again after a file that killed it. */
export function createMeasurer(program: URL = thread): Measurer {
  const queue: Waiting[] = [];
  let worker: Worker | undefined;
  let current: Waiting | undefined;
  let timer: NodeJS.Timeout | undefined;
  let ids = ready;
  let closed = false;

  function finish(measured: Measured): void {
    const { done } = current as Waiting;
    clearTimeout(timer);
    current = undefined;
    done(measured);
    next();
  }

  function start(): Worker {
    const started = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: heap_mb_max } });
    // Does not keep an otherwise idle process alive.
    started.unref();
    started.on('message', (answer: MeasureAnswer) => {
      if (worker !== started) return;
      if (answer.id === ready) allow(limits.measure_ms_max);
      else if (current?.id === answer.id) finish(answer.measured);
    });
    const lost = () => {
      if (worker !== started) return;
      worker = undefined;
      if (current) finish({});
    };
    started.on('error', lost);
    started.on('exit', lost);
    return started;
  }

  function allow(ms: number): void {
    clearTimeout(timer);
    if (current) timer = setTimeout(giveUp, ms);
  }

  function giveUp(): void {
    const hung = worker;
    worker = undefined;
    void hung?.terminate();
    finish({});
  }

  function next(): void {
    if (current) return;
    current = queue.shift();
    if (!current) return;
    const late = performance.now() - current.since > limits.measure_wait_ms_max;
    if (late || closed) {
      finish(late ? { late } : {});
      return;
    }
    const fresh = worker === undefined;
    worker ??= start();
    allow(fresh ? start_ms_max : limits.measure_ms_max);
    // Copies the file out of the request body, because transferring a view to the thread would transfer the whole body.
    const bytes = new Uint8Array(current.bytes);
    worker.postMessage({ id: current.id, bytes }, [bytes.buffer]);
  }

  return {
    measure(bytes) {
      const waiting = queue.reduce((sum, one) => sum + one.bytes.length, 0);
      if (queue.length >= limits.measure_waiting_max || waiting > limits.measure_waiting_bytes_max)
        return fail('too_many_requests', { retry_after: 1 });
      return new Promise((done) => {
        queue.push({ id: ++ids, bytes, since: performance.now(), done });
        next();
      });
    },
    async close() {
      closed = true;
      const last = worker;
      worker = undefined;
      await last?.terminate();
      if (current) finish({});
    },
  };
}
