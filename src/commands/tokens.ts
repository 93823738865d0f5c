/** Commands about keys, peppers and leaked tokens. */
import type { Command } from 'commander';
import { scanTokens } from '../operations/scan_tokens.js';
import { listLeaked, rotateKeys } from '../operations/tokens.js';
import { openBackends } from '../processes/backends.js';
import { settings, task, withBackends, withDev } from './running.js';

export function addTokens(program: Command): void {
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
    .addHelpText(
      'after',
      `\nIt ends with 2 when it found any. Without settings it blocks nothing. ${settings}`,
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
