/** Runs the thread that measures uploads. The thread may hang or die, because the files may be malicious. */
import { parentPort } from 'node:worker_threads';
import { loadReader, measure } from './measure.js';
import { type MeasureAnswer, ready } from './measure_answer.js';

const say = (answer: MeasureAnswer) => parentPort?.postMessage(answer);

parentPort?.on('message', async ({ id, bytes }: { id: number; bytes: Uint8Array }) => {
  // Lets an exception end the thread. The owner then treats the file as not measurable.
  say({ id, measured: await measure(bytes) });
});
await loadReader();
say({ id: ready, measured: {} });
