import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newKey, pathOfKey } from '../../src/files/blob_store.js';
import { createFileIds, type MediaFile } from '../../src/files/file_id.js';
import { fileAtPath, filePath } from '../../src/files/file_path.js';
import { mediaTypes } from '../../src/store/core/codec.js';

const ids = createFileIds('a pepper of more than thirty-two characters');
const wrong = 'Bad Request: wrong file identifier/HTTP URL specified';

const positive = fc.integer({ min: 1, max: 2 ** 31 });
const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
const optional = {
  size: positive,
  mime: fc.constantFrom('image/png', 'application/octet-stream', 'video/mp4'),
  name: words,
  width: positive,
  height: positive,
  duration: positive,
  performer: words,
  title: words,
  thumb: fc.record({
    key: fc.constantFrom(newKey(), newKey()),
    size: positive,
    width: positive,
    height: positive,
  }),
};
const described = fc.record(
  { type: fc.constantFrom(...mediaTypes), ...optional },
  { requiredKeys: ['type'] },
);
const place = fc.oneof(
  fc
    .uint8Array({ minLength: 16, maxLength: 16 })
    .map((bytes) => ({ key: Buffer.from(bytes).toString('hex') })),
  fc.webUrl({ validSchemes: ['https'] }).map((url) => ({ url })),
);
const files: fc.Arbitrary<MediaFile> = fc
  .tuple(described, place)
  .map(([description, at]) => ({ ...description, ...at }));

test('a file identifier decodes to its file', () => {
  fc.assert(
    fc.property(files, (file) => {
      const id = ids.idOf(file);
      expect(id).toMatch(/^[\w-]+$/);
      expect(ids.fileOf(id)).toEqual(file);
      expect(ids.idOf(ids.fileOf(id))).toBe(id);
    }),
  );
});

test('a typical file identifier is shorter than 200 characters', () => {
  const photo: MediaFile = {
    type: 'photo',
    key: newKey(),
    size: 3_000_000,
    mime: 'image/jpeg',
    width: 4_000,
    height: 3_000,
  };
  expect(ids.idOf(photo).length).toBeLessThan(120);
  const name = 'Quarterly report of the northern branch.pdf';
  const document: MediaFile = {
    type: 'document',
    key: newKey(),
    size: 3_000_000,
    mime: 'application/pdf',
    name,
  };
  expect(ids.idOf(document).length).toBeLessThan(200);
});

test('a file identifier is refused if it was changed, cut or spelt differently', () => {
  const others = createFileIds('another pepper of more than thirty-two characters');
  fc.assert(
    fc.property(files, fc.nat(), fc.integer({ min: 1, max: 63 }), (file, at, by) => {
      const id = ids.idOf(file);
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const i = at % id.length;
      const changed = alphabet[(alphabet.indexOf(id[i] as string) + by) % 64] as string;
      expect(() => ids.fileOf(id.slice(0, i) + changed + id.slice(i + 1))).toThrow(wrong);
      expect(() => ids.fileOf(id.slice(0, i))).toThrow(wrong);
      expect(() => ids.fileOf(`${id}=`)).toThrow(wrong);
      expect(() => others.fileOf(id)).toThrow(wrong);
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => void expect(() => ids.fileOf(text)).toThrow(wrong)),
  );
});

test('the unique id depends on the stored file only, not on its name or type', () => {
  const [one, two] = [newKey(), newKey()];
  const unique = ids.uniqueIdOf({ type: 'photo', key: one });
  expect(unique).toMatch(/^[\w-]{16}$/);
  expect(ids.uniqueIdOf({ type: 'document', key: one, name: 'x', size: 4 })).toBe(unique);
  expect(ids.uniqueIdOf({ type: 'photo', key: two })).not.toBe(unique);
  expect(unique).not.toContain(one.slice(0, 8));
});

test('a download path is valid for one file only', () => {
  const file: MediaFile = {
    type: 'document',
    key: newKey(),
    size: 3,
    name: 'Ünder.TAR.Gz',
    mime: 'application/gzip',
  };
  const path = filePath(ids, file) as string;
  expect(path).toMatch(/^documents\/[\w-]+\.gz$/);
  expect(fileAtPath(ids, path)).toEqual(file);
  const id = ids.idOf(file);
  for (const other of [
    `photos/${id}.gz`,
    `documents/${id}`,
    `documents/${id}.exe`,
    `documents/x/${id}.gz`,
    id,
    '',
    '../x',
  ])
    expect(() => fileAtPath(ids, other), other).toThrow('Not Found');
  const url: MediaFile = { type: 'photo', url: 'https://example.org/a.png' };
  expect(filePath(ids, url)).toBeUndefined();
  expect(() => fileAtPath(ids, `photos/${ids.idOf(url)}`)).toThrow('Not Found');
});

test('no file key can name a path outside the store', () => {
  expect(pathOfKey(newKey())).toMatch(/^[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{32}$/);
  for (const key of [
    '',
    '..',
    '../../etc/passwd',
    `${newKey()}/..`,
    newKey().toUpperCase().replace(/\d/g, 'A'),
    `${newKey()}\n`,
  ])
    expect(() => pathOfKey(key), key).toThrow();
});
