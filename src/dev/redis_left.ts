/**
 * Finds out whether the files of the private Redis have changed since Redis stopped. Compares the inode, size and
 * change time of each file. Restoring a backup gives a file another inode or change time. A restored folder is thus
 * detected, even if Postgres was restored with it.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere, writeFileAtomic } from './files.js';

const noteOf = (dir: string) => join(dir, 'left.json');

function describe(dir: string): string {
  const folder = join(dir, 'appendonlydir');
  const files = readdirSync(folder).sort();
  return JSON.stringify(
    files.map((name) => {
      const { ino, size, ctimeNs } = statSync(join(folder, name), { bigint: true });
      return [name, `${ino}`, `${size}`, `${ctimeNs}`];
    }),
  );
}

/**
 * Records the state of the files. Call this after Redis has stopped. Without a record, the next start assumes that
 * Redis may have lost changes, as after a crash.
 */
export function noteLeft(dir: string): void {
  try {
    writeFileAtomic(noteOf(dir), describe(dir));
  } catch {
    rmSync(noteOf(dir), { force: true });
  }
}

/** Returns whether the files match the record, and removes the record. Call this once, before Redis starts. */
export function isAsLeft(dir: string): boolean {
  const noted = readIfThere(noteOf(dir));
  rmSync(noteOf(dir), { force: true });
  try {
    return noted !== undefined && noted === describe(dir);
  } catch {
    return false;
  }
}
