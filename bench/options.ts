/** The command line of `npm run bench`. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { bestLoadTool, type LoadTool, loadTools } from './load/load.js';
import type { Sizes } from './scenarios/scenario.js';
import { type BalancerKind, balancerKinds } from './site/balancer.js';

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
  readonly balancers: readonly BalancerKind[];
  readonly soak?: true;
  readonly minutes: number;
  readonly part: number;
  readonly load: LoadTool;
  readonly json?: string;
  readonly html?: string;
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
  npm run bench                                    everything, with the picture of rates and latencies: some half an hour
  npm run bench -- --goals --peers --html r.html   every goal with its figure, met or not: under 20 minutes
  npm run bench -- --only getMe,sendMessage        some of it
  npm run bench -- --soak --minutes 60             memory, journal and errors over an hour
  npm run bench:compare -- <ref>                   this commit beside another
  petrel capacity -- --rps 20000                  what a traffic needs, from measured costs

It starts a Redis, a Postgres, fronts and a flusher of its own and loads nothing else. An installation that runs already is
loaded, within bounds, by petrel bench --url. It ends with 1 when an answer was wrong.`;

/** Reads the command line and runs `action`. `names` are all that --only may choose from. */
export async function readOptions(
  names: readonly string[],
  action: (options: Options) => Promise<void>,
): Promise<void> {
  const some = (text: string) => {
    const chosen = text.split(',');
    if (chosen.every((name) => names.includes(name))) return chosen;
    throw new InvalidArgumentError(`Some of ${names.join(',')} are needed.`);
  };
  const kinds = (text: string) => {
    const chosen = balancerKinds.filter((kind) => text.split(',').includes(kind));
    if (chosen.length === text.split(',').length) return chosen;
    throw new InvalidArgumentError(`Some of ${balancerKinds.join(',')} are needed.`);
  };
  await new Command('bench')
    .description(
      'Measures calls of the service against their floors: the least any program on these parts must do.',
    )
    .option('--only <names>', `some of ${names.join(',')}`, some)
    .option('--goals', 'what the goals P1 to P11 need and nothing else, with a table of them')
    .option(
      '--within <minutes>',
      'begins nothing more after this time, and breaks off a minute later',
      number(0.1, 600),
      60,
    )
    .option('--rounds <n>', 'rounds, in each of which floor and service take a turn', count(100), 5)
    .option('--seconds <s>', 'length of a turn', count(600), 3)
    .option('--warmup <s>', 'length of the turn before the first round, 0 for none', count(600, 0), 2)
    .option('--connections <n>', 'connections, each with one request at a time', count(10_000), 64)
    .option('--no-fixed', 'without latencies at a fixed rate')
    .option('--no-sweep', 'without latencies from a tenth of the highest rate to near it')
    .option('--peers', 'telegram-test-api in the same rounds; it is fetched from the npm registry once')
    .option('--fronts <n>', 'fronts that scaling goes up to, and balanced up to three', count(8), 3)
    .option('--balancers <kinds>', `some of ${balancerKinds.join(',')}`, kinds, ['haproxy'])
    .option('--soak', 'only the soak: the mix for some time, while bots and chats are made and deleted')
    .option('--minutes <n>', 'length of the soak', number(0.1, 24 * 60), 10)
    .option('--part <share>', 'part of the highest rate at which the soak runs', number(0.01, 0.95), 0.6)
    .option('--messages <n>', 'messages that edits go through', count(1_000_000), 40_000)
    .option('--posts <n>', 'posts that reactions go through', count(1_000), 50)
    .option(
      '--reactions <n>',
      'reactions on the post that stands for a large one',
      count(10_000_000),
      100_000,
    )
    .option('--chats <n>', 'direct chats that stand for many', count(1_000_000), 20_000)
    .option('--bots <n>', 'bots that stand for many', count(1_000_000), 20_000)
    .option('--polls <n>', 'bots that poll and get nothing', count(10_000), 1_000)
    .option('--entities <n>', 'messages whose bytes are counted', count(1_000_000), 20_000)
    .option(
      '--backlog <n>',
      'entries that wait for Postgres when its writing is timed',
      count(1_000_000),
      40_000,
    )
    .option('--deliveries <n>', 'webhook deliveries of a round', count(100_000, 1_000), 12_000)
    .option('--rate <n>', 'updates a second whose way to a webhook is timed', count(20_000), 2_000)
    .addOption(
      new Option('--load <tool>', 'what makes the load').choices([...loadTools]).default(bestLoadTool()),
    )
    .option('--json <file>', 'writes the results to a file, for machines')
    .option('--html <file>', 'writes them to a page with plots, for people')
    .option('--costs <file>', 'writes the costs that the capacity model is fed with')
    .option('--schema', 'prints the JSON Schema of the results, and ends')
    .option(
      '--profile <folder>',
      'writes a CPU profile of the front for each scenario, and of the worker for each round of webhooks',
    )
    .addHelpText('after', after)
    .action(action)
    .parseAsync();
}
