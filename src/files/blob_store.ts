/** Where the bytes of uploaded files are kept: the one interface that every kind of storage offers. */
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';

/** A file as it is listed. */
export interface ListedFile {
  readonly key: string;
  /** when it was written, ms */
  readonly at: number;
}

export interface BlobStore {
  /** Keeps all of it durably or throws; a key is written once. */
  put(key: string, bytes: Buffer): Promise<void>;
  /** The bytes from `start` to `end`, both inclusive and within the file; null when there is no such file. */
  open(key: string, start: number, end: number): Promise<Readable | null>;
  /** In bytes; null when there is no such file. */
  size(key: string): Promise<number | null>;
  /** Removing what is not there is no error. */
  remove(key: string): Promise<void>;
  /** Files behind a key ('' for the first) in the order of their keys; fewer than `limit` at the end. */
  list(after: string, limit: number): Promise<readonly ListedFile[]>;
}

export const key_bytes = 16;

/** 128 random bits: nobody comes from one key to another, and no name of a client becomes a path. */
export const newKey = (): string => randomBytes(key_bytes).toString('hex');

/** Whether a name is one that `newKey` made. */
export const isKey = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);

/** `ab/cd/abcd…`: some tens of files a folder at four million. Throws for what `newKey` did not make. */
export function pathOfKey(key: string): string {
  if (!isKey(key)) throw new Error('not a key of a stored file');
  return `${key.slice(0, 2)}/${key.slice(2, 4)}/${key}`;
}
