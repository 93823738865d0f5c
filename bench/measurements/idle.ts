/** For goal P11: measures the CPU time of an idle front, worker and flusher. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from '../../src/loadtest/results.js';
import { cpuSeconds } from '../service/processes.js';
import type { Measurement } from './measurement.js';

/** How long to wait after earlier load, in seconds. In this time, garbage is collected and leases expire. */
const settle_s = 30;
const measured_s = 30;
const goal_percent = 0.5;

export const idle: Measurement = {
  name: 'idle',
  async run(service): Promise<Finding[]> {
    const worker = await service.startWorker();
    try {
      const pids = { front: service.front.pid, deliver: worker.pid, flush: service.parts.flush };
      await sleep(settle_s * 1_000, undefined, { signal: service.signal });
      const used = () => Object.entries(pids).map(([role, pid]) => [role, cpuSeconds(pid)] as const);
      const before = new Map(used());
      const began = performance.now();
      await sleep(measured_s * 1_000, undefined, { signal: service.signal });
      const seconds = (performance.now() - began) / 1_000;
      return used().map(([role, after]) => {
        const percent = (100 * (after - (before.get(role) ?? 0))) / seconds;
        return {
          key: `% of a core of an idle ${role}`,
          value: percent,
          proof: 'P11',
          what: `an idle \`${role}\`, over ${measured_s} s`,
          measured: `${percent.toFixed(2)} % of a core`,
          goal: `${goal_percent} %`,
          met: percent <= goal_percent,
        };
      });
    } finally {
      await worker.stop();
    }
  },
};
