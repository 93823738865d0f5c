import { z } from 'zod';
import { botSender, chatErrors, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { pollFields, pollIn, viewPoll } from '../../content/poll.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { packMarkup } from '../../store/core/codec.js';
import { chatId, messageId, replyMarkup } from '../../wire/schema.js';

/** Closes a poll. Without `reply_markup`, removes the message's keyboard. */
export const stopPoll = defineMethod({
  name: 'stopPoll',
  effect: 'change',
  summary: 'Closes a poll that the bot sent, and returns its results.',
  params: z.object({ chat_id: chatId, message_id: messageId, reply_markup: replyMarkup }),
  errors: [
    ...chatErrors,
    ...inlineKeyboardErrors,
    'poll_to_stop_not_found',
    'message_not_poll',
    'poll_cant_be_stopped',
    'poll_closed',
  ],
  result: pollFields,
  handler: async ({ bot, store }, p) => {
    const markup = packMarkup(keyboard(p.reply_markup));
    const sender = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const [found] = await store.messages.readMany(chat, sender, [p.message_id]);
    const { record } = found ?? fail('poll_to_stop_not_found');
    const poll = pollIn(record.content) ?? fail('message_not_poll');
    if (poll.bot !== bot.id || record.sender !== bot.id || record.origin.forward)
      fail('poll_cant_be_stopped');
    const state = await store.votes.stop(poll, chat, p.message_id, sender, markup);
    return viewPoll({ ...poll, state }, false, bot.id, store.time.nowSeconds());
  },
});
