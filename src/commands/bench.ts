/** Defines the command `petrel bench`, which puts load on a running installation from outside. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { loadtestLimits as limits } from '../loadtest/limits.js';
import type { RemoteOptions } from '../loadtest/remote.js';
import { ignoreClosedOutput } from './running.js';

const numeral = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text !== '' && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
};
const whole = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A whole number from ${min} to ${max} is needed.`);
};

export function addBench(program: Command): void {
  const { bench_rate_max, bench_seconds_max, bench_connections_max } = limits;
  program
    .command('bench')
    .description('sends load to a running installation at fixed rates and reports its latencies')
    .requiredOption('--url <url>', 'URL of the installation: scheme, host and port')
    .addOption(
      new Option('--token <token>', 'token of a person, who gets a bot for the run, or token of a bot')
        .env('PETREL_BENCH_TOKEN')
        .makeOptionMandatory(),
    )
    .option('--chat <id>', 'with the token of a bot: chat to send to', Number)
    .option(
      '--only <names>',
      'loads to run, some of getMe,sendMessage,editMessageText,personWrites,history',
      (text) => text.split(','),
    )
    .option(
      '--rates <list>',
      `requests per second, several for one load after another, at most ${bench_rate_max}`,
      (text) => text.split(',').map(whole(1, bench_rate_max)),
      [20, 50, 100],
    )
    .option('--seconds <s>', 'duration of each load', numeral(0.1, bench_seconds_max), 10)
    .option('--connections <n>', 'maximum number of connections', whole(1, bench_connections_max), 32)
    .option('--p99 <ms>', 'exits with 1 when the p99 latency of a load is higher', Number)
    .option('--json <file>', 'writes the results to a JSON file')
    .option('--html <file>', 'writes the results to a page with plots')
    .addHelpText('after', '\nStops and exits with 1 when more than 1 % of the calls fail.')
    .action(async (options: RemoteOptions) => {
      ignoreClosedOutput();
      // Imports the module on demand, because no role needs it.
      const { runRemote } = await import('../loadtest/remote.js');
      const well = await runRemote(options).catch((error: Error) => {
        process.stderr.write(`petrel: ${error.message}\n`);
        return false;
      });
      if (!well) process.exitCode = 1;
    });
}
