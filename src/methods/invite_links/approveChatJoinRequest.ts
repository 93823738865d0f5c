import { z } from 'zod';
import { botChatErrors } from '../../actions/bot_chats.js';
import { deciding, invitingChat } from '../../actions/invite_links.js';
import { memberParams } from '../../actions/moderation.js';
import type { ErrorName } from '../../errors.js';
import { defineMethod, type Method } from '../../server/method.js';
import type { Decision } from '../../store/chats/invite_links.js';
import { done } from '../../wire/results.js';

/** Defines the method `approveChatJoinRequest` or `declineChatJoinRequest`. */
export const decisionMethod = ({
  name,
  summary,
  decision,
  errors = [],
}: {
  readonly name: string;
  readonly summary: string;
  readonly decision: Decision;
  readonly errors?: readonly ErrorName[];
}): Method =>
  defineMethod({
    name,
    effect: 'configure',
    summary,
    params: z.object(memberParams),
    errors: [...botChatErrors, ...deciding, 'already_participant', 'join_request_missing', ...errors],
    result: done,
    handler: async ({ bot, store }, p) => {
      const chat = await invitingChat(store, bot, p.chat_id, deciding);
      await store.chats.decideRequest(chat, bot.id, p.user_id, decision, 'join_request_missing');
      return true;
    },
  });

export const approveChatJoinRequest: Method = decisionMethod({
  name: 'approveChatJoinRequest',
  summary: 'Approves a request to join a group or channel.',
  decision: 'approve',
  errors: ['too_many_chats'],
});
