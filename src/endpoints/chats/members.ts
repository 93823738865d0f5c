/** Lists, adds, changes and removes members of groups and channels (behaviour §3, §11). */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { viewAvatar } from '../../actions/pictures.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isPermitted } from '../../rules/permissions.js';
import { hasRight, rightNames, rightsOf } from '../../rules/rights.js';
import { defineEndpoint, type EndpointContext } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import { type MemberRow, userProfile } from '../../store/chats/chats.js';
import type { User } from '../../store/core/control.js';
import { isDirect } from '../../store/core/keys.js';
import { botProfile } from '../../store/core/profiles.js';
import type { Store } from '../../store/store.js';
import { viewPerson, viewStranger } from '../../view/users.js';
import { appChatId, numberCursor, pageSize, userId } from '../../wire/fields.js';
import { chatMember, pageOf } from '../../wire/results.js';
import { json, optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/members';
const rights = z.partialRecord(z.enum(rightNames), z.boolean(), { error: 'an object of booleans' });

async function personProfile(store: Store, id: number) {
  const user = await store.users.find(id);
  return user && userProfile(user);
}

/** Returns a member, and the avatar if the member is a person. The member is null if the account was deleted. */
async function shownMember(
  { store, files, user: reader }: EndpointContext<User>,
  { member_id, is_bot }: MemberRow,
) {
  if (is_bot) {
    const bot = await store.bots.profile(member_id, reader.languageCode);
    return { user: bot && viewPerson(bot) };
  }
  const found = await store.users.find(member_id);
  return found === null
    ? { user: null }
    : { user: viewPerson(userProfile(found)), ...viewAvatar(files, found) };
}

/** Returns the caller's rights in a chat. Throws `chat_not_found` or `not_chat_member`. */
async function ownRights(store: Store, user: User, chatId: number) {
  const chat = await readableChat(store, user, chatId);
  if (isDirect(chat)) fail('chat_not_found');
  const [own, { permissions }] = await Promise.all([
    store.chats.member(chat, user.id),
    store.chats.details(chat),
  ]);
  return {
    creator: own.status === 'creator',
    mayAdd: isPermitted(own, permissions, 'can_invite_users'),
    mayRestrict: hasRight(own, 'can_restrict_members'),
  };
}

export const listMembers = defineEndpoint({
  verb: 'GET',
  path,
  summary:
    'Lists the members of a group or channel, sorted by id. Only administrators see the subscribers of a channel.',
  params: z.object({ chat_id: appChatId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['chat_not_found', 'not_chat_member', 'not_enough_rights'],
  result: pageOf(chatMember),
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = await readableChat(store, user, p.chat_id);
    if (isDirect(chat)) fail('chat_not_found');
    const limit = p.limit ?? limits.page_size_default;
    const [found, own] = await Promise.all([store.chats.find(chat), store.chats.member(chat, user.id)]);
    // A subscriber of a channel cannot see other subscribers.
    if (found?.kind !== 'group' && !['creator', 'administrator'].includes(own.status))
      fail('not_enough_rights');
    const view = async (row: MemberRow) => ({
      ...(await shownMember(context, row)),
      status: row.status,
      rights: rightsOf(row.status, row.rights),
    });
    const rows = await store.chats.members(chat, p.cursor ?? 0, limit + 1);
    return pageOfRows(rows, limit, view, ({ member_id }) => String(member_id));
  },
});

export const putMember = defineEndpoint({
  verb: 'PUT',
  path: `${path}/{member_id}`,
  summary:
    'Adds a person or bot to a group or channel, or changes a member’s rights. If a person does not allow the caller to add them, the call sends the person an invitation instead.',
  params: z.object({
    chat_id: appChatId,
    member_id: userId,
    status: optional(
      z.enum(['administrator', 'member'], { error: 'one of: administrator, member' }),
    ).describe('New status of the member; `member` if absent. Required if `rights` is given'),
    rights: optional(json(rights)),
  }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'not_enough_rights',
    'user_not_found',
    'cant_add_person',
    'invitation_declined',
    'person_banned',
    'too_many_invitations',
    'too_many_chat_bots',
    'too_many_administrators',
    'too_many_chats',
  ],
  result: chatMember,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    // An absent status means `member`. A call with rights but without a status is refused, because it would turn an
    // administrator into an ordinary member.
    if (p.status === undefined && p.rights !== undefined) fail('parameter_required', { name: 'status' });
    const status = p.status ?? 'member';
    await store.unlessApplied(async () => {
      const { creator, mayAdd, mayRestrict } = await ownRights(store, user, p.chat_id);
      const present = await store.chats.member(chat, p.member_id);
      if (!mayAdd || present.status === 'creator') fail('not_enough_rights');
      if (!mayRestrict && present.status === 'restricted') fail('not_enough_rights');
      if (!creator && (status === 'administrator' || present.status === 'administrator'))
        fail('not_enough_rights');
    });
    const bot = await store.bots.find(p.member_id);
    const profile = bot ? botProfile(bot, user.languageCode) : await personProfile(store, p.member_id);
    if (!profile) return fail('user_not_found');
    const rights = status === 'administrator' ? (p.rights ?? {}) : {};
    const row = bot
      ? await store.chats.putMember(chat, { id: p.member_id, is_bot: true }, status, rights, user.id)
      : await store.chats.addPerson(chat, p.member_id, status, rights, user.id);
    if (row === null) return { user: viewStranger(profile), status: 'invited', rights: {} };
    return { user: viewPerson(profile), status: row.status, rights: row.rights };
  },
});

export const removeMember = defineEndpoint({
  verb: 'DELETE',
  path: `${path}/{member_id}`,
  summary:
    'Removes a member from a group or channel. Removed members can return only if somebody adds them again.',
  params: z.object({ chat_id: appChatId, member_id: userId }),
  errors: ['chat_not_found', 'not_chat_member', 'not_enough_rights', 'user_not_found', 'too_many_banned'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    await store.unlessApplied(async () => {
      const { creator, mayRestrict } = await ownRights(store, user, p.chat_id);
      if (!mayRestrict) fail('not_enough_rights');
      const { status } = await store.chats.member(chat, p.member_id);
      if (!['administrator', 'member', 'restricted'].includes(status))
        fail(status === 'creator' ? 'not_enough_rights' : 'user_not_found');
      if (!creator && status === 'administrator') fail('not_enough_rights');
    });
    const { isBot } = await store.chats.member(chat, p.member_id);
    await store.chats.putMember(chat, { id: p.member_id, is_bot: isBot }, 'kicked', {}, user.id);
  },
});
