/** The lines of an export, as the OpenAPI document shows them. */
import { z } from 'zod';
import { userTokenPage } from './account_results.js';
import { auditPage, ownedBotSettings, transferPage } from './owner_results.js';
import { botCommandList, chat, message, unixSeconds, user } from './results.js';

const line = <K extends string, S extends z.ZodRawShape>(kind: K, shape: S) =>
  z.strictObject({ kind: z.literal(kind), ...shape });

/** Readers should pass over kinds that they do not know. */
export const exportLine = z
  .discriminatedUnion('kind', [
    line('begin', { format: z.literal(1), exported_at: unixSeconds }).describe('The first line'),
    line('profile', { user, created_at: unixSeconds }),
    line('identity', { issuer: z.string(), subject: z.string() }).describe('Of an identity provider'),
    line('token', { token: userTokenPage.shape.items.element }).describe('Without its secret'),
    line('push_subscription', { endpoint: z.string(), created_at: unixSeconds }).describe(
      'A browser that is notified',
    ),
    line('bot', { bot: ownedBotSettings }).describe('A bot of the person, without its token'),
    line('commands', {
      ...{ bot_id: z.int().positive(), scope: z.string().describe('Scope and language as they are kept') },
      commands: botCommandList,
    }),
    line('audit', { bot_id: z.int().positive(), event: auditPage.shape.items.element }),
    line('transfer', { transfer: transferPage.shape.items.element }),
    line('notice', { at: unixSeconds, notice: z.looseObject({ kind: z.string() }) }).describe(
      'What the management bot was to tell',
    ),
    line('chat', {
      chat,
      status: z.enum(['creator', 'administrator', 'member', 'left', 'kicked']),
      rights: z.record(z.string(), z.boolean()).optional(),
      read_until: z.int().positive().optional().describe('Id of the last message that was read'),
      muted: z.literal(true).optional().describe('The person is not notified of it'),
      muted_until: unixSeconds.optional(),
      blocked: z.literal(true).optional().describe('The person blocks the bot'),
    }).describe('Before the messages of the chat'),
    line('message', { chat_id: z.int(), message }).describe(
      'Of a direct chat all messages, of others those of the person; newest first. `chat_id` as the application API names it',
    ),
    line('media', {
      ...{ chat_id: z.int(), message_id: z.int().positive(), type: z.string(), file_id: z.string() },
      ...{ file_size: z.int().min(0).optional().describe('bytes'), file_name: z.string().optional() },
      ...{
        mime_type: z.string().optional(),
        url: z.string().optional().describe('Of media kept by reference'),
      },
    }).describe('Of the message before it; `GET /api/files/{file_id}` has the bytes'),
    line('reaction', { post_id: z.int().positive(), emoji: z.string(), date: unixSeconds }),
    line('wait', {}).describe('Tells nothing'),
    line('end', { lines: z.int().positive() }).describe(
      'The last line: how many others there are, those of the kind `wait` left out. An export without it is not whole',
    ),
  ])
  .meta({ id: 'ExportLine', description: 'A line of an export: one JSON object.' });

export type ExportLine = z.input<typeof exportLine>;
