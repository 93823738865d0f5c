/** Defines the commands that act on one webhook, bot or person. */
import type { Command } from 'commander';
import { addPerson } from '../operations/admin.js';
import { suspend } from '../operations/oversight.js';
import { discard, listAll, type ReplayOptions, replay, show } from '../operations/webhooks.js';
import { settings, withBackends } from './running.js';

export function addWebhooks(program: Command): void {
  const webhooks = program.command('webhooks').description('webhook deliveries');
  webhooks
    .command('list')
    .description('lists bots with a webhook: host, pending updates, dead letters, last error')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends(listAll, 'webhooks'));
  webhooks
    .command('show')
    .description('shows one webhook and its last delivery attempts')
    .argument('<bot>', 'id or username')
    .action((bot: string) => withBackends((backends) => show(backends, bot), 'webhooks'));
  webhooks
    .command('ping')
    .description('sends a test request to a webhook and shows the result')
    .argument('<bot>', 'id or username')
    .option('--route <name>', 'tests this webhook route')
    .action(async (bot: string, options: { readonly route?: string }) => {
      const { ping } = await import('../operations/ping.js');
      await withBackends((backends) => ping(backends, bot, options), 'webhooks');
    });
  webhooks
    .command('replay')
    .description('delivers updates again with the same update_id')
    .argument('<bot>', 'id or username')
    .option('--dead-letters', 'delivers only dead letters: all, or only the given range')
    .option('--from <update_id>', 'first update of the range')
    .option('--to <update_id>', 'last update of the range')
    .action((bot: string, options: ReplayOptions) =>
      withBackends((backends) => replay(backends, bot, options), 'webhooks'),
    );
  webhooks
    .command('discard')
    .description('discards all dead letters of a bot')
    .argument('<bot>', 'id or username')
    .action((bot: string) => withBackends((backends) => discard(backends, bot), 'webhooks'));
}

export function addSuspensions(program: Command): void {
  for (const what of ['bot', 'user'] as const) {
    const group = program
      .command(`${what}s`)
      .description(`suspends ${what === 'bot' ? 'bots' : 'people'} and ends suspensions`);
    if (what === 'user')
      group
        .command('add')
        .description('creates a person and prints their token; it is shown only once')
        .argument('<username>')
        .option('--first-name <name>', 'name shown to others; default: the username')
        .addHelpText('after', `\n${settings}`)
        .action((name: string, { firstName = name }: { readonly firstName?: string }) =>
          withBackends((backends) => addPerson(backends, name, firstName), 'users'),
        );
    for (const suspended of [true, false]) {
      group
        .command(suspended ? 'suspend' : 'unsuspend')
        .description(
          suspended ? 'makes all nodes refuse their tokens' : 'makes all nodes accept their tokens again',
        )
        .argument(`<${what}>`, 'id or username')
        .action((name: string) =>
          withBackends((backends) => suspend(backends, what, name, suspended), `${what}s`),
        );
    }
  }
}
