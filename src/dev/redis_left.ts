/**
 * Whether the private Redis finds its files as it left them. Copying files back changes their inodes or the time of their last
 * change, which no program can set: an older copy of the folder is told apart, also where Postgres was copied back with it.
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

/** Notes the state of the files after Redis has stopped. Without a note the next start is as cautious as after a crash. */
export function noteLeft(dir: string): void {
  try {
    writeFileAtomic(noteOf(dir), describe(dir));
  } catch {
    rmSync(noteOf(dir), { force: true });
  }
}

/** True once for each note, when nothing has changed since. Call it before Redis is started. */
export function isAsLeft(dir: string): boolean {
  const noted = readIfThere(noteOf(dir));
  rmSync(noteOf(dir), { force: true });
  try {
    return noted !== undefined && noted === describe(dir);
  } catch {
    return false;
  }
}
