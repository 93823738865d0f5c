/** Defines the commands `petrel admin …`. */
import type { Command } from 'commander';
import { addAdmin, listAdmins, listCalls, revokeAdmin } from '../operations/admin.js';
import { settings, withBackends } from './running.js';

export function addAdministrators(program: Command): void {
  const admin = program
    .command('admin')
    .description('administrators: their tokens and the log of their calls');
  const tokens = admin.command('tokens').description('tokens for /api/admin and /ops besides ADMIN_TOKEN');
  tokens
    .command('add')
    .description('issues a token and prints it; it is shown only once')
    .argument('<name>', 'name of the token, shown in the log')
    .option('--days <n>', 'days until the token expires; never if absent')
    .addHelpText('after', `\n${settings}`)
    .action((name: string, { days }: { readonly days?: string }) =>
      withBackends((backends) => addAdmin(backends, name, days === undefined ? null : Number(days)), 'admin'),
    );
  tokens
    .command('list')
    .description('lists the tokens with the dates when they were added and expire')
    .action(() => withBackends(listAdmins, 'admin'));
  tokens
    .command('revoke')
    .description('revokes a token; no node accepts it once this command has ended')
    .argument('<name>', 'name of the token')
    .action((name: string) => withBackends((backends) => revokeAdmin(backends, name), 'admin'));
  admin
    .command('audit')
    .description('lists calls of administrators, newest first')
    .option('--limit <n>', 'how many entries', '100')
    .action(({ limit }: { readonly limit: string }) =>
      withBackends((backends) => listCalls(backends, Number(limit)), 'admin'),
    );
}
