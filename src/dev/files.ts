/** Writes files atomically, stores secrets that only the owner can read, and finds an in-memory file system. */
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';

/** The size in bytes above which the next start renames a server's log to `<name>.1`. */
export const log_bytes_max = 8 * 1024 * 1024;

/** Replaces a file atomically: a reader sees either the old text or the new text. */
export function writeFileAtomic(path: string, text: string, mode = 0o600): void {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(temporary, text, { mode, flag: 'wx' });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Returns the folder `root` if this user may write to it and if it has `freeBytesMin` free bytes. Otherwise returns
 * undefined. The default `/dev/shm` is Linux's in-memory file system, which often has only 64 MB in a container.
 */
export function memoryRoot(freeBytesMin: number, root = '/dev/shm'): string | undefined {
  try {
    accessSync(root, constants.W_OK);
    const { bavail, bsize } = statfsSync(root);
    return bavail * bsize >= freeBytesMin ? root : undefined;
  } catch {
    return undefined;
  }
}

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function readJsonIfThere(path: string): unknown {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads a secret from a file. Creates the file with a new secret if it is missing: 32 random bytes as hex, mode 0600.
 */
export function keptSecret(path: string): string {
  const kept = readIfThere(path)?.trim();
  if (kept) return kept;
  const made = randomBytes(32).toString('hex');
  writeFileAtomic(path, `${made}\n`);
  return made;
}

/**
 * Opens a log for appending. Calls `use` with the log's file descriptor and current size, and then closes the
 * descriptor. A child process that inherited the descriptor can still write to the log.
 */
export function withLog<T>(path: string, use: (fd: number, start: number) => T): T {
  if (sizeOf(path) > log_bytes_max) renameSync(path, `${path}.1`);
  const fd = openSync(path, 'a', 0o600);
  try {
    return use(fd, sizeOf(path));
  } finally {
    closeSync(fd);
  }
}

export function logSince(path: string, from: number, lines = 3): string {
  const bytes = Buffer.from(readIfThere(path) ?? '');
  const text = bytes.subarray(from <= bytes.length ? from : 0).toString('utf8');
  return text.trim().split('\n').slice(-lines).join('\n');
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
