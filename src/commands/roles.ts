/** Defines the commands that run the roles, migrate the schema, or print the state of the installation. */
import type { Command } from 'commander';
import { requireSettings } from '../config/config.js';
import { runDev } from '../dev/dev.js';
import { acceptPostgres } from '../operations/accept_postgres.js';
import { runDoctor } from '../operations/doctor.js';
import { migrate } from '../postgres/migrate.js';
import { openBackends } from '../processes/backends.js';
import { startBacklog } from '../processes/backlog.js';
import { startDeliver } from '../processes/deliver.js';
import { startFlush } from '../processes/flush.js';
import { startFront } from '../processes/front.js';
import { startMetrics } from '../processes/metrics.js';
import { reportAs } from '../processes/node.js';
import { noteShards, shardUrls } from '../processes/shards.js';
import { openTestServers, TestMode } from '../testmode/server.js';
import { type Starter, serve, settings, task, withDev } from './running.js';

/** Maps the name of each command to its roles. Each process also reports its state to operators. */
const roles: ReadonlyArray<readonly [name: string, description: string, starters: readonly Starter[]]> = [
  [
    'front',
    'serves HTTP: bot methods, application endpoints, long polls, event streams, health, metrics',
    [startFront],
  ],
  [
    'deliver',
    'pushes updates to webhooks, and finishes work that dead processes left behind',
    [startBacklog, startDeliver, startMetrics],
  ],
  ['flush', 'writes the journals to Postgres', [startBacklog, startFlush, startMetrics]],
  [
    'all',
    'front, deliver and flush in one process, for small installations',
    [startBacklog, startFlush, startDeliver, startFront],
  ],
];

/** Runs all roles on temporary data, with the endpoints for tests of bots. */
function serveTests() {
  const tests = new TestMode();
  const starters: Starter[] = [
    startBacklog,
    startFlush,
    (backends, stopping) => startDeliver(backends, stopping, tests.aroundSend),
    (backends, stopping) => tests.startFront(backends, (around) => startFront(backends, stopping, around)),
    reportAs('test-server'),
  ];
  return serve('test-server', starters, openTestServers);
}

export function addRoles(program: Command): void {
  const command = (name: string, description: string) =>
    program.command(name).description(description).addHelpText('after', `\n${settings}`);

  for (const [name, description, starters] of roles)
    command(name, description).action(() => serve(name, [...starters, reportAs(name)]));
  command(
    'dev',
    'runs everything as npm start does: private Redis and Postgres, migrations, all roles and demo data',
  ).action(() => task('dev', (config) => runDev(config)));
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
      task('accept-postgres', (config, log) => {
        log.level = 'warn';
        return acceptPostgres(config, Number(shard), log, (line) => process.stdout.write(`${line}\n`));
      }),
    );
  command(
    'doctor',
    'checks the installation and says how to fix problems; exits with 1 when there is a problem',
  ).action(() =>
    task('doctor', async (config, log) => {
      log.level = 'warn';
      const backends = await openBackends(withDev(config), 'doctor', log, 'never');
      if (!(await runDoctor(backends).finally(() => backends.close()))) process.exitCode = 1;
    }),
  );
}
