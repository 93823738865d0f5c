/** Results about the caller's chats, as the OpenAPI document shows them. */
import { z } from 'zod';
import { kindNames } from '../content/kinds.js';
import { limits } from '../limits.js';
import { chat, pageOf, pictureFields, unixSeconds, user } from './results.js';

const preview = z
  .strictObject({
    message_id: z.int().positive(),
    date: unixSeconds,
    kind: z.enum(['text', ...kindNames, 'pinned_message', 'service']),
    from: user.optional(),
    text: z
      .string()
      .optional()
      .describe(`The first ${limits.preview_text_length_max} characters of the text or the caption`),
    file_name: z
      .string()
      .optional()
      .describe('The name of a file, the title of a venue, the name of a contact'),
  })
  .meta({ id: 'MessagePreview', description: 'A message in a list of chats.' });

export const listedChat = chat
  .extend({
    member_count: z.int().min(0).optional(),
    avatar: pictureFields.avatar.describe('Avatar of the bot of a direct chat'),
    last_message: preview.optional(),
    joined_at: unixSeconds.optional().describe('When the caller joined. Only for chats without messages'),
    pinned_message: preview.optional(),
    can_post: z.literal(true).optional().describe('Present for channels where the caller may post'),
    unread_count: z
      .int()
      .min(1)
      .max(limits.unread_counted_max)
      .optional()
      .describe('Number of messages by others after the last read one, up to a limit; absent for none'),
    muted: z.literal(true).optional().describe('Notifications of this chat are off'),
    muted_until: unixSeconds.optional().describe('Absent when muted forever'),
  })
  .meta({ id: 'ChatSummary', description: "A chat in a person's chat list." });

export const listedChats = pageOf(listedChat);

export const namedByUsername = z
  .strictObject({ type: z.enum(['user', 'bot', 'group', 'channel']), id: z.int(), username: z.string() })
  .meta({ id: 'Named', description: 'The user, bot or chat with this username.' });

export const invitationPage = pageOf(
  z
    .strictObject({
      chat,
      member_count: z.int().min(0),
      from: user.optional().describe('Who invited the caller'),
      date: unixSeconds,
    })
    .meta({ id: 'Invitation', description: 'An invitation of the caller to a group or channel.' }),
);
