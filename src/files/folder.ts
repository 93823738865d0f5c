/** Stores files in a folder, which several machines may mount. */

import { mkdir, open, readdir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemRandom } from '../random.js';
import { systemTime, type Time } from '../time.js';
import { type BlobStore, isKey, type ListedFile, newKey, pathOfKey } from './blob_store.js';
import { fileLimits as limits } from './limits.js';

const incoming = 'incoming';
/**
 * The age in ms above which unfinished files are removed. No write takes that long, so the process that wrote such a
 * file has died.
 */
const stale_ms_min = 3_600_000;

async function ifThere<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeDurably(path: string, bytes: Buffer): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeStale(time: Time, folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await ifThere(stat(path));
    if (found && time.machine() - found.mtimeMs > stale_ms_min) await rm(path, { force: true });
  }
}

/** Returns sorted names. Skips names before `after`, which an earlier call has listed. */
async function namesFrom(folder: string, length: number, after: string): Promise<string[]> {
  const names = (await ifThere(readdir(folder))) ?? [];
  const hex = names.filter((name) => name.length === length && /^[0-9a-f]+$/.test(name));
  return hex.filter((name) => name >= after.slice(0, length)).sort();
}

async function filesIn(root: string, at: string, after: string): Promise<ListedFile[]> {
  const names = (await ifThere(readdir(join(root, at)))) ?? [];
  const found: ListedFile[] = [];
  for (const key of names.filter((name) => isKey(name) && name > after).sort()) {
    const there = await ifThere(stat(join(root, at, key)));
    if (there) found.push({ key, at: there.mtimeMs });
  }
  return found;
}

/**
 * Creates a storage in a folder, which is created with the first file. A file appears under its key completely or not
 * at all, even after a power failure.
 */
export function createFolderStore(root: string, time = systemTime, random = systemRandom): BlobStore {
  const draftFolder = join(root, incoming);
  const pathOf = (key: string) => join(root, pathOfKey(key));
  let prepared: Promise<void> | undefined;

  /** Creates the folders of a path, outermost first. Syncs the parent folder of each new folder. */
  async function makeFolder(path: string): Promise<void> {
    const first = await mkdir(path, { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    for (let at = path; at.length >= first.length; at = dirname(at)) await syncFolder(dirname(at));
  }

  async function prepare(): Promise<void> {
    await makeFolder(draftFolder);
    await removeStale(time, draftFolder);
  }

  return {
    async put(key, bytes) {
      const path = pathOf(key);
      const draft = join(draftFolder, key);
      prepared ??= prepare();
      await prepared.catch((error: unknown) => {
        prepared = undefined;
        throw error;
      });
      try {
        await writeDurably(draft, bytes);
        await makeFolder(dirname(path));
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true }).catch(() => undefined);
        // Makes the next call create the folder again, because the folder may have been removed.
        prepared = undefined;
        throw error;
      }
      await syncFolder(dirname(path));
    },
    async open(key, start, end) {
      const handle = await ifThere(open(pathOf(key), 'r'));
      return handle?.createReadStream({ start, end, highWaterMark: limits.download_chunk_bytes }) ?? null;
    },
    async size(key) {
      return (await ifThere(stat(pathOf(key))))?.size ?? null;
    },
    async remove(key) {
      await ifThere(unlink(pathOf(key)));
    },
    /**
     * Removes the folders that this check creates. If an operator runs the check as root, root would own these folders,
     * and the service could not write to them.
     */
    async check() {
      const folder = join(root, `check-${newKey(random)}`);
      const outermost = (await mkdir(folder, { recursive: true, mode: 0o700 })) ?? folder;
      const file = join(folder, 'file');
      const draft = join((await ifThere(stat(draftFolder))) ? draftFolder : folder, newKey(random));
      try {
        await writeDurably(draft, Buffer.from('petrel'));
        await rename(draft, file);
      } finally {
        for (const path of [draft, file]) await ifThere(unlink(path));
        await rmdir(folder);
        // Keeps a new folder if another process has stored a file in it meanwhile.
        for (let at = dirname(folder); at.length >= outermost.length; at = dirname(at))
          await rmdir(at).catch(() => undefined);
      }
    },
    async list(after, limit) {
      const found: ListedFile[] = [];
      for (const outer of await namesFrom(root, 2, after)) {
        const within = outer === after.slice(0, 2) ? after.slice(2) : '';
        for (const inner of await namesFrom(join(root, outer), 2, within)) {
          found.push(...(await filesIn(root, `${outer}/${inner}`, after)));
          if (found.length >= limit) return found.slice(0, limit);
        }
      }
      return found;
    },
  };
}
