import { z } from 'zod';
import { chatErrors, chatOfBot } from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { answer, chatId } from '../../wire/schema.js';

const actions = [
  'typing',
  'upload_photo',
  'record_video',
  'upload_video',
  'record_voice',
  'upload_voice',
  'upload_document',
  'choose_sticker',
  'find_location',
  'record_video_note',
  'upload_video_note',
] as const;

/** Maps the action names of older Bot API versions, which libraries still send. */
const formerActions: Readonly<Record<string, string>> = {
  record_audio: 'record_voice',
  upload_audio: 'upload_voice',
};

const action = z.preprocess(
  (given) => (typeof given === 'string' ? (formerActions[given] ?? given) : given),
  z.enum(actions, { error: answer('chat_action_invalid') }),
);

export const sendChatAction = defineMethod({
  name: 'sendChatAction',
  effect: 'grow',
  summary: 'Shows a chat action such as “typing”.',
  params: z.object({ chat_id: chatId, action }),
  errors: [...chatErrors, 'bot_blocked', 'chat_action_invalid'],
  handler: ({ bot, store }, p) => store.messages.showAction(chatOfBot(bot.id, p.chat_id), bot.id, p.action),
});
