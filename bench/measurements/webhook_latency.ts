/**
 * For goal P10: measures webhook latency at a fixed rate. The latency is the time from when a message should be sent
 * until its webhook arrives. It therefore includes delays of this process.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { inParallel } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { percentile } from '../measure.js';
import { cpuSeconds, cpuSecondsOfTree } from '../service/processes.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';
import { bots, makeWebhookBots, type WebhookBots } from './webhook_bots.js';

/**
 * The number of updates in the warm-up. They are sent as fast as possible. Without a warm-up, a new process is several
 * times slower.
 */
const warmup_updates = 8_000;
const warmup_width = 32;
const warmup_s = 3;
const measured_s = 10;
const goal_ms = 50;
/** The maximum number of in-flight calls. If the rate needs more, the service cannot keep up. */
const open_max = 10_000;

const now = () => performance.timeOrigin + performance.now();

/** Sends each message when it is due. Returns the largest delay of this process and the answer times, all in ms. */
async function sayAll(hooks: WebhookBots, rate: number, count: number, signal: AbortSignal) {
  const began = now() + 100;
  const answers: number[] = [];
  let [late, open, next] = [0, 0, 0];
  let fault: unknown;
  while (next < count) {
    for (let due = began + (next * 1_000) / rate; next < count && due <= now(); ) {
      if (open >= open_max) throw new Error(`${rate} updates per second are more than this machine can send`);
      late = Math.max(late, now() - due);
      open++;
      const said = due;
      hooks
        .say(next++, due)
        .then(
          () => void answers.push(now() - said),
          (error) => {
            fault ??= error;
          },
        )
        .finally(() => open--);
      due = began + (next * 1_000) / rate;
    }
    if (fault) throw fault;
    await sleep(1, undefined, { signal });
  }
  while (open > 0) await sleep(1, undefined, { signal });
  if (fault) throw fault;
  return { late, answers };
}

async function warmUp(hooks: WebhookBots): Promise<void> {
  hooks.expect({ count: warmup_updates, from: 1, until: warmup_updates });
  await inParallel(warmup_updates, warmup_width, (number) => hooks.say(number, now()));
  await hooks.reached('done');
  await hooks.books(warmup_updates, false);
}

/** The CPU time of each process in the path of a delivery, in seconds. */
const costs = ({ front, parts }: Service, worker: number, receiver: number) => ({
  worker: cpuSeconds(worker),
  Redis: cpuSeconds(parts.redis),
  front: cpuSeconds(front.pid),
  flusher: cpuSeconds(parts.flush),
  Postgres: cpuSecondsOfTree(parts.postgres),
  receiver: cpuSeconds(receiver),
  load: cpuSeconds(process.pid),
});

export const latency: Measurement = {
  name: 'latency',
  async run(service, _, { rate }): Promise<Finding[]> {
    const hooks = await makeWebhookBots(service, 'timed');
    const worker = await service.startWorker();
    // No process gets a core for itself, because every process contributes to the latency.
    service.unpin([worker, hooks.receiver]);
    try {
      await hooks.set(true, true);
      await warmUp(hooks);
      const warm = warmup_s * rate;
      const count = warm + measured_s * rate;
      hooks.expect({ count, from: warm, until: count });
      const spentBy = () => costs(service, worker.pid, hooks.receiver.pid);
      const before = spentBy();
      const { late, answers } = await sayAll(hooks, rate, count, service.signal);
      const after = spentBy();
      const spent = (Object.keys(after) as Array<keyof typeof after>)
        .map((name) => `${name} ${(((after[name] - before[name]) * 1e6) / count).toFixed(0)}`)
        .join(', ');
      await hooks.reached('done');
      const { latencies, disordered } = await hooks.books(count, false);
      const took = latencies.slice(warm);
      const shown = (values: readonly number[]) =>
        `p50 ${percentile(values, 0.5).toFixed(1)}, p99 ${percentile(values, 0.99).toFixed(1)} ms`;
      const p99 = percentile(took, 0.99);
      return [
        {
          key: 'ms from update to webhook',
          value: p99,
          proof: 'P10',
          what: `update due → webhook received, ${rate.toLocaleString('en')}/s over ${bots} bots`,
          measured: `${shown(took)} (answers to the writers ${shown(answers.slice(warm))}; the load was late by ${late.toFixed(0)} ms at most; ${disordered} out of order; µs CPU per update: ${spent})`,
          goal: `${goal_ms} ms`,
          met: p99 <= goal_ms && disordered === 0,
        },
      ];
    } finally {
      await hooks.set(false, true);
      await worker.stop();
      await hooks.close();
      service.repin();
    }
  },
};
