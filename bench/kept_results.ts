/** Keeps the results of runs in a folder of limited size, to show the trend over commits. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Results, readResults } from '../src/loadtest/results.js';

/** The limits of the folder, in files and in bytes. The oldest results are removed first. */
export const kept_results_max = 100;
export const kept_bytes_max = 32 * 1024 * 1024;

const ownName = /^\d{8}T\d{6}Z-[0-9a-z]{1,40}\.json$/;

/** A file name begins with the time of the run, so that sorting by name sorts by time. */
const nameOf = ({ made_at, commit }: Results): string =>
  `${made_at.slice(0, 19).replace(/[-:]/g, '')}Z-${/^[0-9a-f]+/.exec(commit)?.[0] ?? 'unknown'}.json`;

/** Returns the file names of kept results, oldest first. Ignores other files in the folder. */
const namesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => ownName.test(name))
    .sort();

/**
 * Loads the kept results, newest first, up to the limits of the folder. Skips files that an incompatible version wrote.
 */
export function loadKept(folder: string): Results[] {
  mkdirSync(folder, { recursive: true });
  let bytes = 0;
  return namesIn(folder)
    .slice(-kept_results_max)
    .reverse()
    .flatMap((name) => {
      const path = join(folder, name);
      bytes += statSync(path).size;
      if (bytes > kept_bytes_max) return [];
      try {
        return [readResults(readFileSync(path, 'utf8'))];
      } catch {
        return [];
      }
    });
}

/** Writes results into the folder. Then removes the oldest results until the folder is within its limits. */
export function keepResults(folder: string, results: Results): void {
  writeFileSync(join(folder, nameOf(results)), `${JSON.stringify(results)}\n`);
  const names = namesIn(folder).reverse();
  let bytes = 0;
  for (const [i, name] of names.entries()) {
    bytes += statSync(join(folder, name)).size;
    // Never removes the results that were just written.
    if (i > 0 && (i >= kept_results_max || bytes > kept_bytes_max)) rmSync(join(folder, name));
  }
}
