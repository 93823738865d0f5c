/**
 * Runs parts of the test suite one after another and lists their results. Under a time limit, a part that might not end
 * in time is skipped and listed as skipped.
 */
import { Refusal, readIfThere } from './checkout.mjs';

/**
 * Splits `args` into the time limit from `--minutes N` and the other arguments. The limit is Infinity without
 * `--minutes`. Throws a Refusal when N is not a positive number.
 */
export function readMinutes(args) {
  const at = args.indexOf('--minutes');
  if (at < 0) return { minutes: Number.POSITIVE_INFINITY, rest: args };
  const minutes = Number(args[at + 1]);
  if (!(minutes > 0)) throw new Refusal('--minutes must be a number above 0');
  return { minutes, rest: args.toSpliced(at, 2) };
}

/**
 * Rotates the order of the parts by `seed`, for instance the hash of a commit. Under a time limit, the runs of
 * different commits thus skip different parts.
 */
export function rotate(parts, seed) {
  const from = parts.length === 0 ? 0 : Number.parseInt(seed.slice(0, 8), 16) % parts.length;
  return [...parts.slice(from), ...parts.slice(0, from)];
}

/**
 * Wraps a function that runs tests. SIGINT and SIGTERM reach the running tests too and end them. After the first call,
 * these signals no longer end this process. Instead, later calls throw a Refusal.
 */
export function refuseAfterInterrupt(start, signals = process) {
  let state = 'new';
  const interrupt = () => {
    state = 'interrupted';
  };
  return async (...args) => {
    if (state === 'interrupted') throw new Refusal('interrupted: the remaining tests were not run');
    if (state === 'new') for (const name of ['SIGINT', 'SIGTERM']) signals.on(name, interrupt);
    state = 'started';
    return start(...args);
  };
}

/** How many failures of a failed part are printed below the list of results, and how many characters of each. */
const failures_max = 5;
const message_chars_max = 1_500;

/** Returns the options that make the test runner also write its results to a JSON file. */
export const recordTo = (path) => ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];

/**
 * Returns a text for each failed test or file in the test runner's JSON file. Empty if the runner did not write the
 * file.
 */
export function readFailures(path) {
  const { testResults = [] } = JSON.parse(readIfThere(path) ?? '{}');
  const failed = testResults.flatMap(({ name, message, assertionResults }) => [
    ...(message ? [`${name}\n${message}`] : []),
    ...assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages.join('\n')}`),
  ]);
  return failed.slice(0, failures_max).map((text) => text.slice(0, message_chars_max));
}

const mark = { passed: 'passed ', failed: 'FAILED ', skipped: 'SKIPPED' };

/**
 * Runs the parts in order and continues after a failure. Each part has a `name`, its longest duration in `minutes`, and
 * `run`, which resolves with an exit code. A part may also have `failures`, which returns texts about its failures.
 * They are printed after the list of results, because readers of a long log see its end first. `now` returns ms.
 * Resolves with the highest exit code.
 */
export async function runParts(parts, minutes, say, now = () => performance.now()) {
  const end = now() + minutes * 60_000;
  const lines = [];
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const failures = [];
  let worst = 0;
  const note = (how, name, told) => {
    counts[how]++;
    lines.push(`  ${mark[how]} ${name}: ${told}`);
  };
  for (const part of parts) {
    const began = now();
    if (began + part.minutes * 60_000 > end) {
      note(
        'skipped',
        part.name,
        `it may take ${part.minutes} min, ${Math.floor((end - began) / 60_000)} are left`,
      );
      continue;
    }
    say(`\nRunning ${part.name}`);
    const code = await part.run();
    const took = (now() - began) / 60_000;
    const late = took > part.minutes ? `, more than the expected ${part.minutes}` : '';
    note(code === 0 ? 'passed' : 'failed', part.name, `${took.toFixed(1)} min${late}`);
    if (code !== 0) failures.push(...(part.failures?.() ?? []).map((text) => `\n${part.name}: ${text}`));
    worst = Math.max(worst, code);
  }
  say(['', ...lines, ...failures, ''].join('\n'));
  say(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped for lack of time`);
  return worst;
}
