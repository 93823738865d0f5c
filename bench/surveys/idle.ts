/** P11: CPU time of an idle front, worker and flusher. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from '../../src/loadtest/results.js';
import { cpuSeconds } from '../site/processes.js';
import type { Survey } from './survey.js';

/** Waits for garbage collection and expiring leases after earlier load. */
const settle_s = 30;
const measured_s = 30;
const goal_percent = 0.5;

export const idle: Survey = {
  name: 'idle',
  async run(site): Promise<Finding[]> {
    const worker = await site.startWorker();
    try {
      const pids = { front: site.front.pid, deliver: worker.pid, flush: site.parts.flush };
      await sleep(settle_s * 1_000, undefined, { signal: site.signal });
      const used = () => Object.entries(pids).map(([role, pid]) => [role, cpuSeconds(pid)] as const);
      const before = new Map(used());
      const began = performance.now();
      await sleep(measured_s * 1_000, undefined, { signal: site.signal });
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
