/** Defines the results about scheduled posts. */
import { z } from 'zod';
import { messageEntity, pageOf, unixSeconds } from './results.js';

export const scheduledPost = z
  .strictObject({
    id: z.int().positive(),
    chat_id: z.int().negative(),
    text: z.string().describe('The text, or the caption of a file'),
    entities: z.array(messageEntity).optional(),
    media: z
      .strictObject({
        type: z.string().describe('As the name of the parameter, for instance `photo`'),
        file_name: z.string().optional(),
        mime_type: z.string().optional(),
        file_size: z.int().optional().describe('In bytes'),
        width: z.int().optional(),
        height: z.int().optional(),
        duration: z.int().optional().describe('In seconds'),
      })
      .optional()
      .describe('The file of the post. Absent for a text'),
    publish_at: unixSeconds,
    failure: z.string().optional().describe('Why the post was not published. Absent if it still waits'),
  })
  .meta({ id: 'ScheduledPost', description: 'A post that the caller has scheduled in a channel.' });

export const scheduledPosts = pageOf(scheduledPost);
