#!/usr/bin/env node
/** The command line: role → configuration → start → ordered shutdown. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { backup } from './backup/backup.js';
import { keptNames, openKeys, sealKeys } from './backup/key_file.js';
import { BackupError } from './backup/manifest.js';
import { restore } from './backup/restore.js';
import type { RemoteOptions } from './bench/remote.js';
import { type Config, ConfigError, environmentOf, readConfig, requireSettings } from './config.js';
import { limits } from './limits.js';
import { runDev } from './local/dev.js';
import { createLog, type Logger } from './obs/log.js';
import { migrate, SchemaError } from './postgres/migrate.js';
import { RedisCheckError } from './redis/check.js';
import { CopyError } from './redis/copy.js';
import { type Backends, openBackends, openRedis, StartError } from './roles/backends.js';
import { startBacklog } from './roles/backlog.js';
import { startDeliver } from './roles/deliver.js';
import { runDoctor } from './roles/doctor.js';
import { startFlush } from './roles/flush.js';
import { startFront } from './roles/front.js';
import { compare } from './roles/installation.js';
import { startMetrics } from './roles/metrics.js';
import { tellAs } from './roles/node.js';
import { suspend } from './roles/oversight.js';
import { rebuildRedis } from './roles/rebuild.js';
import type { Role } from './roles/role.js';
import { scanTokens } from './roles/scan_tokens.js';
import { listLeaked, rotateKeys } from './roles/tokens.js';
import { discard, listAll, type ReplayOptions, replay, show } from './roles/webhooks.js';
import { version } from './version.js';

type Starter = (backends: Backends, isStopping: () => boolean) => Role | Promise<Role>;

/** Ends the process with one sentence, as a line of log where a supervisor reads it. */
function giveUp(log: Logger, error: unknown): never {
  const known =
    error instanceof ConfigError ||
    error instanceof StartError ||
    error instanceof SchemaError ||
    error instanceof BackupError ||
    error instanceof CopyError ||
    error instanceof RedisCheckError;
  const { message, code } = error as Error & { code?: string };
  // A person reads a sentence, a supervisor the log.
  if (known && process.stderr.isTTY) process.stderr.write(`petrel: ${message}\n`);
  else log.fatal(known ? {} : { err: error }, message || code || 'it could not start');
  process.exit(1);
}

/** Runs roles in this process until a signal, or until the process that started it has gone. */
async function serve(name: string, starters: readonly Starter[]): Promise<void> {
  let log = createLog('info', name);
  const roles: Role[] = [];
  let backends: Backends | undefined;
  let stopping = false;
  let drainMs = 0;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    const late = setTimeout(
      () => {
        log.error('the shutdown took too long');
        process.exit(1);
      },
      limits.shutdown_ms_max + drainMs + 5_000,
    );
    for (const role of roles) await role.stop();
    await backends?.close();
    clearTimeout(late);
    log.info('stopped');
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.once('disconnect', stop);
  try {
    const config = readConfig();
    log = createLog(config.LOG_LEVEL, name);
    drainMs = config.DRAIN_MS;
    backends = await openBackends(config, name, log);
    for (const start of starters) roles.push(await start(backends, () => stopping));
    log.info({ version }, 'ready');
    process.send?.({ type: 'ready' });
  } catch (error) {
    giveUp(log, error);
  }
}

async function task(name: string, work: (config: Config, log: Logger) => Promise<void>): Promise<void> {
  const log = createLog(process.stdout.isTTY ? 'warn' : 'info', name);
  try {
    await work(readConfig(), log);
  } catch (error) {
    giveUp(log, error);
  }
}

const program = new Command('petrel').description('A self-hosted bot messaging service.').version(version);

const settings = 'Settings come from the environment; the README lists them.';
const role = (name: string, description: string, starters: readonly Starter[]) =>
  program
    .command(name)
    .description(description)
    .addHelpText('after', `\n${settings}`)
    .action(() => serve(name, [...starters, tellAs(name)]));

role('front', 'serves HTTP: bot methods, application endpoints, long polls, event streams, health, metrics', [
  startFront,
]);
role('deliver', 'pushes updates to webhooks, and sweeps up what a process that died left undone', [
  startBacklog,
  startDeliver,
  startMetrics,
]);
role('flush', 'writes the journals behind to Postgres', [startBacklog, startFlush, startMetrics]);
role('all', 'front, deliver and flush in one process, for small installations', [
  startBacklog,
  startFlush,
  startDeliver,
  startFront,
]);
program
  .command('dev')
  .description('private Redis and Postgres, migrations, all roles and demo data: what npm start runs')
  .addHelpText('after', `\n${settings}`)
  .action(() => task('dev', (config) => runDev(config)));
program
  .command('migrate')
  .description('brings the schema of the database up to date')
  .addHelpText('after', `\n${settings}`)
  .action(() =>
    task('migrate', async (config, log) => {
      await migrate(requireSettings(config, ['DATABASE_URL']).DATABASE_URL, (line) => log.info(line));
    }),
  );
program
  .command('doctor')
  .description(
    'tells whether everything is as it should be, and if not, what to do; ends with 1 when something is wrong',
  )
  .addHelpText('after', `\n${settings}`)
  .action(() =>
    task('doctor', async (config, log) => {
      log.level = 'warn';
      const backends = await openBackends(config, 'doctor', log);
      if (!(await runDoctor(backends).finally(() => backends.close()))) process.exitCode = 1;
    }),
  );

const webhooks = program
  .command('webhooks')
  .description('deliveries to webhooks, for the person who runs it');
/** A task of an operator, on the stores of the installation. */
const withBackends = (work: (backends: Backends) => Promise<void>, name = 'webhooks') =>
  task(name, async (config, log) => {
    log.level = 'warn';
    const backends = await openBackends(config, name, log);
    await work(backends).finally(() => backends.close());
  });
webhooks
  .command('list')
  .description('bots with a webhook: host, updates that wait, dead letters, last error')
  .addHelpText('after', `\n${settings}`)
  .action(() => withBackends(listAll));
webhooks
  .command('show')
  .description('one webhook and its last attempts')
  .argument('<bot>', 'id or username')
  .action((bot: string) => withBackends((backends) => show(backends, bot)));
webhooks
  .command('replay')
  .description('delivers updates again, under the same update_id')
  .argument('<bot>', 'id or username')
  .option('--dead-letters', 'dead letters alone; without a range, all of them')
  .option('--from <update_id>', 'the first of a range')
  .option('--to <update_id>', 'the last of it')
  .action((bot: string, options: ReplayOptions) =>
    withBackends((backends) => replay(backends, bot, options)),
  );
webhooks
  .command('discard')
  .description('discards all dead letters of a bot')
  .argument('<bot>', 'id or username')
  .action((bot: string) => withBackends((backends) => discard(backends, bot)));

for (const what of ['bot', 'user'] as const) {
  const group = program
    .command(`${what}s`)
    .description(`${what === 'bot' ? 'bots' : 'people'}, for the person who runs it`);
  for (const suspended of [true, false]) {
    group
      .command(suspended ? 'suspend' : 'unsuspend')
      .description(suspended ? 'accepts their tokens no more, on no node' : 'accepts their tokens again')
      .argument(`<${what}>`, 'id or username')
      .action((name: string) =>
        withBackends((backends) => suspend(backends, what, name, suspended), `${what}s`),
      );
  }
}
const say = (line: string) => process.stdout.write(`${line}\n`);
const sourceOf = ({ config, connection, keys }: Backends) => ({
  databaseUrl: config.DATABASE_URL as string,
  connection,
  partitions: keys.partitions.count,
});
interface CopyOptions {
  readonly redis: boolean;
}
program
  .command('backup')
  .description('writes what Redis and Postgres hold into a folder, while the installation serves')
  .argument('<folder>', 'absent or empty')
  .option('--no-redis', 'leaves out what waits in Redis alone')
  .addHelpText('after', `\nIt needs redis-cli. Uploaded files, keys and peppers are not in it. ${settings}`)
  .action((folder: string, { redis }: CopyOptions) =>
    withBackends(
      async (backends) => void (await backup(sourceOf(backends), folder, { redis, say })),
      'backup',
    ),
  );
program
  .command('restore')
  .description('fills an empty Postgres and an empty Redis from such a folder; nothing may run on them')
  .argument('<folder>', 'what backup wrote')
  .option('--no-redis', 'restores Postgres alone')
  .addHelpText('after', `\nIt needs redis-server, and the keys and peppers of the installation. ${settings}`)
  .action((folder: string, { redis }: CopyOptions) =>
    task('restore', (config) => restore(config, folder, { redis, say, openRedis, compare })),
  );
program
  .command('redis')
  .description('Redis, for the person who runs it')
  .command('rebuild')
  .description('after Redis lost its data: opens what Postgres has of it, and says what is gone')
  .addHelpText('after', `\n${settings}`)
  .action(() => withBackends((backends) => rebuildRedis(backends, say), 'redis'));
const keysCommand = program.command('keys').description('keys and peppers in a file under BACKUP_PASSPHRASE');
keysCommand
  .command('seal')
  .description('writes them into a new file, to be kept apart from the backups')
  .argument('<file>')
  .action((file: string) =>
    task('keys', async (config) =>
      sealKeys(
        file,
        requireSettings(config, ['BACKUP_PASSPHRASE']).BACKUP_PASSPHRASE,
        environmentOf(keptNames),
      ),
    ),
  );
keysCommand
  .command('open')
  .description('prints them as lines of an environment file')
  .argument('<file>')
  .action((file: string) =>
    task('keys', async (config) => {
      const { BACKUP_PASSPHRASE } = requireSettings(config, ['BACKUP_PASSPHRASE']);
      process.stdout.write(openKeys(file, BACKUP_PASSPHRASE));
    }),
  );
const tokens = program
  .command('tokens')
  .description('keys, peppers and leaked tokens, for the person who runs it');
tokens
  .command('rotate-keys')
  .description(
    'seals everything under the first of TOKEN_KEYS, and looks tokens up under the first TOKEN_PEPPER',
  )
  .addHelpText(
    'after',
    `\nIt may run while the installation serves, and may be ended and run again. ${settings}`,
  )
  .action(() => withBackends(rotateKeys, 'tokens'));
tokens
  .command('leaks')
  .description('tokens that were found in public: whose, when and where')
  .action(() => withBackends(listLeaked, 'tokens'));
tokens
  .command('scan')
  .description(
    'finds tokens in a folder, and in all the history of a git repository; those of the installation are blocked',
  )
  .argument('<path>', 'folder or git repository')
  .option('--dry-run', 'blocks nothing')
  .addHelpText('after', `\nIt ends with 2 when it found any. Without settings it blocks nothing. ${settings}`)
  .action((path: string, { dryRun = false }: { readonly dryRun?: boolean }) =>
    task('tokens', async (config, log) => {
      log.level = 'warn';
      const backends =
        dryRun || config.DATABASE_URL === undefined ? null : await openBackends(config, 'tokens', log);
      const found = scanTokens(path, backends?.store ?? null);
      if ((await found.finally(() => backends?.close())) > 0) process.exitCode = 2;
    }),
  );

const numeral = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text !== '' && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
};
const whole = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
};
const { bench_rate_max, bench_seconds_max, bench_connections_max } = limits;
program
  .command('bench')
  .description('loads an installation that runs, at fixed rates within bounds, and reports its latencies')
  .requiredOption('--url <url>', 'where it is reached: scheme, host and port')
  .addOption(
    new Option('--token <token>', "a person's, who gets a bot for the run, or a bot's")
      .env('PETREL_BENCH_TOKEN')
      .makeOptionMandatory(),
  )
  .option('--chat <id>', "with a bot's token: where it sends", Number)
  .option('--only <names>', 'some of getMe,sendMessage,editMessageText,personWrites,history', (text) =>
    text.split(','),
  )
  .option(
    '--rates <list>',
    `requests a second, one load after another, at most ${bench_rate_max}`,
    (text) => text.split(',').map(whole(1, bench_rate_max)),
    [20, 50, 100],
  )
  .option('--seconds <s>', 'length of each load', numeral(0.1, bench_seconds_max), 10)
  .option('--connections <n>', 'connections at most', whole(1, bench_connections_max), 32)
  .option('--p99 <ms>', 'ends with 1 when the p99 of a load is above', Number)
  .option('--json <file>', 'writes the results to a file, for machines')
  .option('--html <file>', 'writes them to a page with plots, for people')
  .addHelpText('after', '\nIt stops when more than one call in a hundred fails, and then ends with 1.')
  .action(async (options: RemoteOptions) => {
    // Read on demand: no role needs it to start.
    const { runRemote } = await import('./bench/remote.js');
    const well = await runRemote(options).catch((error: Error) => {
      process.stderr.write(`petrel: ${error.message}\n`);
      return false;
    });
    if (!well) process.exitCode = 1;
  });

await program.parseAsync();
