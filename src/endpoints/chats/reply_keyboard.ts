import { z } from 'zod';
import { personViewer, readableChat } from '../../actions/reading.js';
import { asSeenBy } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import type { User } from '../../store/core/control.js';
import { isDirect } from '../../store/core/keys.js';
import type { StoredMessage } from '../../store/core/stored_message.js';
import { viewMessage } from '../../view/messages.js';
import { appChatId } from '../../wire/fields.js';
import { message } from '../../wire/results.js';

function isShownTo({ id, username }: User, { chat, record, reply }: StoredMessage): boolean {
  if (!record.origin.keyboard?.selective || isDirect(chat) || reply?.record.sender === id) return true;
  const { text = '', entities = [] } = record.content;
  return entities.some(({ type, offset, length, user }) => {
    if (type === 'text_mention') return (user as { id: number }).id === id;
    const name = text.slice(offset + 1, offset + length);
    return type === 'mention' && name.toLowerCase() === username?.toLowerCase();
  });
}

export const getReplyKeyboard = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/reply_keyboard',
  summary:
    'Returns the message with the caller’s current reply keyboard: the newest message that shows a keyboard, removes one or forces a reply.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: z
    .strictObject({ message: message.optional().describe('Absent if the caller sees no reply keyboard') })
    .meta({ id: 'ShownReplyKeyboard', description: 'The message with the current reply keyboard.' }),
  handler: async ({ user, store }, p) => {
    const chat = await readableChat(store, user, p.chat_id);
    const state = (await store.chats.find(chat)) ?? fail('chat_not_found');
    const shown = (await store.history.keyboards(state)).find((one) => isShownTo(user, one));
    if (shown === undefined) return {};
    const [viewer, [own = shown]] = await Promise.all([
      personViewer(store, chat, user),
      asSeenBy(store, user, [shown]),
    ]);
    return { message: viewMessage(own, viewer, store.time) };
  },
});
