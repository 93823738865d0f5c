/** The thread that measures uploads. It may hang or die, because files may be malicious. */
import { parentPort } from 'node:worker_threads';
import { loadReader, measure } from './measure.js';
import { type MeasureAnswer, type MeasureTask, ready } from './measure_answer.js';
import { withoutMetadata } from './metadata.js';

const say = (answer: MeasureAnswer, moved: ArrayBuffer[] = []) => parentPort?.postMessage(answer, moved);

parentPort?.on('message', async ({ id, bytes, isPhoto }: MeasureTask) => {
  // An exception ends the thread. The main thread then treats the file as one that cannot be measured.
  const measured = await measure(bytes);
  const cleaned = isPhoto ? withoutMetadata(bytes) : undefined;
  if (cleaned === undefined) say({ id, measured });
  else say({ id, measured: { ...measured, cleaned } }, [cleaned.buffer]);
});
await loadReader();
say({ id: ready, measured: {} });
