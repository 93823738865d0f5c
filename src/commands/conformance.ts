/** Defines the command `petrel conformance`, which checks a running server from outside. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { conformanceLimits as limits } from '../conformance/limits.js';
import type { ConformanceOptions } from '../conformance/run.js';
import { ignoreClosedOutput } from './running.js';

function id(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value !== 0) return value;
  throw new InvalidArgumentError('The id of a chat is a whole number other than 0.');
}

function sharedId(text: string): number {
  const value = id(text);
  if (value < 0) return value;
  throw new InvalidArgumentError('The id of a group or channel is negative.');
}

function serverUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('A URL with http or https is needed.');
}

const help = `
Use a bot that has no other purpose. The checks send about 100 messages and delete them at the end. They change and
restore texts, commands, the menu button and the default rights of the bot, and the title, description, permissions and
photo of the group. They confirm pending updates of the bot, and call close and logOut. They leave service messages
about pins and titles, and a new primary invite link of the group. If a second bot is given, they remove it from the
group.

A run makes about 1,700 requests, at most eight at once, and waits about ten seconds in all. If the server limits the
rate, the run waits as long as the server asks. Checks whose option is absent are skipped. The exit code is 1 if a check
fails.`;

export function addConformance(program: Command): void {
  program
    .command('conformance')
    .description('checks every bot method, parameter and refusal of a running server')
    .argument('<url>', 'URL of the server: scheme, host and port', serverUrl)
    .addOption(
      new Option('--token <token>', 'token of a bot').env('PETREL_CONFORMANCE_TOKEN').makeOptionMandatory(),
    )
    .option('--chat <id>', 'chat in which the bot may send and pin; best a person who started the bot', id)
    .option('--group <id>', 'group that the bot administers with all rights', sharedId)
    .option('--channel <id>', 'channel in which the bot may post, edit and delete', sharedId)
    .addOption(
      new Option('--second-token <token>', 'token of another bot, an ordinary member of the group').env(
        'PETREL_CONFORMANCE_SECOND_TOKEN',
      ),
    )
    .option('--webhook <url>', 'HTTPS URL that is set as webhook for a moment')
    .option(
      '--only <texts>',
      'runs checks whose name contains one of these texts, separated by commas',
      (text) => text.split(','),
    )
    .option('--list', 'lists the checks and calls nothing')
    .option('--json <file>', 'writes the report to a JSON file')
    .addHelpText('after', help)
    .action(async (url: string, options: ConformanceOptions) => {
      ignoreClosedOutput();
      // Imports the module on demand, because no role needs it.
      const { runConformance } = await import('../conformance/run.js');
      const { reasonOf } = await import('../conformance/report.js');
      const tokens = [options.token, options.secondToken ?? ''];
      const well = await runConformance(url, options).catch((error: Error) => {
        process.stderr.write(`petrel: ${reasonOf(error, limits.conformance_reason_length_max, tokens)}\n`);
        return false;
      });
      if (!well) process.exitCode = 1;
    });
}
