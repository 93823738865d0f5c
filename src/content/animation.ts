/**
 * Defines a silent looping video. The Message also contains it as a document, for clients that do not support
 * animations.
 */
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
