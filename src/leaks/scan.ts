/** Searches a folder for tokens. In a git repository, also searches the whole history. Reads files as streams. */
import { createReadStream, existsSync } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createFinder, type Found } from './finder.js';
import { commitOf, readObjects } from './git.js';

export interface LeakFound extends Found {
  /** `<commit> <path>` in the history, or the path of a file */
  readonly place: string;
}

export interface ScanOptions {
  readonly onUnread: (place: string, error: unknown) => void;
}

const chunkBytes = 256 * 1024;

const isRepository = (path: string) =>
  existsSync(join(path, '.git')) || ['HEAD', 'objects', 'refs'].every((name) => existsSync(join(path, name)));

/**
 * Yields all files below a folder without following links. Skips git's compressed objects, which are read through git.
 */
async function* filesBelow(path: string, options: ScanOptions): AsyncGenerator<string> {
  let entries: Awaited<ReturnType<typeof opendir>>;
  try {
    entries = await opendir(path);
  } catch (error) {
    options.onUnread(path, error);
    return;
  }
  for await (const entry of entries) {
    const below = join(path, entry.name);
    if (entry.isFile()) yield below;
    else if (entry.isDirectory() && !/[/\\]\.git[/\\]objects$/.test(below)) yield* filesBelow(below, options);
  }
}

async function* scanFiles(root: string, options: ScanOptions): AsyncGenerator<LeakFound> {
  for await (const path of filesBelow(root, options)) {
    const place = relative(root, path);
    const finder = createFinder();
    try {
      for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }))
        for (const found of finder.take(chunk as Buffer)) yield { ...found, place };
    } catch (error) {
      options.onUnread(place, error);
    }
  }
}

/** Yields the tokens in git's history: in commits, tags, file contents and file names. */
async function* scanHistory(root: string): AsyncGenerator<LeakFound> {
  let finder = createFinder();
  for await (const piece of readObjects(root)) {
    if (piece.first) finder = createFinder();
    for (const found of finder.take(piece.bytes)) {
      const { id, path, type } = piece.object;
      const commit = type === 'blob' ? await commitOf(root, id) : id;
      yield { ...found, place: `${commit.slice(0, 12)} ${path === '' ? type : path}` };
    }
  }
}

/** Throws if the path does not exist or git fails. */
export async function* scan(path: string, options: ScanOptions): AsyncGenerator<LeakFound> {
  if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
  yield* scanFiles(path, options);
  if (isRepository(path)) yield* scanHistory(path);
}
