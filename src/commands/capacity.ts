/** Defines the command `petrel capacity`. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { capacityText } from '../loadtest/capacity.js';
import { costsSchema, type Demand, measuredCosts, plan } from '../loadtest/capacity_model.js';
import { ignoreClosedOutput } from './running.js';

const gb = 2 ** 30;

interface Options {
  readonly rps: number;
  readonly mix?: Readonly<Record<string, number>>;
  readonly reactions: number;
  readonly bots: number;
  readonly chats?: number;
  readonly webhooks: number;
  readonly hours: number;
  readonly waiting: number;
  readonly use: number;
  readonly shard: number;
  readonly spare: number;
  readonly database: number;
  readonly costs?: string;
  readonly json?: true;
}

const number =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string) => {
    const value = Number(text);
    if (text !== '' && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
  };

/** Parses a mix of calls in percent, for example `sendMessage=60,getMe=40`. */
function mixOf(text: string): Record<string, number> {
  const parts = text.split(',').map((part) => part.split('=') as [string, string]);
  const found = Object.fromEntries(parts.map(([name, share]) => [name, Number(share) / 100]));
  const sum = Object.values(found).reduce((a, b) => a + b, 0);
  if (Math.abs(sum - 1) < 0.001) return found;
  throw new InvalidArgumentError('The shares must add up to 100, for instance sendMessage=80,getMe=20.');
}

/** Converts options to calls per second by kind of call. The kind `mix` is the mix of calls that the bench measured. */
function demandOf(options: Options): Demand {
  const { rps, mix = { mix: 1 }, reactions, bots } = options;
  const calls: Record<string, number> = Object.fromEntries(
    Object.entries(mix).map(([kind, share]) => [kind, rps * share]),
  );
  if (reactions > 0) calls.reactions = (calls.reactions ?? 0) + reactions;
  return {
    calls,
    bots,
    chats: options.chats ?? bots * 10,
    deliveries: options.webhooks,
    hot_s: options.hours * 3_600,
    waiting_s: options.waiting,
    use: options.use,
    shard_bytes: options.shard * gb,
    database_cores: options.database,
    spare_fronts: options.spare,
  };
}

function capacity(options: Options): void {
  const costs =
    options.costs === undefined
      ? measuredCosts
      : costsSchema.parse(JSON.parse(readFileSync(options.costs, 'utf8')));
  const demand = demandOf(options);
  const need = plan(costs, demand);
  process.stdout.write(
    options.json ? `${JSON.stringify({ demand, need }, null, 2)}\n` : capacityText(costs, demand, need),
  );
}

export function addCapacity(program: Command): void {
  program
    .command('capacity')
    .description('estimates what an installation needs for a given traffic, from costs measured by the bench')
    .requiredOption('--rps <n>', 'calls per second of bots and people', number(0))
    .option(
      '--mix <shares>',
      'shares of these calls in percent, for instance sendMessage=80,getMe=20; default: the mix of the bench',
      mixOf,
    )
    .option('--reactions <n>', 'additional reactions per second', number(0), 0)
    .option('--bots <n>', 'bots active within the hours of --hours', number(0), 1_000)
    .option('--chats <n>', 'chats active within these hours; default: ten per bot', number(0))
    .option('--webhooks <n>', 'webhook deliveries per second', number(0), 0)
    .option('--hours <h>', 'hours that data stays in Redis after its last use', number(0.02, 48), 1)
    .option('--waiting <s>', 'average seconds that updates wait', number(0, 86_400), 5)
    .option('--use <share>', 'share of a core to use', number(0.05, 1), 0.6)
    .option('--shard <gb>', 'memory of one Redis server', number(0.1, 4_096), 32)
    .option('--database <cores>', 'cores of one Postgres server', number(1, 1_024), 8)
    .option('--spare <n>', 'fronts that may fail', number(0, 1_000), 1)
    .option('--costs <file>', 'file with the costs of another machine')
    .option('--json', 'prints JSON')
    .action((options: Options) => {
      ignoreClosedOutput();
      try {
        capacity(options);
      } catch (error) {
        process.stderr.write(`petrel: ${(error as Error).message}\n`);
        process.exitCode = 1;
      }
    });
}
