/** Contains the code shared by the methods with which bots moderate groups and channels. */
import { z } from 'zod';
import { type ErrorName, fail } from '../errors.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { formerMedia, permissionNames } from '../rules/permissions.js';
import type { ChatKind } from '../store/chats/chats.js';
import type { Profile } from '../store/core/codec.js';
import type { Bot } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import { chatId, integer, json, optional, boolean as yesOrNo } from '../wire/schema.js';
import { botChat, botChatErrors, profileOf } from './bot_chats.js';

export const memberParams = { chat_id: chatId, user_id: integer().describe('Id of a person or a bot') };

export const memberErrors = [
  ...botChatErrors,
  'chat_member_not_found',
  'cant_remove_owner',
] as const satisfies readonly ErrorName[];

export const untilDate = optional(integer()).describe(
  'Unix time in seconds. Less than 30 seconds or more than 366 days from now means forever',
);

export const chatPermissions = json(
  z.object(Object.fromEntries([...permissionNames, formerMedia].map((name) => [name, optional(yesOrNo)])), {
    error: 'an object of permissions',
  }),
).describe('Absent permissions are denied');

/** Returns the time at which a ban or restriction ends, or null if it never ends. `now` is the Unix time in seconds. */
export function endOf(until: number | undefined, now: number): number | null {
  const seconds = (until ?? 0) - now;
  return seconds < limits.restriction_s_min || seconds > limits.restriction_s_max ? null : (until as number);
}

/**
 * Returns the profile of an account that was never in the chat. Returns null for an unknown account, and for a person
 * who shares no other chat with the caller.
 */
export async function outsider(
  store: Store,
  bot: number,
  chat: ChatRef | null,
  id: number,
): Promise<Profile | null> {
  const found = await profileOf(store, id);
  if (found === null || found.bot === 1) return found;
  return (await store.chats.acquaintances(bot, chat, [id])).has(id) ? found : null;
}

/**
 * Returns the chat that a call names, the calling bot, and the member whom the call is about. `direct` is the error for
 * a direct chat. Errors: `chat_not_found`, `not_group_member`, `not_channel_member`, `chat_member_not_found`.
 */
export async function moderated(
  { bot, store }: { readonly bot: Bot; readonly store: Store },
  p: { readonly chat_id: number | string; readonly user_id: number },
  direct: ErrorName,
) {
  const { chat, found } = await botChat(store, bot, p.chat_id);
  if (isDirect(chat)) fail(direct);
  const present = await store.chats.member(chat, p.user_id);
  const is_bot =
    present.status === 'none'
      ? ((await outsider(store, bot.id, chat, p.user_id)) ?? fail('chat_member_not_found')).bot === 1
      : present.isBot;
  const kind: ChatKind = found.kind;
  return { chat, kind, by: { id: bot.id, is_bot: true }, member: { id: p.user_id, is_bot } };
}
