/** Defines a file of any type. */
import { z } from 'zod';
import type { Media } from '../store/core/codec.js';
import { fileFields, nameFields, thumbnailField, viewFile, viewName, viewThumbnail } from './file_fields.js';
import type { FileKind } from './kind.js';

const documentFile = z
  .strictObject({ ...fileFields, ...nameFields, ...thumbnailField })
  .meta({ id: 'Document', description: 'A file of any kind.' });

export const viewDocument = (media: Media, forPeople: boolean) => ({
  ...viewFile(media, forPeople),
  ...viewName(media),
  ...viewThumbnail(media),
});

export const document: FileKind = {
  typeName: 'Document',
  sign: '📎',
  fields: { document: documentFile.optional() },
  view: (media, forPeople) => ({ document: viewDocument(media, forPeople) }),
};
