/** Contains code that several calls about invite links and join requests share. */
import { z } from 'zod';
import { type ErrorName, fail } from '../errors.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { hasRight } from '../rules/rights.js';
import { isLongerThan } from '../rules/text.js';
import { codeOf, type InviteLinkRow, type LinkSettings } from '../store/chats/invite_links.js';
import type { ShownLink } from '../store/chats/members.js';
import type { Bot, User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import { viewInviteLink } from '../view/invite_links.js';
import { answer, boolean, integer, optional } from '../wire/schema.js';
import { botChat, botChatErrors, profileOf } from './bot_chats.js';
import { readableChat } from './reading.js';

export const linkSettings = {
  name: optional(
    z
      .string({ error: 'a string' })
      .transform((name) => name.trim())
      .refine((name) => !isLongerThan(name, limits.invite_link_name_length_max), {
        error: answer('link_name_too_long'),
      }),
  ).describe(`Up to ${limits.invite_link_name_length_max} characters. Members do not see it`),
  expire_date: optional(
    integer()
      .pipe(z.number())
      .refine((date) => date >= 0 && date < limits.id_max, { error: answer('link_expiry_invalid') }),
  ).describe('Unix time in seconds'),
  member_limit: optional(
    integer()
      .pipe(z.number())
      .refine((limit) => limit >= 0 && limit <= limits.invite_link_members_max, {
        error: answer('member_limit_invalid'),
      }),
  ).describe(
    `How many members who joined by the link the chat may have at a time, 1 to ${limits.invite_link_members_max}`,
  ),
  creates_join_request: optional(boolean).describe(
    'Administrators decide on each person. Not together with `member_limit`',
  ),
};

export const linkSettingErrors = [
  'link_name_too_long',
  'link_expiry_invalid',
  'member_limit_invalid',
  'member_limit_with_requests',
] as const satisfies readonly ErrorName[];

interface GivenSettings {
  readonly name?: string | undefined;
  readonly expire_date?: number | undefined;
  readonly member_limit?: number | undefined;
  readonly creates_join_request?: boolean | undefined;
}

/**
 * Parses the settings of an invite link. As in the reference server, zero means no expiry or no member limit. Error:
 * `member_limit_with_requests`.
 */
export function settingsOf({
  name,
  expire_date,
  member_limit,
  creates_join_request,
}: GivenSettings): LinkSettings {
  if (creates_join_request && member_limit) fail('member_limit_with_requests');
  return {
    name: name || null,
    expire_date: expire_date || null,
    member_limit: member_limit || null,
    creates_join_request: creates_join_request === true,
  };
}

/** Accepts an invite link. Errors: `invite_link_empty`, and `invite_link_expired` for a text that is too long. */
export const linkParam = z
  .string({ error: ({ input }) => (input === undefined ? answer('invite_link_empty') : 'a string') })
  .refine((link) => link !== '', { error: answer('invite_link_empty') })
  .refine((link) => link.length <= limits.media_url_length_max, { error: answer('invite_link_expired') })
  .transform(codeOf)
  .describe('An invite link, or its code');

export const manageErrors = [
  ...botChatErrors,
  'private_chat_links',
  'invite_links_not_allowed',
] as const satisfies readonly ErrorName[];

/**
 * Returns the group or channel that a bot's call names, after checking that the bot may invite. The right is checked
 * again when the change is made. Errors: those of `botChat`, `direct` for a direct chat, `refusal` if the bot lacks the
 * right.
 */
export async function invitingChat(
  store: Store,
  bot: Bot,
  chatId: number | string,
  [direct, refusal]: readonly [ErrorName, ErrorName],
): Promise<ChatRef> {
  const { chat } = await botChat(store, bot, chatId);
  if (isDirect(chat)) fail(direct);
  if (!hasRight(await store.chats.member(chat, bot.id), 'can_invite_users')) fail(refusal);
  return chat;
}

export const managing = ['private_chat_links', 'invite_links_not_allowed'] as const;
export const deciding = ['private_chat_requests', 'join_requests_not_allowed'] as const;

async function shownLink(store: Store, row: InviteLinkRow): Promise<ShownLink> {
  const creator = (await profileOf(store, row.creator_id)) ?? { id: row.creator_id, n: '' };
  return { ...row, url: store.chats.inviteUrl(row.code), creator };
}

export const viewLink = async (store: Store, row: InviteLinkRow) =>
  viewInviteLink(await shownLink(store, row), row.creator_id);

/**
 * Returns the group or channel that a person's call names, after checking that the person is an administrator who may
 * invite. The right is checked again when the change is made. Errors: `chat_not_found`, `not_chat_member`, `refusal` if
 * the person lacks the right.
 */
export async function administeredChat(
  store: Store,
  user: User,
  chatId: number,
  refusal: ErrorName,
): Promise<ChatRef> {
  const chat = await readableChat(store, user, chatId);
  if (isDirect(chat)) fail('chat_not_found');
  if (!hasRight(await store.chats.member(chat, user.id), 'can_invite_users')) fail(refusal);
  return chat;
}
