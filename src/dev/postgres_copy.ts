/**
 * Copies the PostgreSQL programs for a user who cannot read the originals, because they are below a folder that only
 * root may enter. One copy per version, shared by all projects of the machine, in a folder that only root can write.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { limits } from '../limits.js';
import { type Binaries, binariesAt, type User } from './postgres_binaries.js';
import { Refusal, reasonOf } from './refusal.js';

export interface CopyOptions {
  readonly log?: ((line: string) => void) | undefined;
  /** Folders for the copy, best first. */
  readonly places?: readonly string[];
}

const defaultPlaces = () => ['/var/lib/petrel-postgres', join(tmpdir(), 'petrel-postgres')];

/** Programs that `user` can run: the given ones, else a copy. Throws a Refusal when no folder can hold a copy. */
export function readableBinaries(
  binaries: Binaries,
  user: User,
  { log, places = defaultPlaces() }: CopyOptions = {},
): Binaries {
  if (canRun(binaries, user)) return binaries;
  const reasons: string[] = [];
  for (const place of places) {
    try {
      openPlace(place);
      const copy = binariesAt(join(place, binaries.key), binaries.key);
      const isKept = existsSync(copy.root) && canRun(copy, user);
      if (!isKept) {
        rmSync(copy.root, { recursive: true, force: true });
        makeCopy(binaries, copy);
      }
      if (!canRun(copy, user)) throw new Error('programs cannot run from there');
      utimesSync(copy.root, new Date(), new Date());
      if (!isKept) {
        log?.(
          `copied PostgreSQL to ${copy.root}: it runs as the user "postgres", who cannot read ${binaries.root}`,
        );
      }
      removeOld(place, binaries.key);
      return copy;
    } catch (error) {
      reasons.push(`${place}: ${reasonOf(error)}`);
    }
  }
  throw new Refusal(
    `PostgreSQL does not run as root, and the user "postgres" can read neither ${binaries.root} nor a copy ` +
      `(${reasons.join('; ')}); move the project out of folders that only root may enter, or set DATABASE_URL`,
  );
}

/** Whether `user` can start the server with its libraries and read its shared files. */
function canRun({ root, postgres }: Binaries, user: User): boolean {
  const script = '"$1" --version && test -r "$2"';
  const shared = join(root, 'share', 'postgresql', 'postgres.bki');
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const args = ['-c', script, 'sh', postgres, shared];
  return spawnSync('/bin/sh', args, { ...user, cwd: '/', env, stdio: 'ignore' }).status === 0;
}

/** Creates the folder, or checks that only root can have written to it. */
function openPlace(place: string): void {
  for (let above = dirname(place); above !== dirname(above); above = dirname(above))
    refuseShared(above, true);
  try {
    mkdirSync(place, { mode: 0o755 });
    // The umask may have removed permissions.
    chmodSync(place, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  refuseShared(place, false);
}

/**
 * Throws unless `path` is a folder of root that others cannot write. In a sticky folder others cannot replace root's
 * entries.
 */
function refuseShared(path: string, mayBeSticky: boolean): void {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder`);
  if (stats.uid !== 0) throw new Error(`${path} belongs to another user`);
  const isSafe = (stats.mode & 0o022) === 0 || (mayBeSticky && (stats.mode & 0o1000) !== 0);
  if (!isSafe) throw new Error(`others may write to ${path}`);
}

/** Installs a complete copy with one rename. When two starts race, the second uses the first one's copy. */
function makeCopy(from: Binaries, to: Binaries): void {
  const aside = `${to.root}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    cpSync(from.root, aside, { recursive: true, verbatimSymlinks: true });
    openToAll(aside);
    renameSync(aside, to.root);
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Everyone may read, and run what the owner may run. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, (lstatSync(path).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

/** Removes the least recently used copies and the rest of interrupted starts. */
function removeOld(place: string, kept: string): void {
  const others = readdirSync(place)
    .filter((name) => name !== kept)
    .map((name) => ({ name, usedAt: lstatSync(join(place, name)).mtimeMs }))
    .sort((a, b) => b.usedAt - a.usedAt);
  const isDraft = (name: string) => /\.\d+\.[0-9a-f]{8}$/.test(name);
  const stale = others.filter(
    ({ name, usedAt }) => isDraft(name) && usedAt < Date.now() - limits.postgres_copy_age_ms_max,
  );
  const copies = others.filter(({ name }) => !isDraft(name));
  for (const { name } of [...stale, ...copies.slice(limits.postgres_copies_max - 1)])
    rmSync(join(place, name), { recursive: true, force: true });
}
