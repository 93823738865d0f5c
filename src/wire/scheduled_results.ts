/** Defines the results about scheduled posts. */
import { z } from 'zod';
import { messageEntity, pageOf, unixSeconds } from './results.js';

export const scheduledPost = z
  .strictObject({
    id: z.int().positive(),
    chat_id: z.int().negative(),
    text: z.string(),
    entities: z.array(messageEntity).optional(),
    publish_at: unixSeconds,
    failure: z.string().optional().describe('Why the post was not published. Absent if it still waits'),
  })
  .meta({ id: 'ScheduledPost', description: 'A post that the caller has scheduled in a channel.' });

export const scheduledPosts = pageOf(scheduledPost);
