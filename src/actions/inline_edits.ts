/**
 * Edits inline messages, which people send from a bot's inline results (decision 0054). The bot refers to such a
 * message by its `inline_message_id`.
 */
import { z } from 'zod';
import { fail } from '../errors.js';
import type { MethodContext, OfInline } from '../server/method.js';
import type { Edit } from '../store/messages/messages.js';
import type { Given } from '../store/messages/repeats.js';
import { text } from '../wire/schema.js';
import { botSender, type Writer } from './compose.js';

const inlineMessageId = text.describe(
  'Id of a message that a person sent by way of the bot, instead of `chat_id` and `message_id`',
);

/**
 * Defines how an edit method handles calls with `inline_message_id`. `edit` builds the new content. The `Writer` passed
 * to `edit` has no chat, because the bot must not learn which chat contains the message. `coalesces` says whether the
 * edit may be stored later if the message was just edited. Errors: `inline_message_invalid`, and those of edits.
 */
export const editsInline = <S extends z.ZodRawShape>(
  params: S,
  edit: (
    context: MethodContext,
    params: z.output<z.ZodObject<S>>,
    writer: Writer,
  ) => Given<Edit> | Promise<Given<Edit>>,
  coalesces: (params: z.output<z.ZodObject<S>>) => boolean = () => false,
): OfInline => ({
  params: z.object({ inline_message_id: inlineMessageId, ...params }),
  handler: async (context, p: z.output<z.ZodObject<S>> & { readonly inline_message_id: string }) => {
    const { bot, store } = context;
    const place = store.inlineIds.placeOf(bot.id, p.inline_message_id) ?? fail('inline_message_invalid');
    const change = await edit(context, p, { id: bot.id, isBot: true, chat: null });
    await store.messages.editInline(botSender(bot), place, change, coalesces(p) ? bot.owner : null);
    return true;
  },
});
