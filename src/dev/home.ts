/** Manages the data folder of `dev`: its format version, lock and secrets. */
import { createECDH, randomBytes } from 'node:crypto';
import { chmodSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DevInfo } from './announce.js';
import { readIfThere, readJsonIfThere, writeFileAtomic } from './files.js';
import { startOf } from './processes.js';
import { Refusal, reasonOf } from './refusal.js';

/** The version of the folder's layout. Increase it when an older program would misread a changed layout. */
const format_version = 1;

export interface Secrets {
  readonly ADMIN_TOKEN: string;
  readonly TOKEN_PEPPER: string;
  readonly TOKEN_KEYS: string;
  readonly VAPID_PRIVATE_KEY: string;
}

/**
 * Creates the folder, or checks that Petrel created it in this format version. Otherwise throws a Refusal and changes
 * nothing.
 */
export function openHome(home: string): void {
  const versionPath = join(home, 'version.json');
  try {
    if (mkdirSync(home, { recursive: true, mode: 0o711 }) !== undefined) chmodSync(home, 0o711);
  } catch (error) {
    throw new Refusal(`PETREL_HOME ${home} cannot be created: ${reasonOf(error)}`);
  }
  const entries = readdirSync(home);
  if (!entries.includes('version.json')) {
    // Accepts the subfolder `files`, because a front that ran without `dev` may have stored uploads there.
    if (entries.some((entry) => entry !== 'files' && !/^(lock|version\.json)/.test(entry))) {
      throw new Refusal(
        `PETREL_HOME ${home} is not empty and was not created by Petrel. Choose an empty directory`,
      );
    }
    try {
      writeFileAtomic(versionPath, `${JSON.stringify({ format: format_version })}\n`, 0o644);
    } catch (error) {
      throw new Refusal(`PETREL_HOME ${home} cannot be written: ${reasonOf(error)}`);
    }
    return;
  }
  const found = (readJsonIfThere(versionPath) as { format?: unknown } | undefined)?.format;
  if (found !== format_version) {
    throw new Refusal(
      `the data in ${home} has format version ${JSON.stringify(found)}, but this program reads version ${format_version}: run the program that wrote the data, or choose another PETREL_HOME`,
    );
  }
}

interface Holder {
  readonly pid: number;
  readonly start: string;
}

function holderOf(text: string | undefined): Holder | undefined {
  const [pid = '', ...start] = (text ?? '').trim().split(' ');
  const holder = { pid: Number(pid), start: start.join(' ') };
  return holder.pid > 0 && startOf(holder.pid) === holder.start ? holder : undefined;
}

/**
 * Locks the folder for this process and returns a function that unlocks it. Takes over the lock of a dead process, even
 * if its pid now belongs to another process. If a running process holds the lock, throws a Refusal with its pid.
 */
export function lockHome(home: string): () => void {
  const path = join(home, 'lock');
  const mine = `${process.pid} ${startOf(process.pid)}\n`;
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        // A hard link makes the complete file visible in one step, so that no reader sees a half-written lock.
        linkSync(draft, path);
        return () => {
          if (readIfThere(path) === mine) rmSync(path, { force: true });
        };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = holderOf(readIfThere(path));
      if (holder) throw inUse(home, holder);
      discardStale(home, path);
    }
    throw new Refusal(`PETREL_HOME ${home} could not be locked: other processes are starting in this folder`);
  } finally {
    rmSync(draft, { force: true });
  }
}

function inUse(home: string, holder: Holder): Refusal {
  return new Refusal(
    `PETREL_HOME ${home} is in use by another petrel (pid ${holder.pid}): stop it, or set PETREL_HOME and PORT ` +
      'to run a second one',
  );
}

/**
 * Removes the lock of a dead process by renaming it. If another process takes the lock just before the rename, restores
 * that lock and throws a Refusal.
 */
function discardStale(home: string, path: string): void {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const holder = holderOf(readIfThere(aside));
  if (holder) {
    renameSync(aside, path);
    throw inUse(home, holder);
  }
  rmSync(aside, { force: true });
}

function makePushKey(): string {
  const made = createECDH('prime256v1');
  made.generateKeys();
  // Adds the leading zeros that `getPrivateKey` omits.
  return Buffer.from(made.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url');
}

/** Returns the installation's secrets. They are created once and kept in `secrets.json` (mode 0600). */
export function keptSecrets(home: string): Secrets {
  const path = join(home, 'secrets.json');
  const kept = readJsonIfThere(path) as Partial<Secrets> | undefined;
  if (kept === undefined && readIfThere(path) !== undefined) {
    throw new Refusal(
      `${path} is not valid JSON: restore it, because stored tokens cannot be read without it`,
    );
  }
  const secrets: Secrets = {
    ADMIN_TOKEN: kept?.ADMIN_TOKEN ?? randomBytes(24).toString('hex'),
    TOKEN_PEPPER: kept?.TOKEN_PEPPER ?? randomBytes(32).toString('hex'),
    TOKEN_KEYS: kept?.TOKEN_KEYS ?? `k1:${randomBytes(32).toString('base64')}`,
    VAPID_PRIVATE_KEY: kept?.VAPID_PRIVATE_KEY ?? makePushKey(),
  };
  if (JSON.stringify(kept) !== JSON.stringify(secrets)) {
    writeFileAtomic(path, `${JSON.stringify(secrets, null, 2)}\n`);
  }
  return secrets;
}

/**
 * Returns the environment variables for connecting to the running installation. Variables in `given` take precedence.
 * Null if no installation is running.
 */
export function devEnvironment(
  home: string,
  given: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> | null {
  const info = readJsonIfThere(join(home, 'dev.json')) as Partial<DevInfo> | undefined;
  if (info?.redis_url === undefined || info.database_url === undefined) return null;
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
  return {
    ...keptSecrets(home),
    ADMIN_TOKEN: info.admin_token,
    VAPID_SUBJECT: 'mailto:operator@localhost',
    REDIS_URL: info.redis_url,
    DATABASE_URL: info.database_url,
    ...set,
  };
}
