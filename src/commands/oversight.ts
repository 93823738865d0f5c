/** Commands about single webhooks, bots and people. */
import type { Command } from 'commander';
import { addPerson } from '../operations/admin.js';
import { suspend } from '../operations/oversight.js';
import { discard, listAll, type ReplayOptions, replay, show } from '../operations/webhooks.js';
import { settings, withBackends } from './running.js';

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('deliveries to webhooks, for the person who runs it');
  webhooks
    .command('list')
    .description('bots with a webhook: host, updates that wait, dead letters, last error')
    .addHelpText('after', `\n${settings}`)
    .action(() => withBackends(listAll, 'webhooks'));
  webhooks
    .command('show')
    .description('one webhook and its last attempts')
    .argument('<bot>', 'id or username')
    .action((bot: string) => withBackends((backends) => show(backends, bot), 'webhooks'));
  webhooks
    .command('replay')
    .description('delivers updates again, under the same update_id')
    .argument('<bot>', 'id or username')
    .option('--dead-letters', 'dead letters alone; without a range, all of them')
    .option('--from <update_id>', 'the first of a range')
    .option('--to <update_id>', 'the last of it')
    .action((bot: string, options: ReplayOptions) =>
      withBackends((backends) => replay(backends, bot, options), 'webhooks'),
    );
  webhooks
    .command('discard')
    .description('discards all dead letters of a bot')
    .argument('<bot>', 'id or username')
    .action((bot: string) => withBackends((backends) => discard(backends, bot), 'webhooks'));
}

/** `petrel bots` and `petrel users`. */
export function addSuspensions(program: Command): void {
  for (const what of ['bot', 'user'] as const) {
    const group = program
      .command(`${what}s`)
      .description(`${what === 'bot' ? 'bots' : 'people'}, for the person who runs it`);
    if (what === 'user')
      group
        .command('add')
        .description('creates a person and prints a token of theirs, this once')
        .argument('<username>')
        .option('--first-name <name>', 'as others see it; the username if absent')
        .addHelpText('after', `\n${settings}`)
        .action((name: string, { firstName = name }: { readonly firstName?: string }) =>
          withBackends((backends) => addPerson(backends, name, firstName), 'users'),
        );
    for (const suspended of [true, false]) {
      group
        .command(suspended ? 'suspend' : 'unsuspend')
        .description(suspended ? 'accepts their tokens no more, on no node' : 'accepts their tokens again')
        .argument(`<${what}>`, 'id or username')
        .action((name: string) =>
          withBackends((backends) => suspend(backends, what, name, suspended), `${what}s`),
        );
    }
  }
}
