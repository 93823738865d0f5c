import { z } from 'zod';
import { endOf, memberErrors, memberParams, moderated, untilDate } from '../../actions/moderation.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

/** Bans a person, who can then no longer join. Only members who may restrict members can add the person again. */
export const banChatMember = defineMethod({
  name: 'banChatMember',
  effect: 'configure',
  summary:
    'Removes a person or bot from a group or channel. A banned person or bot cannot join again until the ban ends.',
  params: z.object({
    ...memberParams,
    until_date: untilDate,
    revoke_messages: optional(boolean).describe(
      'Has no effect, because removed people no longer see the chat',
    ),
  }),
  errors: [
    ...memberErrors,
    'private_chat_ban',
    'cant_restrict',
    'cant_restrict_self',
    'member_is_administrator',
    'too_many_banned',
  ],
  result: done,
  handler: async (context, p) => {
    const { chat, by, member } = await moderated(context, p, 'private_chat_ban');
    await context.store.chats.ban(chat, by, member, endOf(p.until_date, context.store.time.nowSeconds()));
    return true;
  },
});
