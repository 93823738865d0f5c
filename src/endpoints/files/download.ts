import { z } from 'zod';
import { fail } from '../../errors.js';
import type { MediaFile } from '../../files/file_id.js';
import { defineEndpoint, replied } from '../../server/endpoint.js';
import { text } from '../../wire/schema.js';

/**
 * Sends a file to a person. Answers 404 for an unknown `file_id`, because the `file_id` is part of the path (behaviour
 * §11).
 */
export const downloadFile = defineEndpoint({
  verb: 'GET',
  path: '/api/files/{file_id}',
  summary: 'Downloads a file, or a range of the file’s bytes.',
  params: z.object({ file_id: text.describe('`file_id` from a message the caller can read') }),
  errors: ['not_found', 'range_not_satisfiable'],
  contentType: 'application/octet-stream',
  handler: async ({ user, files, downloads, request }, { file_id }) => {
    let file: MediaFile;
    try {
      file = files.fileOf(file_id);
    } catch {
      return fail('not_found');
    }
    await downloads.send(request, file, user.id);
    return replied;
  },
});
