/** Files that must never be seen half written, and secrets that only their owner may read. */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';

/** A server's own log beyond this size becomes `<name>.1` when the server next starts. */
export const log_bytes_max = 8 * 1024 * 1024;

/** Replaces a file in one step: a reader sees the old text or the new, never a part. */
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

/** The text of a file, or undefined when there is none. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The JSON of a file, or undefined when there is none or it does not parse. */
export function readJsonIfThere(path: string): unknown {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A secret kept in a file of mode 0600: 32 random bytes as hex, made once. */
export function keptSecret(path: string): string {
  const kept = readIfThere(path)?.trim();
  if (kept) return kept;
  const made = randomBytes(32).toString('hex');
  writeFileAtomic(path, `${made}\n`);
  return made;
}

/** Runs `use` with a descriptor that appends to the log and the log's size; a child that is given it keeps a copy. */
export function withLog<T>(path: string, use: (fd: number, start: number) => T): T {
  if (sizeOf(path) > log_bytes_max) renameSync(path, `${path}.1`);
  const fd = openSync(path, 'a', 0o600);
  try {
    return use(fd, sizeOf(path));
  } finally {
    closeSync(fd);
  }
}

/** The last lines of a log from a position on, for an error message; '' when there is none. */
export function logSince(path: string, from: number, lines = 3): string {
  const bytes = Buffer.from(readIfThere(path) ?? '');
  const text = bytes.subarray(from <= bytes.length ? from : 0).toString('utf8');
  return text.trim().split('\n').slice(-lines).join('\n');
}

/** Size of a file in bytes, 0 when there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
