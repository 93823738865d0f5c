import { Command, InvalidArgumentError, Option } from 'commander';
import { bestLoadTool, type LoadTool, loadTools } from './load/load.js';
import type { Sizes } from './scenarios/scenario.js';
import { type BalancerKind, balancerKinds } from './service/balancer.js';

export interface Options extends Sizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup: number;
  readonly connections: number;
  readonly only?: readonly string[];
  readonly goals?: true;
  readonly within: number;
  readonly fixed: boolean;
  readonly sweep: boolean;
  readonly peers?: true;
  readonly fronts: number;
  readonly databases: number;
  readonly balancers: readonly BalancerKind[];
  readonly soak?: true;
  readonly minutes: number;
  readonly part: number;
  readonly load: LoadTool;
  readonly json?: string;
  readonly html?: string;
  readonly history?: string;
  readonly costs?: string;
  readonly schema?: true;
  readonly profile?: string;
}

const count =
  (max: number, min = 1) =>
  (text: string) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
  };

const number = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text !== '' && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
};

const after = `
  npm run bench                                    everything, with latencies over the range of rates: about half an hour
  npm run bench -- --goals --peers --html r.html   the result of every goal: under 20 minutes
  npm run bench -- --only getMe,sendMessage        only these scenarios
  npm run bench -- --soak --minutes 60             memory, journal and errors over an hour
  npm run bench:compare -- <ref>                   this commit compared with another
  petrel capacity -- --rps 20000                  resources for this traffic, from measured costs

The bench starts its own Redis, Postgres, fronts and flusher, and loads nothing else. petrel bench --url loads a running
installation. Exits with 1 when an answer was wrong.`;

export async function readOptions(
  names: readonly string[],
  action: (options: Options) => Promise<void>,
): Promise<void> {
  const some = (text: string) => {
    const chosen = text.split(',');
    if (chosen.every((name) => names.includes(name))) return chosen;
    throw new InvalidArgumentError(`Choose from ${names.join(',')}.`);
  };
  const kinds = (text: string) => {
    const chosen = balancerKinds.filter((kind) => text.split(',').includes(kind));
    if (chosen.length === text.split(',').length) return chosen;
    throw new InvalidArgumentError(`Choose from ${balancerKinds.join(',')}.`);
  };
  await new Command('bench')
    .description(
      'Compares calls of the service with their floors: the minimum work of any program on the same HTTP engine, Redis and Postgres.',
    )
    .option('--only <names>', `some of ${names.join(',')}`, some)
    .option('--goals', 'runs only what the goals P1 to P11 need, and prints their table')
    .option(
      '--within <minutes>',
      'starts nothing new after these minutes, and aborts one minute later',
      number(0.1, 600),
      60,
    )
    .option('--rounds <n>', 'rounds; floor and service each have one turn per round', count(100), 5)
    .option('--seconds <s>', 'seconds per turn', count(600), 3)
    .option('--warmup <s>', 'seconds of warm-up before the first round, 0 for none', count(600, 0), 2)
    .option('--connections <n>', 'connections with one request in flight each', count(10_000), 64)
    .option('--no-fixed', 'skips latencies at a fixed rate')
    .option('--no-sweep', 'skips latencies over the range of rates')
    .option('--peers', 'also measures telegram-test-api, which is downloaded once from the npm registry')
    .option('--fronts <n>', 'maximum number of fronts for scaling; balanced uses at most three', count(8), 3)
    .option('--databases <n>', 'further databases over which flushed data is divided', count(8, 0), 0)
    .option('--balancers <kinds>', `some of ${balancerKinds.join(',')}`, kinds, ['haproxy'])
    .option(
      '--soak',
      'runs only the soak: the mix for a longer time, while bots and chats are created and deleted',
    )
    .option('--minutes <n>', 'minutes of the soak', number(0.1, 24 * 60), 10)
    .option('--part <share>', 'share of the highest rate for the soak', number(0.01, 0.95), 0.6)
    .option('--messages <n>', 'messages that edits cycle through', count(1_000_000), 40_000)
    .option('--posts <n>', 'posts that reactions cycle through', count(1_000), 50)
    .option('--reactions <n>', 'reactions on the large post', count(10_000_000), 100_000)
    .option('--chats <n>', 'direct chats of the scenario with many chats', count(1_000_000), 20_000)
    .option('--bots <n>', 'bots of the scenario with many bots', count(1_000_000), 20_000)
    .option('--polls <n>', 'bots with idle polls', count(10_000), 1_000)
    .option('--entities <n>', 'messages for measuring bytes per message', count(1_000_000), 20_000)
    .option('--backlog <n>', 'journal entries for measuring write-behind', count(1_000_000), 40_000)
    .option('--searched <n>', 'messages that searches read from', count(100_000_000, 100_000), 500_000)
    .option('--deliveries <n>', 'webhook deliveries per round', count(100_000, 1_000), 12_000)
    .option('--rate <n>', 'updates per second for measuring webhook latency', count(20_000), 2_000)
    .addOption(new Option('--load <tool>', 'load tool').choices([...loadTools]).default(bestLoadTool()))
    .option('--json <file>', 'writes the results to a JSON file')
    .option('--html <file>', 'writes the results to a page with plots')
    .option(
      '--history <folder>',
      'keeps the last 100 results, of at most 32 MiB, in this folder; the page then shows a trend over commits',
    )
    .option('--costs <file>', 'writes the costs for the capacity model')
    .option('--schema', 'prints the JSON Schema of the results and exits')
    .option(
      '--profile <folder>',
      'writes a CPU profile of the front per scenario, and of the worker per webhook round',
    )
    .addHelpText('after', after)
    .action(action)
    .parseAsync();
}
