/** What people are answered about their chats, as the OpenAPI document shows it. */
import { z } from 'zod';
import { limits } from '../limits.js';
import { chat, pageOf, pictureFields, unixSeconds, user } from './results.js';

const preview = z
  .strictObject({
    message_id: z.int().positive(),
    date: unixSeconds,
    kind: z.enum([
      'text',
      'photo',
      'video',
      'animation',
      'audio',
      'voice',
      'document',
      'pinned_message',
      'service',
    ]),
    from: user.optional(),
    text: z
      .string()
      .optional()
      .describe(`The first ${limits.preview_text_length_max} characters of the text or the caption`),
    file_name: z.string().optional(),
  })
  .meta({ id: 'MessagePreview', description: 'A message in a list of chats.' });

export const listedChat = chat
  .extend({
    member_count: z.int().min(0).optional(),
    avatar: pictureFields.avatar.describe('Of the bot of a direct chat'),
    last_message: preview.optional(),
    joined_at: unixSeconds.optional().describe('When the caller joined; of a chat without messages'),
    pinned_message: preview.optional(),
    can_post: z.literal(true).optional().describe('Of a channel in which the caller may post'),
    unread_count: z
      .int()
      .min(1)
      .max(limits.unread_counted_max)
      .optional()
      .describe('Messages of others after the last read one, as far as they are counted; absent for none'),
    muted: z.literal(true).optional().describe('The caller is not notified of it'),
    muted_until: unixSeconds.optional().describe('Absent where it is muted for ever'),
  })
  .meta({ id: 'ChatSummary', description: 'A chat in the list of a person.' });

export const listedChats = pageOf(listedChat);

export const namedByUsername = z
  .strictObject({ type: z.enum(['user', 'bot', 'group', 'channel']), id: z.int(), username: z.string() })
  .meta({ id: 'Named', description: 'Who or what has a username.' });

export const invitationPage = pageOf(
  z
    .strictObject({
      chat,
      member_count: z.int().min(0),
      from: user.optional().describe('Who invited the caller'),
      date: unixSeconds,
    })
    .meta({ id: 'Invitation', description: 'A group or channel that the caller was invited to.' }),
);
