/** Tests that a hostile upload cannot hang or end the process that measures it. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createFiles } from '../../src/files/files.js';
import { createFolderStore } from '../../src/files/folder.js';
import { measure } from '../../src/files/measure.js';
import { Measurer } from '../../src/files/measurer.js';
import { limits } from '../../src/limits.js';
import { mp4, png, wav } from '../support/samples.js';
import { VirtualTime } from '../support/virtual_time.js';

const dir = mkdtempSync(join(tmpdir(), 'petrel-measure-'));
afterAll(() => rm(dir, { recursive: true, force: true }));
const thread = new URL('../../dist/files/measure_worker.js', import.meta.url);

function program(text: string): URL {
  const path = join(dir, `${randomBytes(6).toString('hex')}.mjs`);
  writeFileSync(path, `import { parentPort } from 'node:worker_threads';\n${text}`);
  return pathToFileURL(path);
}
const sayReady = 'parentPort.postMessage({ id: 0, measured: {} });';

test('pictures, sound and video are measured from their content', async () => {
  expect(await measure(png(640, 360))).toEqual({ mime: 'image/png', width: 640, height: 360 });
  expect(await measure(wav(3))).toEqual({ mime: 'audio/wav', duration: 3, sounding: true });
  expect(await measure(mp4(320, 240, 7))).toEqual({
    mime: 'video/mp4',
    width: 320,
    height: 240,
    duration: 7,
    moving: true,
  });
  expect(await measure(mp4(320, 240, 7, true))).toMatchObject({ width: 240, height: 320 });
  expect(await measure(Buffer.from('plain text'))).toEqual({});
  expect(await measure(Buffer.from('%PDF-1.7\n%x'))).toEqual({ mime: 'application/pdf' });
});

test('one thread measures files one after the other', async () => {
  // Uses a virtual clock that does not advance. The measurer therefore never reaches its time limit, even on a busy
  // machine.
  const measurer = new Measurer(thread, new VirtualTime());
  const body = Buffer.concat([Buffer.from('head'), png(10, 20), Buffer.from('tail')]);
  const part = body.subarray(4, body.length - 4);
  const found = await Promise.all([
    measurer.measure(1, part),
    measurer.measure(1, wav(1)),
    measurer.measure(1, part),
  ]);
  expect(found.map(({ width, duration }) => width ?? duration)).toEqual([10, 1, 10]);
  expect(body.subarray(0, 4).toString()).toBe('head');
  await measurer.close();
});

/** Waits until the thread has started, because a longer time limit applies to the start. */
const running = (time: VirtualTime) => expect.poll(() => time.dueInMs).toBe(limits.measure_ms_max);

test('a measuring thread is terminated at its time limit if it hangs', async () => {
  const hangs = `${sayReady}
parentPort.on('message', ({ id, bytes }) => {
  if (bytes[0] === 1) for (;;);
  parentPort.postMessage({ id, measured: { width: bytes[0] } });
});`;
  const time = new VirtualTime();
  const measurer = new Measurer(program(hangs), time);
  const [hung, next] = [1, 2].map((byte) => measurer.measure(1, Buffer.from([byte])));
  await running(time);
  await time.advance(limits.measure_ms_max - 1);
  expect(await Promise.race([hung, 'still measured'])).toBe('still measured');
  await time.advance(1);
  expect(await hung).toEqual({});
  expect(await next).toEqual({ width: 2 });
  await measurer.close();
});

test('if a measuring thread dies, only the file that it was measuring fails', async () => {
  const dies = `${sayReady}
parentPort.on('message', ({ id, bytes }) => {
  if (bytes[0] === 1) throw new Error('broken');
  if (bytes[0] === 3) process.exit(1);
  parentPort.postMessage({ id, measured: { width: bytes[0] } });
});`;
  const measurer = new Measurer(program(dies), new VirtualTime());
  const found = await Promise.all([1, 2, 3, 4].map((byte) => measurer.measure(1, Buffer.from([byte]))));
  expect(found).toEqual([{}, { width: 2 }, {}, { width: 4 }]);
  await measurer.close();
});

test('no further file is accepted for measuring while the queue is full', async () => {
  const measurer = new Measurer(
    program(`${sayReady} parentPort.on('message', () => {});`),
    new VirtualTime(),
  );
  const waiting = Array.from({ length: limits.measure_waiting_max + 1 }, (_, owner) =>
    measurer.measure(owner, Buffer.from([1])),
  );
  await expect(measurer.measure(1_000, Buffer.from([1]))).rejects.toThrow('Too Many Requests');
  await measurer.close();
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => ({})));
});

test('the files of one owner neither fill the queue nor delay the files of others', async () => {
  const echo = `${sayReady}
let first = true;
parentPort.on('message', ({ id, bytes }) => {
  const answer = () => parentPort.postMessage({ id, measured: { width: bytes[0] } });
  if (first) setTimeout(answer, 500); else answer();
  first = false;
});`;
  const measurer = new Measurer(program(echo));
  const order: number[] = [];
  const measure = async (owner: number) => {
    await measurer.measure(owner, Buffer.from([owner]));
    order.push(owner);
  };
  const many = Array.from({ length: limits.measure_waiting_own_max + 1 }, () => measure(1));
  await expect(measure(1)).rejects.toThrow('Too Many Requests');
  await Promise.all([...many, measure(2)]);
  expect(order.slice(0, 3)).toEqual([1, 1, 2]);
  expect(order).toHaveLength(limits.measure_waiting_own_max + 2);
  await measurer.close();
});

test('if a photo waits too long for its measurement, the error is Too Many Requests', async () => {
  const slow = `${sayReady}
parentPort.on('message', ({ bytes }) => { if (bytes[0] === 1) for (;;); });`;
  const folder = join(dir, 'late');
  const time = new VirtualTime();
  const measurer = new Measurer(program(slow), time);
  const files = createFiles({
    ...{ blobs: createFolderStore(folder), measurer, pepper: 'p'.repeat(32), time },
    stored: { noteStored: async () => undefined, forgetStored: async () => undefined },
    onError: (error) => expect.fail(String(error)),
  });
  const upload = (bytes: Buffer) => ({ filename: 'a', contentType: 'image/png', bytes });
  const hanging = Array.from(
    { length: Math.ceil(limits.measure_wait_ms_max / limits.measure_ms_max) + 1 },
    () => measurer.measure(1, Buffer.from([1])),
  );
  const document = files.keep(1, 'document', upload(png(8, 8)));
  const photo = expect(files.keep(1, 'photo', upload(png(8, 8)))).rejects.toMatchObject({
    kind: 'too_many_requests',
  });
  for (const _ of hanging) {
    await running(time);
    await time.advance(limits.measure_ms_max);
  }
  await photo;
  expect(await document).toMatchObject({ type: 'document', mime: 'image/png' });
  expect(await Promise.all(hanging)).toContainEqual({});
  await files.close();
});

test('broken files are measured as far as possible, without an error', async () => {
  const samples = [png(64, 48), wav(1), mp4(64, 48, 5)];
  for (let round = 0; round < 150; round++) {
    const sample = Buffer.from(samples[round % samples.length] as Buffer);
    for (let i = 0; i <= round % 12; i++) {
      sample[Math.floor(Math.random() * Math.min(sample.length, 900))] = Math.floor(Math.random() * 256);
    }
    const cut = round % 5 === 0 ? sample.subarray(0, Math.floor(Math.random() * sample.length)) : sample;
    const found = await measure(cut);
    for (const [name, value] of Object.entries(found)) {
      expect(['string', 'number', 'boolean'], name).toContain(typeof value);
      if (typeof value === 'number') expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
    }
  }
}, 60_000);

test('a file name contains no characters that change the direction of text', async () => {
  const files = createFiles({
    ...{
      blobs: createFolderStore(join(dir, 'names')),
      measurer: new Measurer(thread),
      pepper: 'p'.repeat(32),
    },
    stored: { noteStored: async () => undefined, forgetStored: async () => undefined },
    onError: (error) => expect.fail(String(error)),
  });
  const upload = { filename: 'photo\u202egpj\u2066.exe', contentType: '', bytes: Buffer.from('x') };
  expect(await files.keep(1, 'document', upload)).toMatchObject({ name: 'photogpj.exe' });
  await files.close();
});
