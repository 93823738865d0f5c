/** Sends content without text or a file: a location, a venue, a contact. */
import type { ErrorName } from '../errors.js';
import type { MethodContext } from '../server/method.js';
import type { ContentObject } from '../store/core/codec.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import { replyMarkup } from '../wire/schema.js';
import { botSender, chatErrors, chatOfBot, keyboard, keyboardErrors } from './compose.js';
import { type SendingParams, sendingOf, sendingParams } from './send_media.js';

export const objectParams = { ...sendingParams, reply_markup: replyMarkup };

export const objectErrors = [
  ...chatErrors,
  'bot_blocked',
  'posting_not_allowed',
  ...keyboardErrors,
  'reply_not_found',
] as const satisfies readonly ErrorName[];

interface ObjectParams extends SendingParams {
  readonly reply_markup?: Parameters<typeof keyboard>[0];
}

/** Sends the content as a bot. Errors: `objectErrors`. */
export async function sendObject<T extends ContentObject>(
  { bot, store }: MethodContext,
  object: T,
  p: ObjectParams,
): Promise<MessageView> {
  const sender = botSender(bot);
  const sent = await store.messages.send(chatOfBot(bot.id, p.chat_id), sender, {
    content: { object },
    markup: keyboard(p.reply_markup),
    ...sendingOf(p),
  });
  return viewMessage(sent, { isBot: true, bot: sender.profile });
}
