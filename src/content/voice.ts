/** Defines a voice message. */
import { z } from 'zod';
import { durationField, fileFields, nameFields, viewDuration, viewFile, viewName } from './file_fields.js';
import type { FileKind } from './kind.js';

const voiceFile = z
  .strictObject({ ...fileFields, ...nameFields, ...durationField })
  .meta({ id: 'Voice', description: 'A voice message.' });

export const voice: FileKind = {
  typeName: 'VoiceNote',
  sign: '🎤',
  fields: { voice: voiceFile.optional() },
  view: (media, forPeople) => ({
    voice: { ...viewFile(media, forPeople), ...viewDuration(media), ...viewName(media) },
  }),
};
