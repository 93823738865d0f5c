/**
 * The in-memory folder of a test run, for the data of PostgreSQL. A new database consists of 600 small files, which
 * take far more processor time to create on a disk.
 */
import { readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { memoryRoot } from '../../src/dev/files.js';
import { commandOf } from '../../src/dev/processes.js';
import { killProcessesOf } from './run_processes.mjs';
import { temporaryFolder } from './servers.js';

/** The amount of free memory that a folder in memory requires. A run uses less than half of it. */
const free_bytes_min = 2 * 1024 ** 3;

/**
 * The prefix of the names of these folders. The pid of the run follows the prefix. Containers can share the memory
 * without seeing each other’s processes, so the name contains the namespace of the pid.
 */
const prefix = () => `petrel-test-${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]}-`;

/**
 * Creates the folder. Returns undefined if the system has no file system in memory, or if too little memory is free.
 */
export function createMemoryFolder(
  root = memoryRoot(free_bytes_min),
  freeBytes = freemem(),
): string | undefined {
  if (root === undefined || freeBytes < free_bytes_min) return undefined;
  return temporaryFolder(join(root, `${prefix()}${process.pid}-`));
}

/**
 * Removes the folders of dead runs of this user, and ends their servers. A run leaves its folder only if the run is
 * killed together with its guard process.
 */
export async function removeLeftovers(root = memoryRoot(0)): Promise<void> {
  for (const name of root === undefined ? [] : readdirSync(root)) {
    const folder = join(root as string, name);
    if (!name.startsWith(prefix()) || !isOwn(folder)) continue;
    const pid = Number(name.slice(prefix().length).split('-')[0]);
    if (commandOf(pid) !== undefined) continue;
    await killProcessesOf([folder], [process.pid]);
    rmSync(folder, { recursive: true, force: true });
  }
}

const isOwn = (folder: string): boolean =>
  statSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.();
