/** The thread in which uploads are measured: what it reads comes from anybody, so it may hang or die. */
import { parentPort } from 'node:worker_threads';
import { loadReader, measure } from './measure.js';
import { type MeasureAnswer, ready } from './measure_answer.js';

const say = (answer: MeasureAnswer) => parentPort?.postMessage(answer);

parentPort?.on('message', async ({ id, bytes }: { id: number; bytes: Uint8Array }) => {
  // What throws here ends the thread, which its owner takes for a file that cannot be measured.
  say({ id, measured: await measure(bytes) });
});
await loadReader();
say({ id: ready, measured: {} });
