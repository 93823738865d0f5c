/** `npm run bench`: measures calls of the service against their floors, side by side on this machine. */
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadEngine } from '../src/http/engine.js';
import { version } from '../src/version.js';
import { bestLoadTool, type LoadTool, loadTools } from './load/load.js';
import { type Measured, measure } from './measure.js';
import { report } from './report.js';
import { scenarios } from './scenarios/all.js';
import type { Sizes } from './scenarios/scenario.js';
import { placement } from './site/processes.js';
import { watchRedis } from './site/redis_watch.js';
import { startSite } from './site/site.js';
import { memory } from './surveys/memory.js';
import type { Finding, Survey } from './surveys/survey.js';
import { trips } from './surveys/trips.js';
import { latency } from './surveys/webhook_latency.js';
import { webhooks } from './surveys/webhooks.js';

interface Options extends Sizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup: number;
  readonly connections: number;
  readonly only?: readonly string[];
  readonly load: LoadTool;
  readonly json?: string;
  readonly profile?: string;
}

const partitions = 64;

const count =
  (max: number, min = 1) =>
  (text: string) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
  };

/** One line that is written over where people watch, and a line each elsewhere. */
function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${line}`);
  else process.stderr.write(`${line}\n`);
}

const endProgress = () => {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K');
};

const surveys: readonly Survey[] = [trips, memory, webhooks, latency];
const names = [...scenarios, ...surveys].map(({ name }) => name);

const some = (text: string) => {
  const chosen = text.split(',');
  if (chosen.every((name) => names.includes(name))) return chosen;
  throw new InvalidArgumentError(`Some of ${names.join(',')} are needed.`);
};

interface Found {
  readonly measured: Measured[];
  readonly findings: Finding[];
}

async function measureAll(options: Options, signal: AbortSignal): Promise<Found> {
  const isChosen = ({ name }: { readonly name: string }) => options.only?.includes(name) ?? true;
  const profile = options.profile === undefined ? undefined : resolve(options.profile);
  if (profile !== undefined) await mkdir(profile, { recursive: true });
  const site = await startSite({ partitions, say: progress, signal, profile });
  try {
    const watch = await watchRedis(site.redisUrl, partitions);
    try {
      const findings: Finding[] = [];
      for (const survey of surveys.filter(isChosen)) {
        signal.throwIfAborted();
        progress(`${survey.name}: counting`);
        findings.push(...(await survey.run(site, watch, options)));
      }
      const measured: Measured[] = [];
      for (const scenario of scenarios.filter(isChosen)) {
        signal.throwIfAborted();
        progress(`${scenario.name}: preparing`);
        const prepared = await scenario.prepare(site, watch, options);
        measured.push(
          await measure(scenario, prepared, {
            tool: options.load,
            connections: Math.min(options.connections, scenario.connectionsMax ?? options.connections),
            rounds: options.rounds,
            seconds: options.seconds,
            warmup_s: options.warmup,
            dir: site.dir,
            signal,
            watch,
            progress,
            profile: profile === undefined ? undefined : site.profile,
          }),
        );
      }
      return { measured, findings };
    } finally {
      await watch.close();
    }
  } finally {
    progress('stopping');
    await site.stop();
    endProgress();
  }
}

async function bench(options: Options): Promise<void> {
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => interrupted.abort(new Error('interrupted')));
  // What was started must be stopped, whatever goes wrong here.
  process.on('uncaughtException', (error) => interrupted.abort(error));
  try {
    const { measured, findings } = await measureAll(options, interrupted.signal);
    const engine = loadEngine();
    const conditions =
      `Petrel ${version} on ${engine.name} ${engine.version}${engine.native ? '' : ' (not native)'}, ` +
      `Node ${process.versions.node}; ${options.load}, ${options.connections} connections, medians of ` +
      `${options.rounds} rounds of ${options.seconds} s; ${placement}`;
    process.stdout.write(`\n${conditions}\n\n${report(measured, findings)}`);
    if (options.json !== undefined)
      writeFileSync(options.json, `${JSON.stringify({ conditions, measured, findings }, null, 2)}\n`);
  } catch (error) {
    const reason = interrupted.signal.aborted ? interrupted.signal.reason : error;
    process.stderr.write(`bench: ${(reason as Error).message}\n`);
    process.exitCode = 1;
  }
}

await new Command('bench')
  .description(
    'Measures calls of the service against their floors: the least any program on these parts must do.',
  )
  .option('--rounds <n>', 'rounds, in each of which floor and service take a turn', count(100), 5)
  .option('--seconds <s>', 'length of a turn', count(600), 4)
  .option('--warmup <s>', 'length of the turn before the first round, 0 for none', count(600, 0), 3)
  .option('--connections <n>', 'connections, each with one request at a time', count(10_000), 64)
  .option('--only <names>', `some of ${names.join(',')}`, some)
  .option('--messages <n>', 'messages that edits go through', count(1_000_000), 40_000)
  .option('--posts <n>', 'posts that reactions go through', count(1_000), 50)
  .option('--reactions <n>', 'reactions on the post that stands for a large one', count(10_000_000), 100_000)
  .option('--chats <n>', 'direct chats that stand for many', count(1_000_000), 20_000)
  .option('--entities <n>', 'messages whose bytes are counted', count(1_000_000), 20_000)
  .option('--deliveries <n>', 'webhook deliveries of a round', count(100_000, 1_000), 12_000)
  .option('--rate <n>', 'updates a second whose way to a webhook is timed', count(20_000), 2_000)
  .addOption(
    new Option('--load <tool>', 'what makes the load').choices([...loadTools]).default(bestLoadTool()),
  )
  .option('--json <file>', 'writes the figures to a file as well')
  .option(
    '--profile <folder>',
    'writes a CPU profile of the front for each scenario, and of the worker for each round of webhooks',
  )
  .action((options: Options) => bench(options))
  .parseAsync();
