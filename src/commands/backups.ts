/** Commands that save an installation and bring it back: data, Redis alone, keys and peppers. */
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
    .option('--drill', 'sends nothing to webhooks and browsers until "petrel resume"')
    .addHelpText(
      'after',
      `\nIt needs redis-server, and the keys and peppers of the installation. ${settings}`,
    )
    .action((folder: string, { redis, drill = false }: CopyOptions & { readonly drill?: boolean }) =>
      task('restore', (config) => restore(config, folder, { redis, drill, say, openRedis, compare })),
    );
  program
    .command('resume')
    .description('ends a drill: webhooks and pushes are sent from now on')
    .addHelpText('after', `\n${settings}`)
    .action(() =>
      withBackends(async ({ pool }) => {
        const ended = await holdOutgoing(pool, false);
        say(ended ? 'resumed      every node sends within seconds' : 'nothing was held');
      }, 'resume'),
    );
  const redisCommand = program.command('redis').description('Redis, for the person who runs it');
  redisCommand
    .command('seal')
    .description('before SHUTDOWN, with all roles stopped: the next start then skips no ids')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => sealRedis(backends, say), 'redis'));
  redisCommand
    .command('rebuild')
    .description('after Redis lost its data: opens what Postgres has of it, and says what is gone')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => rebuildRedis(backends, say), 'redis', 'rebuild'));
}

/** Throws a StartError where the installation needs a key or pepper that the settings lack. */
async function checkAgainst(url: string, config: Parameters<typeof checkSettings>[1]): Promise<void> {
  const pool = createPool({ url, max: 1, name: 'keys' });
  await checkSettings(asDatabase(pool), config).finally(() => pool.close());
}

export function addKeys(program: Command): void {
  const keysCommand = program
    .command('keys')
    .description('keys and peppers in a file under BACKUP_PASSPHRASE');
  keysCommand
    .command('seal')
    .description('writes them into a new file, to be kept apart from the backups')
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
          say('             not compared with the installation: DATABASE_URL is not set');
      }),
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
}
