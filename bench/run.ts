/** `npm run bench`: compares the service's calls with minimal servers (the floors) on this machine. */
import { setMaxListeners } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { version } from '../src/config/version.js';
import { pageOf } from '../src/loadtest/page.js';
import { jsonSchema, type Results, results_version } from '../src/loadtest/results.js';
import { report } from '../src/loadtest/table.js';
import { costsOf } from './costs.js';
import { type Found, names, runEverything } from './everything.js';
import { goalsOf } from './goals.js';
import { keepResults, loadKept } from './kept_results.js';
import { commitOf } from './machine.js';
import { type Options, readOptions } from './options.js';

/**
 * Prints progress. On a terminal, each line overwrites the one before. Elsewhere each line is printed below the others.
 */
function progressLine(): { say(line: string): void; end(): void } {
  const began = performance.now();
  const clock = () => {
    const s = Math.round((performance.now() - began) / 1_000);
    return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
  };
  const { isTTY } = process.stderr;
  return {
    say: (line) => void process.stderr.write(isTTY ? `\r\u001B[K${clock()} ${line}` : `${clock()} ${line}\n`),
    end: () => void (isTTY && process.stderr.write('\r\u001B[K')),
  };
}

/** The default time limit for `npm run bench -- --goals`, in minutes. */
const goals_minutes = 19;

function resultsOf(options: Options, found: Found, seconds: number): Results {
  const { rounds, connections, load, goals, soak, minutes, part, peers } = options;
  return {
    schema: 'petrel-bench',
    version: results_version,
    made_at: new Date().toISOString(),
    petrel: version,
    commit: commitOf(),
    seconds,
    settings: {
      ...{ load, connections, rounds },
      turn_seconds: options.seconds,
      ...(goals ? { goals } : {}),
      ...(peers ? { peers } : {}),
      ...(soak ? { soak_minutes: minutes, soak_part: part } : {}),
    },
    ...found,
    goals: goalsOf(found),
  };
}

function write(options: Options, results: Results): void {
  const kept = options.history === undefined ? [] : loadKept(options.history);
  process.stdout.write(`\n${report(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  if (options.html !== undefined) writeFileSync(options.html, pageOf(results, kept));
  // Does not keep the results of a run that ended early, because they are not comparable.
  if (options.history !== undefined && results.ended === '') keepResults(options.history, results);
  if (options.costs !== undefined)
    writeFileSync(options.costs, `${JSON.stringify(costsOf(results), null, 2)}\n`);
}

async function bench(given: Options): Promise<void> {
  if (given.schema) {
    process.stdout.write(`${JSON.stringify(jsonSchema(), null, 2)}\n`);
    return;
  }
  const options = given.goals ? { ...given, within: Math.min(given.within, goals_minutes) } : given;
  const interrupted = new AbortController();
  // Allows any number of listeners on the signal, because every process of a run adds one.
  setMaxListeners(0, interrupted.signal);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => interrupted.abort(new Error('interrupted')));
  // After an unexpected error, aborts the run, so that no process it started keeps running.
  process.on('uncaughtException', (error) => interrupted.abort(error));
  const late = setTimeout(
    () => interrupted.abort(new Error(`the run took longer than ${options.within} minutes plus one`)),
    (options.soak ? options.minutes + 10 : options.within + 1) * 60_000,
  ).unref();
  const progress = progressLine();
  const profileFolder = options.profile === undefined ? undefined : resolve(options.profile);
  if (profileFolder !== undefined) mkdirSync(profileFolder, { recursive: true });
  const found: Found = {
    ...{ scenarios: [], latencies: [], scaling: [], findings: [], soak: [] },
    ...{ machine: {}, ended: '' },
  };
  const began = performance.now();
  const results = () => resultsOf(options, found, Math.round((performance.now() - began) / 1_000));
  try {
    const { signal } = interrupted;
    await runEverything({ ...options, signal, progress: progress.say, profileFolder }, found);
    progress.end();
    write(options, results());
  } catch (error) {
    const reason = (interrupted.signal.aborted ? interrupted.signal.reason : error) as Error;
    progress.end();
    // Reports the results that are already complete, because they may have taken an hour to measure.
    found.ended = reason.message;
    const { costs: _, ...rest } = options;
    write(rest, results());
    process.stderr.write(`bench: ${reason.message}\n`);
    process.exitCode = 1;
  } finally {
    clearTimeout(late);
  }
}

await readOptions(names, bench);
