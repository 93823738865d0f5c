/**
 * Provides a test server's folder, in memory if the system has an in-memory file system. Its name contains the user and
 * the port. Also removes the folders of this user's killed test servers.
 */
import { once } from 'node:events';
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryRoot, readIfThere } from '../dev/files.js';
import { lockHome, openHome } from '../dev/home.js';
import { endLeftover } from '../dev/processes.js';
import { Refusal } from '../dev/refusal.js';

/** How many bytes must be free in memory for the folder. The Postgres and Redis of a test run need far less. */
const memoryBytesMin = 1024 ** 3;

/** Ends the servers that a killed test server left running in this folder, and removes their data. */
async function clear(home: string): Promise<void> {
  for (const file of ['redis/redis.pid', 'postgres/data/postmaster.pid']) {
    const pid = Number(readIfThere(join(home, file))?.split('\n')[0] ?? 0);
    const isOurs = (command: string) => command.includes(home);
    await endLeftover(pid, isOurs, [
      ['SIGQUIT', 2_000],
      ['SIGKILL', 2_000],
    ]);
  }
  for (const name of ['redis', 'postgres', 'files'])
    rmSync(join(home, name), { recursive: true, force: true });
}

const prefix = `petrel-test-server-${process.getuid?.() ?? 0}-`;

/**
 * Returns whether the folder belongs to this user. Anybody may write to the parent folder, so another user could have
 * created it.
 */
function isOwn(home: string): boolean {
  const found = lstatSync(home, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === (process.getuid?.() ?? found.uid);
}

/** Throws a Refusal if the port is in use or the machine has no such address. */
async function requirePort(host: string, port: number): Promise<void> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'the port is in use. Set PORT to another port' : code;
    throw new Refusal(`the test server cannot listen on ${host} port ${port}: ${why}`);
  }
  server.close();
  await once(server, 'close');
}

/** Locks a folder. Returns undefined if a running test server holds the lock. */
function lock(home: string): (() => void) | undefined {
  try {
    return lockHome(home);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** Removes the folders of killed test servers. */
async function removeLeftovers(root: string): Promise<void> {
  for (const name of readdirSync(root)) {
    const home = join(root, name);
    if (!name.startsWith(prefix) || !isOwn(home)) continue;
    // A folder without a lock belongs to a server that is just starting, so it stays.
    if (readIfThere(join(home, 'lock')) === undefined || lock(home) === undefined) continue;
    await clear(home);
    rmSync(home, { recursive: true, force: true });
  }
}

export interface Folder {
  readonly home: string;
  /** Removes the folder with all data. */
  remove(): void;
}

/** Opens an empty folder for the test server at this address. Throws a Refusal. */
export async function openFolder(host: string, port: number): Promise<Folder> {
  await requirePort(host, port);
  const root = memoryRoot(memoryBytesMin) ?? tmpdir();
  await removeLeftovers(root);
  const home = join(root, `${prefix}${port}`);
  mkdirSync(home, { recursive: true, mode: 0o711 });
  if (!isOwn(home))
    throw new Refusal(
      `${home} belongs to another user. The name of this folder contains the port, so set PORT to another port`,
    );
  openHome(home);
  const unlock = lock(home);
  if (unlock === undefined)
    throw new Refusal(`another test server is starting on port ${port}. Set PORT to another port`);
  return {
    home,
    remove() {
      rmSync(home, { recursive: true, force: true });
      unlock();
    },
  };
}
