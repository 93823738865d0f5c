/** `petrel admin`. */
import type { Command } from 'commander';
import { addAdmin, listAdmins, listCalls, revokeAdmin } from '../operations/admin.js';
import { settings, withBackends } from './running.js';

export function addAdministrators(program: Command): void {
  const admin = program.command('admin').description('tokens of administrators, and what they did');
  const tokens = admin.command('tokens').description('tokens for /api/admin and /ops, besides ADMIN_TOKEN');
  tokens
    .command('add')
    .description('issues a token and prints it, this once')
    .argument('<name>', 'what the log calls it')
    .option('--days <n>', 'how long it is valid; for ever if absent')
    .addHelpText('after', `\n${settings}`)
    .action((name: string, { days }: { readonly days?: string }) =>
      withBackends((backends) => addAdmin(backends, name, days === undefined ? null : Number(days)), 'admin'),
    );
  tokens
    .command('list')
    .description('names of the tokens, and when they were added and expire')
    .action(() => withBackends(listAdmins, 'admin'));
  tokens
    .command('revoke')
    .description('ends a token; no node accepts it once this has returned')
    .argument('<name>', 'as it was added')
    .action((name: string) => withBackends((backends) => revokeAdmin(backends, name), 'admin'));
  admin
    .command('audit')
    .description('calls of administrators, newest first')
    .option('--limit <n>', 'how many entries', '100')
    .action(({ limit }: { readonly limit: string }) =>
      withBackends((backends) => listCalls(backends, Number(limit)), 'admin'),
    );
}
