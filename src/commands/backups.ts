/** Commands that save an installation and bring it back: data, Redis alone, keys and peppers. */
import type { Command } from 'commander';
import { backup } from '../backup/backup.js';
import { keptNames, openKeys, sealKeys } from '../backup/key_file.js';
import { restore } from '../backup/restore.js';
import { environmentOf, requireSettings } from '../config.js';
import { type Backends, openRedis } from '../roles/backends.js';
import { compare } from '../roles/installation.js';
import { rebuildRedis } from '../roles/rebuild.js';
import { settings, task, withBackends } from './running.js';

const say = (line: string) => process.stdout.write(`${line}\n`);
const sourceOf = ({ config, connection, keys }: Backends) => ({
  databaseUrl: config.DATABASE_URL as string,
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
    .addHelpText(
      'after',
      `\nIt needs redis-server, and the keys and peppers of the installation. ${settings}`,
    )
    .action((folder: string, { redis }: CopyOptions) =>
      task('restore', (config) => restore(config, folder, { redis, say, openRedis, compare })),
    );
  program
    .command('redis')
    .description('Redis, for the person who runs it')
    .command('rebuild')
    .description('after Redis lost its data: opens what Postgres has of it, and says what is gone')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => rebuildRedis(backends, say), 'redis', 'rebuild'));
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
}
