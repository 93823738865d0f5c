import { z } from 'zod';
import { viewFileInfo } from '../../files/file_path.js';
import { defineMethod } from '../../server/method.js';
import { fileInfo } from '../../wire/results.js';
import { text } from '../../wire/schema.js';

/** Returns the download path of a file (behaviour §4). A file stored as a URL has no `file_path`. */
export const getFile = defineMethod({
  name: 'getFile',
  effect: 'read',
  summary: 'Returns the `file_path` of a file. Download the file from `/file/bot<token>/<file_path>`.',
  params: z.object({ file_id: text.describe('`file_id` from a message the bot sent or received') }),
  errors: ['wrong_file_id'],
  result: fileInfo,
  handler: async ({ files }, { file_id }) => {
    const file = files.fileOf(file_id);
    await files.stillThere(file);
    return viewFileInfo(files, file);
  },
});
