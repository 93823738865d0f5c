/** The command that loads an installation from outside. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { limits } from '../limits.js';
import type { RemoteOptions } from '../loadtest/remote.js';

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
    .description('loads an installation that runs, at fixed rates within bounds, and reports its latencies')
    .requiredOption('--url <url>', 'where it is reached: scheme, host and port')
    .addOption(
      new Option('--token <token>', "a person's, who gets a bot for the run, or a bot's")
        .env('PETREL_BENCH_TOKEN')
        .makeOptionMandatory(),
    )
    .option('--chat <id>', "with a bot's token: where it sends", Number)
    .option('--only <names>', 'some of getMe,sendMessage,editMessageText,personWrites,history', (text) =>
      text.split(','),
    )
    .option(
      '--rates <list>',
      `requests a second, one load after another, at most ${bench_rate_max}`,
      (text) => text.split(',').map(whole(1, bench_rate_max)),
      [20, 50, 100],
    )
    .option('--seconds <s>', 'length of each load', numeral(0.1, bench_seconds_max), 10)
    .option('--connections <n>', 'connections at most', whole(1, bench_connections_max), 32)
    .option('--p99 <ms>', 'ends with 1 when the p99 of a load is above', Number)
    .option('--json <file>', 'writes the results to a file, for machines')
    .option('--html <file>', 'writes them to a page with plots, for people')
    .addHelpText('after', '\nIt stops when more than one call in a hundred fails, and then ends with 1.')
    .action(async (options: RemoteOptions) => {
      // Read on demand: no role needs it to start.
      const { runRemote } = await import('../loadtest/remote.js');
      const well = await runRemote(options).catch((error: Error) => {
        process.stderr.write(`petrel: ${error.message}\n`);
        return false;
      });
      if (!well) process.exitCode = 1;
    });
}
