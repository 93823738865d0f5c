import { z } from 'zod';
import { userSender } from '../../actions/compose.js';
import { readableChat } from '../../actions/reading.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { isDirect } from '../../store/core/keys.js';
import { announcedKinds, chatAction } from '../../wire/chat_actions.js';
import { appChatId } from '../../wire/fields.js';

/**
 * Shows an action, for instance typing. Bots get no update about it. Channels show no actions, because readers do not
 * see who writes the posts.
 */
export const showAction = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/action',
  inRedis: true,
  summary:
    'Shows others that the caller is typing, recording or uploading: the other members of a group, or the other person in a chat of two people. While the action lasts, repeat the call every few seconds. The call does nothing in other chats.',
  params: z.object({ chat_id: appChatId, action: chatAction }),
  uncounted: true,
  errors: [
    'chat_not_found',
    'not_chat_member',
    'cant_write_to_person',
    'sending_not_permitted',
    'chat_action_invalid',
  ],
  handler: async ({ user, store }, p) => {
    store.actionRates.take(user.id);
    const chat = await readableChat(store, user, p.chat_id);
    if (isDirect(chat) || !store.actionRates.hasRoom(chat.id)) return;
    await store.messages.showAction(chat, userSender(user), p.action, announcedKinds[p.action]);
  },
});
