import { z } from 'zod';
import { botChatErrors } from '../../actions/bot_chats.js';
import { deciding, invitingChat } from '../../actions/invite_links.js';
import { memberParams } from '../../actions/moderation.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

export const approveChatJoinRequest = defineMethod({
  name: 'approveChatJoinRequest',
  effect: 'configure',
  summary: 'Approves a request to join a group or channel.',
  params: z.object(memberParams),
  errors: [
    ...botChatErrors,
    'private_chat_requests',
    'join_requests_not_allowed',
    'already_participant',
    'join_request_missing',
    'too_many_chats',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    const chat = await invitingChat(store, bot, p.chat_id, deciding);
    await store.chats.approveRequest(chat, bot.id, p.user_id);
    return true;
  },
});
