/** `npm run capacity`: how many nodes, shards and how much memory a traffic needs, from costs that the bench measured. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { table } from '../src/bench/table.js';
import { type Costs, costsSchema, type Demand, type Need, plan } from './model/model.js';
import { shares } from './scenarios/shares.js';

/** The committed file, as the bench wrote it. */
const costs_file = fileURLToPath(new URL('../../bench/model/costs.json', import.meta.url));
const gb = 2 ** 30;
/** The bench itself keeps some processes a core busy; more than these are others. */
const busy_load_times = 3;

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
  readonly costs: string;
  readonly json?: true;
}

const number =
  (min: number, max = Number.MAX_SAFE_INTEGER) =>
  (text: string) => {
    const value = Number(text);
    if (text !== '' && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
  };

/** `sendMessage=60,getMe=40`, in parts of a hundred. */
function mixOf(text: string): Record<string, number> {
  const parts = text.split(',').map((part) => part.split('=') as [string, string]);
  const found = Object.fromEntries(parts.map(([name, share]) => [name, Number(share) / 100]));
  const sum = Object.values(found).reduce((a, b) => a + b, 0);
  if (Math.abs(sum - 1) < 0.001) return found;
  throw new InvalidArgumentError(
    'Shares are needed that add up to 100, for instance sendMessage=80,getMe=20.',
  );
}

/** Calls by kind: `mix` is the traffic that the bench measured as one. */
function demandOf(options: Options): Demand {
  const { rps, mix = { mix: 1 }, reactions, bots } = options;
  const calls: Record<string, number> = Object.fromEntries(
    Object.entries(mix).map(([kind, share]) => [kind, rps * share]),
  );
  if (reactions > 0) calls.reactions = (calls.reactions ?? 0) + reactions;
  return {
    ...{ calls, bots },
    chats: options.chats ?? bots * 10,
    deliveries: options.webhooks,
    hot_s: options.hours * 3_600,
    waiting_s: options.waiting,
    use: options.use,
    shard_bytes: options.shard * gb,
    spare_fronts: options.spare,
  };
}

const whole = (value: number) => Math.round(value).toLocaleString('en');
const size = (bytes: number) =>
  bytes >= gb ? `${(bytes / gb).toFixed(1)} GB` : `${(bytes / 2 ** 20).toFixed(0)} MB`;
const cores = (value: number) => `${value.toFixed(2)} cores`;

function needs(need: Need): string {
  const rows = [
    ['fronts', String(need.fronts), `${cores(need.front_cores)} of work`],
    [
      'Redis servers',
      String(need.shards),
      `${cores(need.redis_cores)} and ${size(need.redis_bytes)}; ${need.shards_for} decides`,
    ],
    ['flushers', String(need.flushers), cores(need.flush_cores)],
    ['webhook workers', String(need.workers), cores(need.worker_cores)],
    [
      'Postgres',
      `${whole(need.postgres_rows)} rows/s`,
      `${cores(need.postgres_cores)}, its own background work left out`,
    ],
  ];
  const parts = Object.entries(need.parts)
    .map(([name, bytes]) => `${name} ${size(bytes)}`)
    .join(', ');
  return `${table(rows, 3)}\n\nMemory of Redis: ${parts}`;
}

function assumptions(costs: Costs, demand: Demand): string {
  const machine = Object.entries(costs.machine)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ');
  const busy = Number(costs.machine.load_average ?? 0) > busy_load_times * Number(costs.machine.cores ?? 1);
  return [
    ...(busy
      ? [
          'The machine had much else to do while costs were measured: they are too high. Measure again on a quiet one.',
        ]
      : []),
    `Costs were measured ${costs.made_at.slice(0, 10)} with Petrel ${costs.petrel}: ${costs.measured}.`,
    `Machine: ${machine}. Yours will differ: npm run bench -- --costs <file> measures it, --costs <file> uses that.`,
    'Costs are those of CPU time a call at half of the highest rate of one front, where that was measured; they fall at higher rates, where Redis and the flusher do more at a time.',
    `A core, and a server's memory, is planned to be used to ${Math.round(demand.use * 100)} %. A front, a flusher and a worker use one core each; Redis runs scripts on one.`,
    `Traffic is spread evenly over partitions: one bot with most of it is bounded by one Redis server.`,
    `What was touched stays in Redis for ${(demand.hot_s / 3_600).toFixed(1)} hours. A text has ${costs.message_text_bytes} bytes; media cost what their bytes cost, apart from this.`,
    `Of ${Object.keys(shares).length} kinds of calls the mix is ${Object.entries(shares)
      .map(([kind, share]) => `${kind} ${share} %`)
      .join(', ')}; --mix gives another one.`,
    `Updates wait ${demand.waiting_s} s for their receivers on the average. Replicas, backups, the balancer and disks are not counted.`,
  ]
    .map((line) => `- ${line}`)
    .join('\n');
}

function capacity(options: Options): void {
  const costs = costsSchema.parse(JSON.parse(readFileSync(options.costs, 'utf8')));
  const demand = demandOf(options);
  const need = plan(costs, demand);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ demand, need }, null, 2)}\n`);
    return;
  }
  const traffic = Object.entries(demand.calls)
    .map(([kind, rate]) => `${whole(rate)} ${kind}`)
    .join(', ');
  process.stdout.write(
    `For ${traffic} a second, ${whole(demand.bots)} bots, ${whole(demand.chats)} chats and ${whole(demand.deliveries)} webhook deliveries a second:\n\n` +
      `${needs(need)}\n\nAssumptions\n${assumptions(costs, demand)}\n`,
  );
}

new Command('capacity')
  .description('What an installation needs for a traffic, from costs that the bench measured.')
  .requiredOption('--rps <n>', 'calls a second of bots and people', number(0))
  .option(
    '--mix <shares>',
    'what these are, for instance sendMessage=80,getMe=20; else the mix of the bench',
    mixOf,
  )
  .option('--reactions <n>', 'reactions a second besides', number(0), 0)
  .option('--bots <n>', 'bots that are active within the hot time', number(0), 1_000)
  .option('--chats <n>', 'chats that are; ten a bot without it', number(0))
  .option('--webhooks <n>', 'webhook deliveries a second', number(0), 0)
  .option('--hours <h>', 'how long what was touched stays in Redis', number(0.02, 48), 1)
  .option('--waiting <s>', 'how long updates wait on the average', number(0, 86_400), 5)
  .option('--use <share>', 'part of a core that is to be used', number(0.05, 1), 0.6)
  .option('--shard <gb>', 'memory of one Redis server', number(0.1, 4_096), 32)
  .option('--spare <n>', 'fronts that may be away', number(0, 1_000), 1)
  .option('--costs <file>', 'costs of another machine', costs_file)
  .option('--json', 'prints JSON')
  .addHelpText(
    'after',
    '\nnpm run bench -- --only scaling holds the model against one, two and three fronts: each highest rate within a fifth.',
  )
  .action((options: Options) => {
    try {
      capacity(options);
    } catch (error) {
      process.stderr.write(`capacity: ${(error as Error).message}\n`);
      process.exitCode = 1;
    }
  })
  .parse();
