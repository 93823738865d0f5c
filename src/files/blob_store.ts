/** Defines the interface that every storage for uploaded files implements. */

import type { Readable } from 'node:stream';
import { systemRandom } from '../random.js';

export interface ListedFile {
  readonly key: string;
  readonly at: number;
}

export interface BlobStore {
  /** Stores a file durably. A key is never written twice. */
  put(key: string, bytes: Buffer): Promise<void>;
  /**
   * Returns the bytes from `start` to `end`, both inclusive and within the file. Returns null if there is no such file.
   */
  open(key: string, start: number, end: number): Promise<Readable | null>;
  /** Returns the size in bytes, or null if there is no such file. */
  size(key: string): Promise<number | null>;
  remove(key: string): Promise<void>;
  /** Checks that files can be stored: writes a small file and removes it. Throws if this fails. */
  check(): Promise<void>;
  /**
   * Lists up to `limit` files with keys after `after` ('' for all), sorted by key. If the result has fewer files, no
   * more files follow.
   */
  list(after: string, limit: number): Promise<readonly ListedFile[]>;
}

export const key_bytes = 16;

/** Creates a key of 128 random bits, so that nobody can guess the key and no path contains a name from a client. */
export const newKey = (random = systemRandom): string => random.bytes(key_bytes).toString('hex');

export const isKey = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);

/**
 * Returns the path `ab/cd/abcd…` of a key. With four million files, each folder has about 60 files. Throws for an
 * invalid key.
 */
export function pathOfKey(key: string): string {
  if (!isKey(key)) throw new Error('not a key of a stored file');
  return `${key.slice(0, 2)}/${key.slice(2, 4)}/${key}`;
}
