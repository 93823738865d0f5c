/** Sends content that has neither text nor a file, such as a location. */
import type { ErrorName } from '../errors.js';
import type { MethodContext } from '../server/method.js';
import type { ContentObject } from '../store/core/codec.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import { replyMarkup } from '../wire/schema.js';
import {
  botSender,
  chatErrors,
  chatOfBot,
  keyboardErrors,
  markupOf,
  type SendingParams,
  sendingOf,
  sendingParams,
} from './compose.js';

export const objectParams = { ...sendingParams, reply_markup: replyMarkup };

export const objectErrors = [
  ...chatErrors,
  'bot_blocked',
  'posting_not_allowed',
  'sending_not_permitted',
  ...keyboardErrors,
  'reply_not_found',
] as const satisfies readonly ErrorName[];

interface ObjectParams extends SendingParams {
  readonly reply_markup?: Parameters<typeof markupOf>[0];
}

/**
 * Sends the content as a bot. If the content is a function, calls it only when no earlier run of the same call has sent
 * the message. Errors: `objectErrors`.
 */
export async function sendObject<T extends ContentObject>(
  { bot, store }: MethodContext,
  object: T | (() => T | Promise<T>),
  p: ObjectParams,
): Promise<MessageView> {
  const sender = botSender(bot);
  const chat = chatOfBot(bot.id, p.chat_id);
  const sending = { ...markupOf(p.reply_markup), ...sendingOf(p) };
  const sent = await store.messages.send(
    chat,
    sender,
    typeof object === 'function'
      ? async () => ({ content: { object: await object() }, ...sending })
      : { content: { object }, ...sending },
  );
  return viewMessage(sent, { isBot: true, bot: sender.profile });
}
