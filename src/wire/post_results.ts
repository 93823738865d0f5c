/** Defines the wire format of posts and reactions, as the OpenAPI document shows it. */
import { z } from 'zod';
import { contentFields, kindNames } from '../content/kinds.js';
import { chat, inlineKeyboard, messageEntity, user } from './results.js';

export const reaction = z
  .strictObject({
    emoji: z.string(),
    count: z.int().min(1),
    user_ids: z.array(z.string()).describe('External ids of the users; the latest 100 when there are more'),
    user_ids_truncated: z.literal(true).optional(),
  })
  .meta({ id: 'Reaction', description: 'All reactions to a post that use the same emoji.' });

/**
 * Describes the reactions to a post. In the answer, these fields are at the top level next to `ok`, not inside `result`
 * (interface §2).
 */
export const reactionPayload = z
  .strictObject({ ok: z.literal(true), reactions: z.array(reaction), my_reactions: z.array(z.string()) })
  .meta({ id: 'PostReactions', description: 'All reactions on a post, and the caller’s own reactions.' });

/**
 * Returns the schema of one kind of content. It has the fields of this kind, and the kind's name as `type`. In a post,
 * a photo has only one size, and a poll has its fields inside `poll`.
 */
function mediaOf(type: string) {
  if (type === 'poll') return z.strictObject({ type: z.literal(type), poll: contentFields.poll.unwrap() });
  const field: z.ZodObject | z.ZodArray<z.ZodObject> = contentFields[type].unwrap();
  const { shape } = field instanceof z.ZodArray ? field.element : field;
  return z.strictObject({ ...shape, type: z.literal(type) });
}
const [firstKind = '', ...otherKinds] = kindNames;

export const post = z
  .strictObject({
    id: z.int().positive(),
    external_id: z.string(),
    chat,
    message_id: z.int().positive(),
    author: user,
    date: z.int().min(0).describe('Unix time in seconds'),
    edit_date: z.int().min(0).optional().describe('Unix time in seconds'),
    text: z.string().optional(),
    caption: z.string().optional(),
    entities: z.array(messageEntity).optional(),
    media_group_id: z.string().optional().describe('Id of the album'),
    has_media_spoiler: z
      .literal(true)
      .optional()
      .describe('The media is covered until the viewer reveals it'),
    show_caption_above_media: z.literal(true).optional(),
    media: z.discriminatedUnion('type', [mediaOf(firstKind), ...otherKinds.map(mediaOf)]).optional(),
    reply_markup: inlineKeyboard.optional(),
    reactions: z.array(reaction),
    liked_by_me: z.boolean(),
  })
  .meta({ id: 'Post', description: 'A message in a channel.' });

export const reactorPage = z.strictObject({
  items: z.array(
    z.strictObject({
      user_id: z.string(),
      emoji: z.string(),
      date: z.int().min(0),
      user: user.optional().describe('Absent when the person no longer exists'),
    }),
  ),
  next_cursor: z.string().optional(),
});
