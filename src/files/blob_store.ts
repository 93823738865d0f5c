/** Storage for the bytes of uploaded files: the interface that every kind of storage implements. */
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';

/** An entry in a list of files. */
export interface ListedFile {
  readonly key: string;
  /** when it was written, ms */
  readonly at: number;
}

export interface BlobStore {
  /** Stores all bytes durably, or throws. A key is written once. */
  put(key: string, bytes: Buffer): Promise<void>;
  /** The bytes from `start` to `end`, both inclusive and within the file; null when the file does not exist. */
  open(key: string, start: number, end: number): Promise<Readable | null>;
  /** Size in bytes; null when the file does not exist. */
  size(key: string): Promise<number | null>;
  /** Removing a missing file is not an error. */
  remove(key: string): Promise<void>;
  /** Files with keys greater than `after` ('' for all), in the order of keys. Fewer than `limit` at the end. */
  list(after: string, limit: number): Promise<readonly ListedFile[]>;
}

export const key_bytes = 16;

/** 128 random bits, so that keys cannot be guessed and no client's name becomes a path. */
export const newKey = (): string => randomBytes(key_bytes).toString('hex');

/** Whether a name has the form of `newKey`. */
export const isKey = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);

/** `ab/cd/abcd…`: some 60 files per folder at four million files. Throws for a text that `newKey` did not make. */
export function pathOfKey(key: string): string {
  if (!isKey(key)) throw new Error('not a key of a stored file');
  return `${key.slice(0, 2)}/${key.slice(2, 4)}/${key}`;
}
