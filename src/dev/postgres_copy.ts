/**
 * Copies the PostgreSQL programs for a user who cannot read the originals, for instance because only root may enter a
 * parent folder. Each version is copied once per machine, to a folder that only root can write to.
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
import { devLimits as limits } from './limits.js';
import { type Binaries, binariesAt, type User } from './postgres_binaries.js';
import { Refusal, reasonOf } from './refusal.js';

export interface CopyOptions {
  readonly log?: ((line: string) => void) | undefined;
  readonly places?: readonly string[];
}

const defaultPlaces = () => ['/var/lib/petrel-postgres', join(tmpdir(), 'petrel-postgres')];

/**
 * Returns PostgreSQL programs that `user` can run: the given ones if possible, otherwise a copy of them. Throws a
 * Refusal if no folder is suitable for a copy.
 */
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
    `PostgreSQL refuses to run as root, and the user "postgres" cannot read ${binaries.root} or a copy of it ` +
      `(${reasons.join('; ')}); move the project out of folders that only root may enter, or set DATABASE_URL`,
  );
}

/** Returns whether `user` can start the server, load its libraries and read its shared files. */
function canRun({ root, postgres }: Binaries, user: User): boolean {
  const script = '"$1" --version && test -r "$2"';
  const shared = join(root, 'share', 'postgresql', 'postgres.bki');
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const args = ['-c', script, 'sh', postgres, shared];
  return spawnSync('/bin/sh', args, { ...user, cwd: '/', env, stdio: 'ignore' }).status === 0;
}

/** Creates the folder, or checks that nobody but root can have written to it. */
function openPlace(place: string): void {
  for (let above = dirname(place); above !== dirname(above); above = dirname(above))
    refuseShared(above, true);
  try {
    mkdirSync(place, { mode: 0o755 });
    // Sets the mode explicitly, because `mkdir` applies the umask to it.
    chmodSync(place, 0o755);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  refuseShared(place, false);
}

/**
 * Throws unless root owns the folder and nobody else can write to it. With `mayBeSticky`, also accepts a sticky folder,
 * where other users cannot replace root's entries.
 */
function refuseShared(path: string, mayBeSticky: boolean): void {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder`);
  if (stats.uid !== 0) throw new Error(`${path} belongs to another user`);
  const isSafe = (stats.mode & 0o022) === 0 || (mayBeSticky && (stats.mode & 0o1000) !== 0);
  if (!isSafe) throw new Error(`others may write to ${path}`);
}

/**
 * Makes the complete copy visible with a single rename. If two processes copy at the same time, the one that ends later
 * uses the other's copy.
 */
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

/** Lets all users read all files, and run the files that their owner may run. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, (lstatSync(path).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

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
