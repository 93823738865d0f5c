/** Runs the thread that measures uploads. The thread may hang or die, because the files may be malicious. */
import { parentPort } from 'node:worker_threads';
import { loadReader, measure } from './measure.js';
import { type MeasureAnswer, type MeasureTask, ready } from './measure_answer.js';
import { withoutMetadata } from './metadata.js';

const say = (answer: MeasureAnswer, moved: ArrayBuffer[] = []) => parentPort?.postMessage(answer, moved);

parentPort?.on('message', async ({ id, bytes, isPhoto }: MeasureTask) => {
  // Lets an exception end the thread, because the owner then treats the file as not measurable.
  const measured = await measure(bytes);
  const cleaned = isPhoto ? withoutMetadata(bytes) : undefined;
  if (cleaned === undefined) say({ id, measured });
  else say({ id, measured: { ...measured, cleaned } }, [cleaned.buffer]);
});
await loadReader();
say({ id: ready, measured: {} });
