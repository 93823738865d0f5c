import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { administeredChat } from '../../actions/invite_links.js';
import type { ErrorName } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { userProfile } from '../../store/chats/chats.js';
import type { Decision, JoinRequestRow } from '../../store/chats/invite_links.js';
import { viewStranger } from '../../view/users.js';
import { joinRequests } from '../../wire/chat_results.js';
import { appChatId, numberCursor, pageSize, userId } from '../../wire/fields.js';
import { optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/join_requests';

const refusals = ['chat_not_found', 'not_chat_member', 'join_requests_not_allowed'] as const;

export const listJoinRequests = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists the pending join requests of a group or channel, newest first.',
  params: z.object({ chat_id: appChatId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: refusals,
  result: joinRequests,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const chat = await administeredChat(store, user, p.chat_id, 'join_requests_not_allowed');
    const found = await store.chats.joinRequests(chat, p.cursor ?? limits.id_max, limit + 1);
    const view = async ({ user_id, date }: JoinRequestRow) => {
      const person = await store.users.find(user_id);
      return person && { user: viewStranger(userProfile(person)), date };
    };
    return pageById(found, limit, view);
  },
});

const defineDecisionEndpoint = (decision: Decision, summary: string, more: readonly ErrorName[] = []) =>
  defineEndpoint({
    verb: 'POST',
    path: `${path}/{user_id}/${decision}`,
    summary,
    params: z.object({ chat_id: appChatId, user_id: userId }),
    errors: [...refusals, 'user_not_found', 'already_participant', 'join_request_not_found', ...more],
    handler: async ({ user, store }, p) => {
      await store.unlessApplied(async () => {
        await administeredChat(store, user, p.chat_id, 'join_requests_not_allowed');
      });
      const chat = chatOfUser(user.id, p.chat_id);
      await store.chats.decideRequest(chat, user.id, p.user_id, decision, 'join_request_not_found');
    },
  });

export const approveJoinRequest = defineDecisionEndpoint(
  'approve',
  'Approves a join request. The person becomes a member.',
  ['too_many_chats'],
);

export const declineJoinRequest = defineDecisionEndpoint(
  'decline',
  'Declines a join request. The declined person may ask to join again.',
);
