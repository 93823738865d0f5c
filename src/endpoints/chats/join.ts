/** Lets people join a public chat, and leave any group or channel (behaviour §11). */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { isDirect } from '../../store/core/keys.js';
import { appChatId } from '../../wire/fields.js';

const params = z.object({ chat_id: appChatId });

export const joinChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/join',
  summary: 'Joins a public group or channel.',
  params,
  errors: ['chat_not_found', 'kicked_from_chat', 'too_many_chats'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    if (isDirect(chat)) fail('chat_not_found');
    await store.chats.join(chat, user.id);
  },
});

export const leaveChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/leave',
  summary: 'Leaves a group or channel.',
  params,
  errors: ['chat_not_found', 'not_chat_member', 'creator_cant_leave'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    await store.unlessApplied(async () => {
      await readableChat(store, user, p.chat_id);
      if (isDirect(chat) || (await store.chats.find(chat))?.profile.t === 'person') fail('chat_not_found');
      const { status } = await store.chats.member(chat, user.id);
      if (status === 'creator') fail('creator_cant_leave');
    });
    await store.chats.putMember(chat, { id: user.id, is_bot: false }, 'left', {});
  },
});
