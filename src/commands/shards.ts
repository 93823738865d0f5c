/** Defines the commands `petrel shards …`, for installations with several databases. */
import type { Command } from 'commander';
import { listShards, movePartitions, undoMove } from '../operations/shard_moves.js';
import { StartError } from '../processes/backends.js';
import { parseAddress } from '../rules/database_url.js';
import { parseRanges } from '../rules/number_ranges.js';
import { settings, withBackends } from './running.js';

const say = (line: string) => process.stdout.write(`${line}\n`);

export function addShards(program: Command): void {
  const shards = program.command('shards').description('databases for the data of chats: DATABASE_SHARDS');
  shards
    .command('list')
    .description('lists the partitions of each database, and a move in progress')
    .option('--rows', 'counts the messages of each partition, which reads all of them')
    .addHelpText('after', `\n${settings}`)
    .action(({ rows = false }: { readonly rows?: boolean }) =>
      withBackends((backends) => listShards(backends, rows, say), 'shards'),
    );
  shards
    .command('move')
    .description(
      'moves partitions to another database while the installation serves; a second run continues an interrupted move',
    )
    .usage('[options] <partition...> <shard>')
    .argument('<numbers...>', 'partitions, as 3 7 or 0-31, and last the shard; 0 is DATABASE_URL')
    .option(
      '--from <url>',
      'URL by which the target reaches the current database, if it differs from the settings',
    )
    .addHelpText('after', `\n${settings}`)
    .action((numbers: string[], { from }: { readonly from?: string }) =>
      withBackends(async (backends) => {
        const partitions = parseRanges(numbers.slice(0, -1), backends.keys.partitions.count);
        const shard = parseRanges(numbers.slice(-1), 1_000);
        if (partitions === null || partitions.length === 0 || shard?.length !== 1)
          throw new StartError(
            `name partitions from 0 to ${backends.keys.partitions.count - 1}, and last one shard: petrel shards move 0-3 7 1`,
          );
        if (from !== undefined && parseAddress(from) === null)
          throw new StartError('--from must be a URL that begins with postgres:// or postgresql://');
        await movePartitions(backends, partitions, shard[0] as number, { from, say });
      }, 'shards'),
    );
  shards
    .command('undo')
    .description('cancels an unfinished move: the partitions stay in their database')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends((backends) => undoMove(backends, say), 'shards'));
}
