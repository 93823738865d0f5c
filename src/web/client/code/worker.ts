/** The worker that colours code. The page ends this worker if one piece of code takes too long. */
import { partsOf } from './colours.js';

addEventListener('message', ({ data }: MessageEvent<{ language: string; code: string }>) => {
  postMessage(partsOf(data.language, data.code));
});
