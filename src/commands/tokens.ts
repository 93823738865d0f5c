/** Defines the commands for keys, peppers and leaked tokens. */
import type { Command } from 'commander';
import { scanTokens } from '../operations/scan_tokens.js';
import { listLeaked, rotateKeys } from '../operations/tokens.js';
import { openBackends } from '../processes/backends.js';
import { settings, task, withBackends, withDev } from './running.js';

export function addTokens(program: Command): void {
  const tokens = program.command('tokens').description('keys, peppers and leaked tokens');
  tokens
    .command('rotate-keys')
    .description(
      're-encrypts everything with the first key of TOKEN_KEYS, and re-hashes tokens with the first pepper of TOKEN_PEPPER',
    )
    .addHelpText(
      'after',
      `\nMay run while the installation serves. May be interrupted and run again. ${settings}`,
    )
    .action(() => withBackends(rotateKeys, 'tokens'));
  tokens
    .command('leaks')
    .description('lists tokens that were found in public, with their owners, times and places')
    .action(() => withBackends(listLeaked, 'tokens'));
  tokens
    .command('scan')
    .description(
      'finds tokens in a folder, or in the whole history of a git repository, and blocks the tokens of the installation',
    )
    .argument('<path>', 'folder or git repository')
    .option('--dry-run', 'blocks nothing')
    .addHelpText(
      'after',
      `\nExits with 2 when it finds a token. Without settings it blocks nothing. ${settings}`,
    )
    .action((path: string, { dryRun = false }: { readonly dryRun?: boolean }) =>
      task('tokens', async (given, log) => {
        log.level = 'warn';
        const config = dryRun ? given : withDev(given);
        const backends =
          dryRun || config.DATABASE_URL === undefined
            ? null
            : await openBackends(config, 'tokens', log, 'never');
        const found = scanTokens(path, backends?.store ?? null);
        if ((await found.finally(() => backends?.close())) > 0) process.exitCode = 2;
      }),
    );
}
