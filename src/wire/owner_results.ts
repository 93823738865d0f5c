/** Defines the results that tell owners about their bots, as the OpenAPI document shows them. */
import { z } from 'zod';
import { auditEvents } from '../store/access/audit.js';
import { ownedBot, pageOf, pictureFields } from './results.js';

const byLanguage = z.record(z.string(), z.string()).describe('Texts by language code; "" for the default');

const writeAccess = z
  .strictObject({
    policy: z.enum(['all', 'selected', 'owner']),
    usernames: z
      .array(z.string())
      .optional()
      .describe('People who may write besides the owner, under the policy `selected`'),
  })
  .meta({ id: 'WriteAccess', description: 'Who may write to a bot in direct chats.' });

const inlineMode = z
  .strictObject({
    placeholder: z.string().describe('Text in the composer after the username of the bot'),
    feedback: z.boolean().describe('Whether the bot gets the results that people choose'),
  })
  .meta({
    id: 'InlineMode',
    description: 'The settings of a bot’s inline mode. Absent while inline mode is off.',
  });

export const ownedBotSettings = ownedBot
  .extend({
    ...pictureFields,
    texts: z.strictObject({ name: byLanguage, description: byLanguage, short_description: byLanguage }),
    write_access: writeAccess,
    inline_mode: inlineMode.optional(),
  })
  .meta({ id: 'OwnedBotSettings', description: 'A bot and its settings.' });

export const transferPage = pageOf(
  z
    .strictObject({
      bot_id: z.int().positive(),
      bot_username: z.string(),
      from_id: z.int().positive().describe('Id of the person who offers the bot'),
      to_id: z.int().positive().describe('Id of the person who may accept it'),
      expires_at: z.int().min(0).describe('Unix time in seconds'),
    })
    .meta({ id: 'Transfer', description: 'An offer to transfer a bot.' }),
);

export const auditPage = pageOf(
  z
    .strictObject({
      id: z.int().positive(),
      event: z.enum(auditEvents),
      actor: z.strictObject({
        type: z.enum(['user', 'bot', 'operator', 'service']),
        id: z.int().positive().optional().describe('Id of the person. Absent if the actor is not a person'),
      }),
      details: z.record(z.string(), z.unknown()),
      at: z.int().min(0).describe('Unix time in seconds'),
    })
    .meta({ id: 'AuditEvent', description: 'An entry in the audit log of a bot.' }),
);
