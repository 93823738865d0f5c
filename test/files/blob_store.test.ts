/** Tests the contract of both kinds of storage: a folder, and an S3 server. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BlobStore, newKey } from '../../src/files/blob_store.js';
import { createFolderStore } from '../../src/files/folder.js';
import { createS3Store } from '../../src/files/s3.js';

const dir = mkdtempSync(join(tmpdir(), 'petrel-blobs-'));
const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7) & 255));
let server: S3rver;
let s3: BlobStore & { close(): void };
let port = 0;

const s3On = (bucket: string, keyId = 'S3RVER') =>
  createS3Store({
    ...{ url: `http://127.0.0.1:${port}`, bucket, region: 'us-east-1', keyId, secret: 'S3RVER' },
    pathStyle: true,
  });

beforeAll(async () => {
  server = new S3rver({
    ...{ port: 0, address: '127.0.0.1', silent: true, directory: join(dir, 's3') },
    configureBuckets: [{ name: 'petrel', configs: [] }],
  });
  ({ port } = await server.run());
  s3 = s3On('petrel');
});
afterAll(async () => {
  s3?.close();
  await server?.close();
  await rm(dir, { recursive: true, force: true });
});

async function read(store: BlobStore, key: string, start: number, end: number): Promise<Buffer | null> {
  const stream = await store.open(key, start, end);
  return stream && Buffer.concat(await stream.toArray());
}

describe.each(['folder', 's3'])('file storage: %s', (kind) => {
  const folder = join(dir, 'folder');
  const store = () => (kind === 's3' ? s3 : createFolderStore(folder));

  test('the file store reads files by range', async () => {
    const key = newKey();
    await store().put(key, bytes);
    expect(await store().size(key)).toBe(bytes.length);
    expect(await read(store(), key, 0, bytes.length - 1)).toEqual(bytes);
    expect(await read(store(), key, 100_000, 100_009)).toEqual(bytes.subarray(100_000, 100_010));
    expect(await read(store(), key, bytes.length - 1, bytes.length - 1)).toEqual(bytes.subarray(-1));
    await store().remove(key);
    expect(await store().size(key)).toBeNull();
    expect(await store().open(key, 0, 1)).toBeNull();
    await store().remove(key);
    await store().check();
    expect(await store().list('', 2)).toEqual([]);
  });

  test('the file store lists files after a given key, in the order of their keys', async () => {
    const keys = Array.from({ length: 5 }, newKey).sort();
    const before = Date.now();
    for (const key of keys) await store().put(key, Buffer.from('x'));
    if (kind === 'folder') writeFileSync(join(folder, 'odd'), 'no file of ours');
    const seen: string[] = [];
    for (let page = await store().list('', 2); ; page = await store().list(seen.at(-1) as string, 2)) {
      for (const { key, at } of page) {
        expect(Math.abs(at - before)).toBeLessThan(60_000);
        seen.push(key);
      }
      if (page.length < 2) break;
    }
    expect(seen).toEqual(keys);
    for (const key of keys) await store().remove(key);
    expect(await store().list('', 2)).toEqual([]);
  });

  test('the file store can write and read many files at the same time', async () => {
    const keys = Array.from({ length: 30 }, newKey);
    const kept = store();
    await Promise.all(keys.map((key, i) => kept.put(key, Buffer.from(`file ${i}`))));
    const found = await Promise.all(keys.map((key) => read(kept, key, 5, 5)));
    expect(found.map(String)).toEqual(keys.map((_, i) => `file ${i}`[5]));
  });

  test('a read stream of the file store ends when its reader stops reading', async () => {
    const key = newKey();
    await store().put(key, bytes);
    const stream = await store().open(key, 0, bytes.length - 1);
    const closed = new Promise((resolve) => stream?.once('close', resolve));
    stream?.destroy();
    await closed;
  });
});

test('a listing of the file folder contains only complete files', async () => {
  const folder = join(dir, 'own');
  mkdirSync(join(folder, 'incoming'), { recursive: true });
  const [old, fresh] = ['old', 'fresh'].map((name) => join(folder, 'incoming', name)) as [string, string];
  writeFileSync(old, 'x');
  writeFileSync(fresh, 'x');
  utimesSync(old, 1, 1);
  const key = newKey();
  await createFolderStore(folder).put(key, bytes);
  expect(readdirSync(join(folder, 'incoming'))).toEqual(['fresh']);
  expect(statSync(join(folder, key.slice(0, 2), key.slice(2, 4), key)).mode & 0o077).toBe(0);
});

test('the file store creates a deleted folder again', async () => {
  const folder = join(dir, 'again');
  const store = createFolderStore(folder);
  await store.put(newKey(), bytes);
  await rm(folder, { recursive: true });
  await expect(store.put(newKey(), bytes)).rejects.toThrow('ENOENT');
  const key = newKey();
  await store.put(key, bytes);
  expect(await store.size(key)).toBe(bytes.length);

  const blocked = join(dir, 'blocked');
  writeFileSync(blocked, 'a file');
  chmodSync(blocked, 0o400);
  await expect(createFolderStore(blocked).put(newKey(), bytes)).rejects.toThrow();
});

test('the check for a writable file folder leaves no file behind', async () => {
  const folder = join(dir, 'checked');
  mkdirSync(folder);
  const store = createFolderStore(folder);
  await store.check();
  expect(readdirSync(folder)).toEqual([]);
  await createFolderStore(join(folder, 'new', 'files')).check();
  expect(readdirSync(folder)).toEqual([]);
  const key = newKey();
  await store.put(key, bytes);
  const before = readdirSync(folder, { recursive: true });
  await store.check();
  expect(readdirSync(folder, { recursive: true })).toEqual(before);

  await rm(join(folder, 'incoming'), { recursive: true });
  writeFileSync(join(folder, 'incoming'), 'a file');
  await expect(store.check()).rejects.toThrow('ENOTDIR');
  await expect(createFolderStore(join(folder, 'incoming')).check()).rejects.toThrow();
});

test('an error of S3 is not reported as a missing file', async () => {
  const [noBucket, noAccess] = [s3On('absent'), s3On('petrel', 'wrong')];
  await expect(noBucket.put(newKey(), bytes)).rejects.toThrow('bucket');
  await expect(noBucket.check()).rejects.toThrow('bucket');
  await expect(noAccess.put(newKey(), bytes)).rejects.toThrow();
  await expect(noAccess.open(newKey(), 0, 1)).rejects.toThrow();
  noBucket.close();
  noAccess.close();
});
