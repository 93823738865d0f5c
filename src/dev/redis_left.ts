/**
 * Finds out whether the files of the private Redis are unchanged since it stopped. A restored file has another inode or
 * change time, because programs cannot choose the inode or the change time. This module therefore recognises an older
 * copy of the folder, even if Postgres was restored together with the folder.
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
 * Records the state of the files. Call this after Redis has stopped. If there is no record, the next start is as
 * careful as after a crash.
 */
export function noteLeft(dir: string): void {
  try {
    writeFileAtomic(noteOf(dir), describe(dir));
  } catch {
    rmSync(noteOf(dir), { force: true });
  }
}

/** Compares the files with the record and removes the record. Call this only once, before Redis starts. */
export function isAsLeft(dir: string): boolean {
  const noted = readIfThere(noteOf(dir));
  rmSync(noteOf(dir), { force: true });
  try {
    return noted !== undefined && noted === describe(dir);
  } catch {
    return false;
  }
}
