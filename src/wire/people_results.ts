/** Defines the results about other people, as the OpenAPI document shows them. */
import { z } from 'zod';
import { pageOf, pictureFields, unixSeconds, user } from './results.js';

export const personPage = z
  .strictObject({
    user,
    avatar: pictureFields.avatar,
    chat_id: z
      .int()
      .negative()
      .optional()
      .describe('The caller’s chat with the person. Absent if it was never opened'),
    blocked: z.literal(true).optional().describe('The caller blocked the person'),
  })
  .meta({ id: 'Person', description: 'Another person, as the caller sees them.' });

export const blockedPage = pageOf(
  z
    .strictObject({ user, date: unixSeconds })
    .meta({ id: 'BlockedPerson', description: 'A person whom the caller blocked.' }),
);
