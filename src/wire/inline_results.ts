/** Defines the answers to inline queries in the form in which people receive these answers. */
import { z } from 'zod';
import { contentFields } from '../content/kinds.js';

const inlineResult = z
  .strictObject({
    id: z.string(),
    type: z.string().describe('article, photo, gif, mpeg4_gif, video, audio, voice, document, location, …'),
    title: z.string().optional(),
    description: z.string().optional(),
    url: z.string().optional(),
    thumbnail_url: z.string().optional(),
    thumbnail_width: z.int().optional().describe('pixels'),
    thumbnail_height: z.int().optional().describe('pixels'),
    ...contentFields,
  })
  .meta({
    id: 'InlineResult',
    description: 'A result of an inline query, with the file that is sent if a person chooses the result.',
  });

export const inlineAnswer = z
  .strictObject({
    inline_query_id: z.string(),
    results: z.array(inlineResult),
    next_offset: z.string().optional().describe('`offset` of the query for further results'),
    button: z
      .strictObject({ text: z.string(), start_parameter: z.string() })
      .optional()
      .describe('A button that starts the bot with this parameter'),
  })
  .meta({ id: 'InlineAnswer', description: 'A bot’s answer to an inline query.' });
