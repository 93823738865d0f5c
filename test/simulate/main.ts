/**
 * Simulates installations, one for each seed. Prints each failure with its seed, the faults that it needs and its last
 * steps.
 *
 *   npm run simulate -- --seed 7 --steps 3000            one seed
 *   npm run simulate -- --from 1 --seeds 2000            many seeds, until one fails; --minutes limits the time
 *   npm run simulate -- --seeds 2000 --places 8          8 seeds at a time in one process, usually 4
 *   npm run simulate -- --focus pins --seeds 100         many seeds that concentrate on one subject of conditions.ts
 *   npm run simulate -- --mutation 'trim before the commit' --seeds 500
 *   npm run simulate -- --mutation 'trim before the commit' --seeds 40 --all   how many of 40 seeds find the defect
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { Redis } from 'ioredis';
import { readScripts } from '../../src/redis/scripts/contract.js';
import { focuses } from './conditions.js';
import type { Verdicts } from './oracle.js';
import { nameScripts, SharedRedis, simulatedScripts } from './redis.js';
import { type Report, simulate } from './simulation.js';

const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('A whole number from 1 to 999999999 is needed.');
};
const values = new Command('npm run simulate --')
  .description('Simulates installations with faults, one for each seed.')
  .option('--seed <number>', 'one seed', wholeNumber)
  .option('--from <number>', 'the first of several seeds', wholeNumber, 1)
  .option('--seeds <count>', 'how many seeds', wholeNumber, 1)
  .option('--steps <count>', 'steps of each seed', wholeNumber, 3_000)
  .option('--minutes <number>', 'starts no further seed after this time', wholeNumber)
  .option(
    '--trace <count>',
    'how many steps of a failure are printed, or 0 for none',
    (text) => (text === '0' ? 0 : wholeNumber(text)),
    80,
  )
  .option('--places <count>', 'how many seeds run at the same time', wholeNumber, 4)
  .addOption(new Option('--focus <name>', 'gives each seed this focus').choices(Object.keys(focuses)))
  .option('--all', 'continues after a failure, and prints how many seeds failed')
  .option('--mutation <name>', 'changes the program; test/simulate/mutations.json lists all')
  .addOption(new Option('--scripts <folder>').default('lua').hideHelp())
  .parse()
  .opts();
/** The number of seeds that run at the same time. While one of them waits for Redis, the others continue. */
const places: number = values.places;

async function startRedis() {
  // A Unix socket takes less processor time than a TCP port.
  const folder = mkdtempSync(join(tmpdir(), 'petrel-simulate-redis-'));
  const path = join(folder, 'socket');
  const settings = [
    '--port',
    '0',
    '--unixsocket',
    path,
    '--databases',
    `${2 * places}`,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn('redis-server', settings, { stdio: 'ignore' });
  const client = new Redis({ path, protocol: 2, disableClientInfo: true });
  client.on('error', () => undefined);
  await new Promise<void>((resolve) => client.once('ready', () => resolve()));
  return {
    client,
    async stop() {
      client.disconnect();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Finds the faults without which the run would not fail. Omits each fault in turn, and keeps it omitted if the run
 * still fails.
 */
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

const steps: number = values.steps;
const focus: string | undefined = values.focus;
const first: number = values.seed ?? values.from;
const end = first + (values.seed === undefined ? values.seeds : 1);
const began = performance.now();
const deadline = values.minutes === undefined ? Number.POSITIVE_INFINITY : values.minutes * 60_000;
const server = await startRedis();
const scripts = simulatedScripts(readScripts(values.scripts));
nameScripts(scripts);
const redis = new SharedRedis(server.client, scripts);
const none: Verdicts = { histories: 0, calls: 0, undecided: 0 };
const total = { seeds: 0, steps: 0, sent: 0, messages: none, marks: none };
const failures: Array<{ readonly seed: number; readonly report: Report }> = [];
let next = first;

/**
 * Runs seeds one after the other. Without `--all`, ends as soon as a seed has failed here or in another concurrent run.
 */
async function runSeeds(place: number): Promise<void> {
  while ((values.all || failures.length === 0) && next < end && performance.now() - began < deadline) {
    const seed = next++;
    const report = await simulate({ seed, steps, redis, place, focus });
    total.seeds++;
    total.steps += report.steps;
    total.sent += report.sent;
    total.messages = sum(total.messages, report.messages);
    total.marks = sum(total.marks, report.marks);
    if (report.violation !== null) failures.push({ seed, report });
  }
}

async function explain(seed: number, report: Report): Promise<void> {
  console.log(`seed ${seed} fails after ${report.steps} steps: ${report.violation}`);
  const trace: number = values.trace;
  if (trace === 0) return;
  const least = await minimal((omitted) => simulate({ seed, steps, redis, omitted, focus }), report);
  console.log(`It needs ${least.faults.length} of ${report.faults.length} faults:`);
  for (const fault of least.faults) console.log(`  ${fault}`);
  console.log(`${least.violation}\nLast steps:`);
  for (const line of least.trace.slice(-trace)) console.log(`  ${line}`);
}

try {
  await Promise.all(Array.from({ length: places }, (_, place) => runSeeds(place)));
  const [failed] = failures.sort((a, b) => a.seed - b.seed);
  if (failed) {
    process.exitCode = 1;
    await explain(failed.seed, failed.report);
    const seeds = failures.map(({ seed }) => seed).join(' ');
    if (values.all) console.log(`${failures.length} of ${total.seeds} seeds fail: ${seeds}`);
  }
} finally {
  await server.stop();
}
for (const kind of ['messages', 'marks'] as const) {
  const { histories, calls, undecided } = total[kind];
  console.log(`${kind}: ${histories} histories with ${calls} calls checked, ${undecided} undecided`);
}
const seconds = (performance.now() - began) / 1_000;
const rates = `${Math.round(total.steps / seconds)} steps/s, ${(total.seeds / seconds).toFixed(1)} seeds/s`;
console.log(
  `${total.seeds} seeds, ${total.steps} steps, ${total.sent} messages in ${seconds.toFixed(1)} s: ${rates}`,
);
