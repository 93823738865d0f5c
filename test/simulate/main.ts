/**
 * Simulates installations, one for each seed. Prints each failure with its seed, the faults that it needs and its last
 * steps.
 *
 *   npm run simulate -- --seed 7 --steps 3000            one seed
 *   npm run simulate -- --from 1 --seeds 2000            many seeds, until one fails; --minutes limits the time
 *   npm run simulate -- --mutation 'trim before the commit' --seeds 500
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { freePort } from '../../src/dev/processes.js';
import { readScripts } from '../../src/redis/scripts/contract.js';
import type { Verdicts } from './oracle.js';
import { nameScripts, simulatedScripts } from './redis.js';
import { type Report, simulate } from './simulation.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    steps: { type: 'string', default: '3000' },
    minutes: { type: 'string' },
    trace: { type: 'string', default: '80' },
    scripts: { type: 'string', default: 'lua' },
  },
});

async function startRedis() {
  const port = await freePort();
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', settings, { stdio: 'ignore' });
  const client = new Redis({ port, host: '127.0.0.1', protocol: 2, disableClientInfo: true });
  client.on('error', () => undefined);
  await new Promise<void>((resolve) => client.once('ready', () => resolve()));
  return {
    client,
    async stop() {
      client.disconnect();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Tries to omit each fault in turn. Keeps the omissions under which the run still fails. */
async function minimal(run: (omitted: ReadonlySet<number>) => Promise<Report>, report: Report) {
  let least = report;
  const omitted = new Set<number>();
  const numbers = report.faults.map((fault) => Number(/fault (\d+)/.exec(fault)?.[1]));
  for (const number of numbers.reverse()) {
    const tried = await run(new Set([...omitted, number]));
    if (tried.violation === null) continue;
    omitted.add(number);
    least = tried;
  }
  return least;
}

const sum = (a: Verdicts, b: Verdicts): Verdicts => ({
  histories: a.histories + b.histories,
  calls: a.calls + b.calls,
  undecided: a.undecided + b.undecided,
});

const redis = await startRedis();
const scripts = simulatedScripts(readScripts(values.scripts));
nameScripts(scripts);
const steps = Number(values.steps);
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const began = performance.now();
const deadline = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes) * 60_000;
let made = 0;
let sent = 0;
let seeds = 0;
const none: Verdicts = { histories: 0, calls: 0, undecided: 0 };
let checked: Pick<Report, 'messages' | 'marks'> = { messages: none, marks: none };
try {
  for (let seed = first; seed < first + count; seed++) {
    if (performance.now() - began > deadline) break;
    const run = (omitted: ReadonlySet<number>) =>
      simulate({ seed, steps, scripts, client: redis.client, omitted });
    const report = await run(new Set());
    made += report.steps;
    sent += report.sent;
    seeds++;
    checked = {
      messages: sum(checked.messages, report.messages),
      marks: sum(checked.marks, report.marks),
    };
    if (report.violation === null) continue;
    console.log(`seed ${seed} fails after ${report.steps} steps: ${report.violation}`);
    const trace = Number(values.trace);
    if (trace > 0) {
      const least = await minimal(run, report);
      console.log(`It needs ${least.faults.length} of ${report.faults.length} faults:`);
      for (const fault of least.faults) console.log(`  ${fault}`);
      console.log(`${least.violation}\nLast steps:`);
      for (const line of least.trace.slice(-trace)) console.log(`  ${line}`);
    }
    process.exitCode = 1;
    break;
  }
} finally {
  await redis.stop();
}
for (const [kind, { histories, calls, undecided }] of Object.entries(checked))
  console.log(`${kind}: ${histories} histories with ${calls} calls checked, ${undecided} undecided`);
const seconds = (performance.now() - began) / 1_000;
console.log(
  `${seeds} seeds, ${made} steps, ${sent} messages in ${seconds.toFixed(1)} s: ${Math.round(made / seconds)} steps/s, ${(seeds / seconds).toFixed(1)} seeds/s`,
);
