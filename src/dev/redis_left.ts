/**
 * Detects whether the private Redis has its files as it left them. Restoring files changes their inodes or change
 * times, which no program can set. So a restored older copy of the folder is recognised, even if Postgres was restored
 * with it.
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
 * Records the state of the files after Redis has stopped. Without a record, the next start is as careful as after a
 * crash.
 */
export function noteLeft(dir: string): void {
  try {
    writeFileAtomic(noteOf(dir), describe(dir));
  } catch {
    rmSync(noteOf(dir), { force: true });
  }
}

/** Whether nothing changed since the record. Removes the record, so call it once, before Redis starts. */
export function isAsLeft(dir: string): boolean {
  const noted = readIfThere(noteOf(dir));
  rmSync(noteOf(dir), { force: true });
  try {
    return noted !== undefined && noted === describe(dir);
  } catch {
    return false;
  }
}
