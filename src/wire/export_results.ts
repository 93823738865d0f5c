/** Defines the lines of an export, as the OpenAPI document shows them. */
import { z } from 'zod';
import { stickerSet } from '../content/sticker.js';
import { userTokenPage } from './account_results.js';
import { auditPage, ownedBotSettings, transferPage } from './owner_results.js';
import { botCommandList, chat, message, pictureFields, unixSeconds, user } from './results.js';
import { scheduledPost } from './scheduled_results.js';
import { sessionPage } from './sign_in_results.js';

const line = <K extends string, S extends z.ZodRawShape>(kind: K, shape: S) =>
  z.strictObject({ kind: z.literal(kind), ...shape });

/** The kinds of lines. Clients should ignore lines of an unknown kind. */
export const exportLine = z
  .discriminatedUnion('kind', [
    line('begin', { format: z.literal(1), exported_at: unixSeconds }).describe('The first line of an export'),
    line('profile', { user, created_at: unixSeconds, avatar: pictureFields.avatar }),
    line('identity', { issuer: z.string(), subject: z.string() }).describe(
      'The identity at an external identity provider',
    ),
    line('token', { token: userTokenPage.shape.items.element }).describe('A token without its secret'),
    line('scheduled_post', { scheduled_post: scheduledPost }),
    line('session', { session: sessionPage.shape.items.element }),
    line('push_subscription', { endpoint: z.string(), created_at: unixSeconds }).describe(
      'A browser that receives push notifications',
    ),
    line('bot', { bot: ownedBotSettings }).describe('A bot that the person owns, without its token'),
    line('commands', {
      bot_id: z.int().positive(),
      scope: z.string().describe('Stored key of scope and language'),
      commands: botCommandList,
    }),
    line('sticker_set', { bot_id: z.int().positive(), sticker_set: stickerSet }),
    line('audit', { bot_id: z.int().positive(), event: auditPage.shape.items.element }),
    line('transfer', { transfer: transferPage.shape.items.element }),
    line('notice', { at: unixSeconds, notice: z.looseObject({ kind: z.string() }) }).describe(
      'A pending notice of the management bot',
    ),
    line('chat', {
      chat,
      status: z.enum(['creator', 'administrator', 'member', 'restricted', 'left', 'kicked']),
      rights: z.record(z.string(), z.boolean()).optional(),
      read_until: z.int().positive().optional().describe('Id of the last message read'),
      muted: z.literal(true).optional().describe('Notifications of this chat are off'),
      muted_until: unixSeconds.optional(),
      list_pin: z.int().positive().optional(),
      archived: z.literal(true).optional(),
      blocked: z.literal(true).optional().describe('The person blocked the bot'),
    }).describe('A chat, on the line before its messages'),
    line('message', { chat_id: z.int(), message }).describe(
      'A message: all messages of direct chats and chats of two people, and the person’s own messages in other chats, newest first. `chat_id` is the id in the application API',
    ),
    line('media', {
      chat_id: z.int(),
      message_id: z.int().positive(),
      type: z.string(),
      file_id: z.string(),
      file_size: z.int().min(0).optional().describe('bytes'),
      file_name: z.string().optional(),
      mime_type: z.string().optional(),
      url: z.string().optional().describe('Present for media stored as a URL'),
    }).describe('A file of the preceding message. `GET /api/files/{file_id}` returns the bytes of the file'),
    line('draft', { chat_id: z.int(), text: z.string() }).describe('A text that the person has not sent'),
    line('blocked_person', { user_id: z.int().positive(), date: unixSeconds }),
    line('reaction', { post_id: z.int().positive(), emoji: z.string(), date: unixSeconds }),
    line('vote', { poll_id: z.string(), option_ids: z.array(z.int().min(0)), date: unixSeconds }),
    line('wait', {}).describe('A line without data, which keeps the connection active'),
    line('end', { lines: z.int().positive() }).describe(
      'The last line, with the number of other lines, not counting lines of kind `wait`. An export without this line is incomplete',
    ),
  ])
  .meta({ id: 'ExportLine', description: 'A line of an export: one JSON object.' });

export type ExportLine = z.input<typeof exportLine>;
