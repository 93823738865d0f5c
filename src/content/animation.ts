/** A silent video that repeats. The Message also has it as a document, for clients that do not know animations. */
import { viewDocument } from './document.js';
import type { FileKind } from './kind.js';
import { videoFile, viewVideo } from './video.js';

export const animation: FileKind = {
  typeName: 'Animation',
  sign: '🎞',
  fields: { animation: videoFile.optional() },
  view: (media, forPeople) => ({
    animation: viewVideo(media, forPeople),
    document: viewDocument(media, forPeople),
  }),
};
