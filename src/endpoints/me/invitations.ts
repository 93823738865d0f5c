/**
 * Lists, accepts and declines invitations to chats. Someone who may not add a person to a chat directly sends an
 * invitation instead.
 */
import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { userProfile } from '../../store/chats/chats.js';
import type { InvitationRow } from '../../store/chats/members.js';
import { sharedChat } from '../../store/core/keys.js';
import { viewStranger } from '../../view/users.js';
import { invitationPage } from '../../wire/chat_results.js';
import { appChatId, numberCursor, pageSize } from '../../wire/fields.js';
import { optional } from '../../wire/schema.js';

const path = '/api/me/invitations';

export const listInvitations = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists the open invitations to groups and channels that the caller has received, newest first.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: invitationPage,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const found = await store.chats.invitations(user.id, p.cursor ?? limits.id_max, limit + 1);
    const view = async ({ chat_id, type, title, username, member_count, by_id, date }: InvitationRow) => {
      const by = await store.users.find(by_id);
      return {
        chat: { id: chat_id, type, title, ...(username === null ? {} : { username }) },
        member_count,
        ...(by ? { from: viewStranger(userProfile(by)) } : {}),
        date,
      };
    };
    return pageById(found, limit, view);
  },
});

const params = z.object({ chat_id: appChatId });

export const acceptInvitation = defineEndpoint({
  verb: 'POST',
  path: `${path}/{chat_id}/accept`,
  summary: 'Accepts an invitation to a group or channel.',
  params,
  errors: ['invitation_not_found', 'too_many_chats'],
  handler: ({ user, store }, p) => store.chats.acceptInvitation(sharedChat(p.chat_id), user.id),
});

export const declineInvitation = defineEndpoint({
  verb: 'POST',
  path: `${path}/{chat_id}/decline`,
  summary: 'Declines an invitation. Nobody can invite the caller to this chat again.',
  params,
  errors: ['invitation_not_found'],
  handler: ({ user, store }, p) => store.chats.declineInvitation(sharedChat(p.chat_id), user.id),
});
