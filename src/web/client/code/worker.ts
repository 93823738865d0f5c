/** The worker that colours code. A page ends it if one code takes too long. */
import { partsOf } from './colours.js';

addEventListener('message', ({ data }: MessageEvent<{ language: string; code: string }>) => {
  postMessage(partsOf(data.language, data.code));
});
