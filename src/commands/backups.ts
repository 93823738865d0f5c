/** Defines the commands that back up and restore a whole installation, only its Redis, or only its keys and peppers. */
import type { Command } from 'commander';
import { backup } from '../backup/backup.js';
import { openKeys, sealKeys } from '../backup/key_file.js';
import { restore } from '../backup/restore.js';
import { requireSettings, resolvedEnvironment } from '../config/config.js';
import { rebuildRedis } from '../operations/rebuild.js';
import { sealRedis } from '../operations/seal.js';
import { holdOutgoing } from '../postgres/identity.js';
import { createPool } from '../postgres/pool.js';
import { asDatabase } from '../postgres/sql.js';
import { type Backends, openRedis } from '../processes/backends.js';
import { checkSettings, compare } from '../processes/installation.js';
import { settings, task, withBackends } from './running.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const sourceOf = ({ config, connection, keys, pool }: Backends) => ({
  control: pool,
  databaseUrl: config.DATABASE_URL as string,
  shards: config.DATABASE_SHARDS,
  connection,
  partitions: keys.partitions.count,
});
interface CopyOptions {
  readonly redis: boolean;
}

export function addBackups(program: Command): void {
  program
    .command('backup')
    .description('saves Redis and Postgres to a folder while the installation serves')
    .argument('<folder>', 'folder for the backup; must be absent or empty')
    .option('--no-redis', 'leaves out state that exists only in Redis, such as pending updates')
    .addHelpText('after', `\nNeeds redis-cli. Does not save uploaded files, keys and peppers. ${settings}`)
    .action((folder: string, { redis }: CopyOptions) =>
      withBackends(
        async (backends) => void (await backup(sourceOf(backends), folder, { redis, say })),
        'backup',
      ),
    );
  program
    .command('restore')
    .description('restores a backup into an empty Postgres and an empty Redis that nothing else uses')
    .argument('<folder>', 'folder that petrel backup wrote')
    .option('--no-redis', 'restores Postgres alone')
    .option('--drill', 'sends nothing to webhooks and browsers until "petrel resume" is run')
    .addHelpText('after', `\nNeeds redis-server, and the keys and peppers of the installation. ${settings}`)
    .action((folder: string, { redis, drill = false }: CopyOptions & { readonly drill?: boolean }) =>
      task('restore', (config) => restore(config, folder, { redis, drill, say, openRedis, compare })),
    );
  program
    .command('resume')
    .description('ends a drill: starts sending to webhooks and browsers')
    .addHelpText('after', `\n${settings}`)
    .action(() =>
      withBackends(async ({ pool }) => {
        const ended = await holdOutgoing(pool, false);
        say(
          ended
            ? 'resumed      all nodes start sending within seconds'
            : 'this is not a drill: nothing to resume',
        );
      }, 'resume'),
    );
  const redisCommand = program.command('redis').description('maintenance of Redis');
  redisCommand
    .command('seal')
    .description(
      'prepares a clean SHUTDOWN, after which the next start skips no ids; all roles must be stopped',
    )
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => sealRedis(backends, say), 'redis'));
  redisCommand
    .command('rebuild')
    .description(
      'after Redis lost its data: loads the data that Postgres has, and reports the data that is lost',
    )
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => rebuildRedis(backends, say), 'redis', 'rebuild'));
}

/** Throws a StartError if the settings lack a key or pepper of the installation. */
async function checkAgainst(url: string, config: Parameters<typeof checkSettings>[1]): Promise<void> {
  const pool = createPool({ url, max: 1, name: 'keys' });
  await checkSettings(asDatabase(pool), config).finally(() => pool.close());
}

export function addKeys(program: Command): void {
  const keysCommand = program
    .command('keys')
    .description('saves keys and peppers in a file encrypted with BACKUP_PASSPHRASE');
  keysCommand
    .command('seal')
    .description('writes keys and peppers to a new encrypted file; keep it apart from the backups')
    .argument('<file>')
    .action((file: string) =>
      task('keys', async (config) => {
        const needed = ['BACKUP_PASSPHRASE', 'TOKEN_PEPPER', 'TOKEN_KEYS'] as const;
        const { DATABASE_URL, PARTITIONS, ...complete } = requireSettings(config, needed);
        if (DATABASE_URL !== undefined) await checkAgainst(DATABASE_URL, { PARTITIONS, ...complete });
        const kept = sealKeys(file, complete.BACKUP_PASSPHRASE, {
          ...resolvedEnvironment(),
          PARTITIONS: String(PARTITIONS),
        });
        say(`sealed       ${kept.join(', ')}`);
        if (DATABASE_URL === undefined)
          say('             not checked against the installation: DATABASE_URL is not set');
      }),
    );
  keysCommand
    .command('open')
    .description('prints keys and peppers as lines of an environment file')
    .argument('<file>')
    .action((file: string) =>
      task('keys', async (config) => {
        const { BACKUP_PASSPHRASE } = requireSettings(config, ['BACKUP_PASSPHRASE']);
        process.stdout.write(openKeys(file, BACKUP_PASSPHRASE));
      }),
    );
}
