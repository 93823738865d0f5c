/** Lets administrators manage the invite links of a group or channel, and lets people join through a link. */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import {
  administeredChat,
  linkParam,
  linkSettingErrors,
  linkSettings,
  settingsOf,
  viewLink,
} from '../../actions/invite_links.js';
import { viewPicture } from '../../actions/pictures.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isInChat } from '../../rules/rights.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { callLimits } from '../../server/limits.js';
import { pageById } from '../../server/pages.js';
import type { InviteLinkRow } from '../../store/chats/invite_links.js';
import { sharedChat } from '../../store/core/keys.js';
import type { Store } from '../../store/store.js';
import { joinedByLink, linkPreview, listedLink, listedLinks } from '../../wire/chat_results.js';
import { appChatId, numberCursor, pageSize } from '../../wire/fields.js';
import { integer, optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/invite_links';

const refusals = ['chat_not_found', 'not_chat_member', 'invite_links_not_allowed'] as const;

const viewListed = async (store: Store, row: InviteLinkRow) => ({
  ...(await viewLink(store, row)),
  id: row.id,
  member_count: row.members,
});

export const listInviteLinks = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists a chat’s valid invite links, newest first. Revoked links are not included.',
  params: z.object({ chat_id: appChatId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: refusals,
  result: listedLinks,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const chat = await administeredChat(store, user, p.chat_id, 'invite_links_not_allowed');
    const found = await store.chats.links(chat, p.cursor ?? limits.id_max, limit + 1);
    return pageById(found, limit, (row) => viewListed(store, row));
  },
});

export const createInviteLink = defineEndpoint({
  verb: 'POST',
  path,
  summary: 'Creates an invite link for a group or channel.',
  params: z.object({ chat_id: appChatId, ...linkSettings }),
  errors: [...refusals, ...linkSettingErrors, 'too_many_invite_links'],
  result: listedLink,
  handler: async ({ user, store }, p) => {
    const settings = settingsOf(p);
    const chat = chatOfUser(user.id, p.chat_id);
    await store.unlessApplied(async () => {
      await administeredChat(store, user, p.chat_id, 'invite_links_not_allowed');
    });
    return viewListed(store, await store.chats.createLink(chat, user.id, settings));
  },
});

export const revokeInviteLink = defineEndpoint({
  verb: 'DELETE',
  path: `${path}/{link_id}`,
  summary: 'Revokes an invite link, so that nobody can join by it any more.',
  params: z.object({ chat_id: appChatId, link_id: integer().describe('`id` of the link') }),
  errors: [...refusals, 'invite_link_expired', 'too_many_invite_links'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    await store.unlessApplied(async () => {
      await administeredChat(store, user, p.chat_id, 'invite_links_not_allowed');
    });
    await store.chats.revokeLink(chat, user.id, { id: p.link_id });
  },
});

/** The link is sent in the body, because proxies log paths and queries. */
const params = z.object({ link: linkParam });

export const previewInviteLink = defineEndpoint({
  verb: 'POST',
  path: '/api/invite_links/preview',
  summary: 'Returns the chat to which an invite link leads.',
  params,
  errors: ['invite_link_empty', 'invite_link_expired', 'kicked_from_chat'],
  result: linkPreview,
  handler: async ({ user, store, files }, p) => {
    const link = (await store.chats.usableLink(p.link)) ?? fail('invite_link_expired');
    const chat = sharedChat(link.chat_id);
    const [found, { description, photo }, { status }, requested] = await Promise.all([
      store.chats.find(chat),
      store.chats.details(chat),
      store.chats.member(chat, user.id),
      store.chats.hasAsked(chat, user.id),
    ]);
    if (found === null) return fail('invite_link_expired');
    if (status === 'kicked') fail('kicked_from_chat');
    return {
      type: found.profile.t,
      title: found.profile.n,
      ...(description === '' ? {} : { description }),
      ...(photo.length > 0 ? { avatar: viewPicture(files, photo) } : {}),
      member_count: found.profile.m ?? 0,
      creates_join_request: link.creates_join_request,
      ...(requested ? { requested: true } : {}),
      ...(isInChat(status) ? { chat_id: chat.id } : {}),
    };
  },
});

export const joinByInviteLink = defineEndpoint({
  verb: 'POST',
  path: '/api/invite_links/join',
  summary:
    'Joins a group or channel by an invite link. If the link requires approval, sends a join request instead.',
  params,
  errors: [
    'invite_link_empty',
    'invite_link_expired',
    'kicked_from_chat',
    'too_many_chats',
    'too_many_join_requests',
  ],
  result: joinedByLink,
  handler: async ({ user, store }, p) => {
    // A join notifies administrators and adds a service message, so it counts as several calls.
    await store.fairUse?.more({ id: user.id, isBot: false }, callLimits.settings_call_weight - 1);
    const { status, chat_id } = await store.chats.joinByLink(p.link, user.id);
    return { status, ...(status === 'requested' ? {} : { chat_id }) };
  },
});

export const withdrawJoinRequest = defineEndpoint({
  verb: 'POST',
  path: '/api/invite_links/withdraw',
  summary: 'Withdraws a join request that the caller made by an invite link.',
  params,
  errors: ['invite_link_empty', 'invite_link_expired', 'join_request_not_found'],
  handler: ({ user, store }, p) => store.chats.withdrawRequest(p.link, user.id),
});
