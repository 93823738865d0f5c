import { z } from 'zod';
import { chatOfBot, draftContent } from '../../actions/compose.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { viewEntities } from '../../view/messages.js';
import { boolean, entities, integer, optional, parseMode, privateChatId, text } from '../../wire/schema.js';

const notZero = 'an integer other than 0';

export const sendMessageDraft = defineMethod({
  name: 'sendMessageDraft',
  effect: 'grow',
  summary:
    'Shows a person the beginning of a message that the bot is still writing. The draft is shown for up to 30 seconds.',
  params: z.object({
    chat_id: privateChatId,
    draft_id: integer(notZero)
      .refine((id) => id !== 0, { error: notZero })
      .describe('Id of the draft, chosen by the bot. Calls with the same id change the same draft'),
    text: optional(text).describe(
      `Text of up to ${limits.text_length_max} characters, counted after entities are parsed. Empty to show that the bot is thinking`,
    ),
    parse_mode: parseMode,
    entities,
    can_stop: optional(boolean).describe('Shows the person a button that stops the draft'),
    keep_on_stop: optional(boolean).describe('Leaves a stopped draft visible until it expires'),
  }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'cant_initiate',
    'bot_blocked',
    'draft_not_private',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
  ],
  handler: async ({ bot, store }, p) => {
    if (p.chat_id < 0) fail('draft_not_private');
    const chat = chatOfBot(bot.id, p.chat_id);
    const given = { text: p.text ?? '', parse_mode: p.parse_mode, entities: p.entities };
    const content = await draftContent(store, { id: bot.id, isBot: true, chat }, given);
    await store.drafts.show(chat, {
      id: p.draft_id,
      text: content.text ?? '',
      entities: viewEntities(content.entities),
      canStop: p.can_stop ?? false,
      keepOnStop: p.keep_on_stop ?? false,
    });
  },
});
