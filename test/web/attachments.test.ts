import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';

interface Attachments {
  readonly files_max: number;
  readonly files_bytes_max: number;
  kindOf(file: File): string;
  groupsOf(files: readonly File[]): File[][];
  formOf(
    files: readonly File[],
    caption: string,
    entities: readonly object[],
    replyTo: number,
    seconds?: number,
  ): FormData;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const path = '../../src/web/client/model/attachments.ts';
const { files_max, files_bytes_max, kindOf, groupsOf, formOf }: Attachments = await import(path);

const fileOf = (name: string, type: string, bytes = 1) => new File([Buffer.alloc(bytes)], name, { type });

test('the number of files that can be attached is the maximum size of an album', () => {
  expect(files_max).toBe(limits.album_items_max);
});

test('the largest files with long names and a long caption with many links fit into one call', async () => {
  const bytes = Math.floor(files_bytes_max / files_max);
  const files = Array.from({ length: files_max }, (_, i) =>
    fileOf(`${i}${'ж'.repeat(254)}`, 'application/octet-stream', bytes),
  );
  const url = `https://example.org/${'x'.repeat(300)}`;
  const links = Array.from({ length: limits.entities_max }, (_, i) => ({
    ...{ type: 'text_link', offset: 2 * i, length: 2, url },
  }));
  const form = formOf(files, '🐦'.repeat(limits.caption_length_max), links, limits.id_max);
  const body = await new Response(form).arrayBuffer();
  expect(body.byteLength).toBeLessThanOrEqual(limits.upload_bytes_max);
  expect(body.byteLength).toBeGreaterThan(limits.upload_bytes_max - 128 * 1024);
});

test('files are divided, in order, into albums that each contain only one kind of file', () => {
  const files = [
    fileOf('1', 'image/png'),
    fileOf('2', 'video/mp4'),
    fileOf('3', 'application/pdf'),
    fileOf('4', 'image/svg+xml'),
    fileOf('5', ''),
    fileOf('6', 'audio/mpeg'),
    fileOf('7', 'image/jpeg'),
  ];
  const names = groupsOf(files).map((group) => group.map(({ name }) => name).join(''));
  expect(names).toEqual(['12', '345', '6', '7']);
});

test('only a recording made in the page is a voice message, and a voice message is never part of an album', () => {
  const recording = new File(['x'], 'Voice message', { type: 'audio/webm;codecs=opus' });
  const song = new File(['x'], 'song.webm', { type: 'audio/webm' });
  expect([recording, song].map(kindOf)).toEqual(['voice', 'audio']);
  expect(groupsOf([recording, recording, song, song])).toEqual([[recording], [recording], [song, song]]);
  const form = formOf([recording], '', [], 7, 3);
  expect(form.get('duration')).toBe('3');
  expect(form.has('voice')).toBe(true);
});
