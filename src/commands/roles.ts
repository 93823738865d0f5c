/** Defines the commands that run the roles, migrate the schema, or print the state of the installation. */
import type { Command } from 'commander';
import { requireSettings } from '../config/config.js';
import { migrate } from '../postgres/migrate.js';
import { openBackends } from '../processes/backends.js';
import { startBacklog } from '../processes/backlog.js';
import { startMetrics } from '../processes/metrics.js';
import { reportAs } from '../processes/node.js';
import { noteShards, shardUrls } from '../processes/shards.js';
import { type Starter, serve, settings, task, withDev } from './running.js';

const front = async () => (await import('../processes/front.js')).startFront;
const deliver = async () => (await import('../processes/deliver.js')).startDeliver;
const flush = async () => (await import('../processes/flush.js')).startFlush;

/**
 * The roles that each command runs. A process imports only the code of its own roles, and imports this code before it
 * starts to work, because a later build replaces the files. Each process also reports its state to operators.
 */
const roles: ReadonlyArray<
  readonly [name: string, description: string, starters: () => Promise<readonly Starter[]>]
> = [
  [
    'front',
    'serves HTTP: bot methods, application endpoints, long polls, event streams, health, metrics',
    async () => [await front()],
  ],
  [
    'deliver',
    'pushes updates to webhooks, and finishes work that dead processes left behind',
    async () => [startBacklog, await deliver(), startMetrics],
  ],
  ['flush', 'writes the journals to Postgres', async () => [startBacklog, await flush(), startMetrics]],
  [
    'all',
    'front, deliver and flush in one process, for small installations',
    async () => [startBacklog, await flush(), await deliver(), await front()],
  ],
];

/** Runs all roles on temporary data, with additional endpoints for tests of bots. */
async function serveTests() {
  const { TestMode } = await import('../testmode/server.js');
  const [startFlush, startDeliver, startFront] = [await flush(), await deliver(), await front()];
  const tests = new TestMode();
  const starters: Starter[] = [
    startBacklog,
    startFlush,
    (backends, stopping) => tests.startDeliver((around) => startDeliver(backends, stopping, around)),
    (backends, stopping) => tests.startFront(backends, (around) => startFront(backends, stopping, around)),
    reportAs('test-server'),
  ];
  return serve('test-server', starters, (config, log) => tests.prepare(config, log));
}

export function addRoles(program: Command): void {
  const command = (name: string, description: string) =>
    program.command(name).description(description).addHelpText('after', `\n${settings}`);

  for (const [name, description, starters] of roles)
    command(name, description).action(async () => serve(name, [...(await starters()), reportAs(name)]));
  command(
    'dev',
    'runs everything as npm start does: private Redis and Postgres, migrations, all roles and demo data',
  ).action(() => task('dev', async (config) => (await import('../dev/dev.js')).runDev(config)));
  command(
    'test-server',
    'runs a server for the tests of a bot, with temporary data; never in production',
  ).action(serveTests);
  command('migrate', 'updates the schema of the database and of all shards').action(() =>
    task('migrate', async (config, log) => {
      const urls = shardUrls(requireSettings(config, ['DATABASE_URL']));
      for (const { url } of urls) await migrate(url, (line) => log.info(line));
      await noteShards(urls, config.PARTITIONS, (line) => log.info(line));
    }),
  );
  command(
    'accept-postgres',
    'accepts the Postgres of DATABASE_URL again after another server replaced it; run it after you restored an earlier state on purpose',
  )
    .option('--shard <n>', 'number of a database in DATABASE_SHARDS; default: DATABASE_URL')
    .action(({ shard = '0' }: { readonly shard?: string }) =>
      task('accept-postgres', async (config, log) => {
        log.level = 'warn';
        const { acceptPostgres } = await import('../operations/accept_postgres.js');
        return acceptPostgres(config, Number(shard), log, (line) => process.stdout.write(`${line}\n`));
      }),
    );
  command(
    'doctor',
    'checks the installation and says how to fix problems; exits with 1 when there is a problem',
  ).action(() =>
    task('doctor', async (config, log) => {
      log.level = 'warn';
      const { runDoctor } = await import('../operations/doctor.js');
      const backends = await openBackends(withDev(config), 'doctor', log, 'never');
      if (!(await runDoctor(backends).finally(() => backends.close()))) process.exitCode = 1;
    }),
  );
}
