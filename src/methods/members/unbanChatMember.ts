import { z } from 'zod';
import { memberErrors, memberParams, moderated } from '../../actions/moderation.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

/**
 * Ends a ban. Without `only_if_banned`, also removes a current member. In both cases, the person or bot may join again.
 */
export const unbanChatMember = defineMethod({
  name: 'unbanChatMember',
  effect: 'configure',
  summary: 'Lets a banned person or bot join again, but does not add the person or bot to the chat.',
  params: z.object({
    ...memberParams,
    only_if_banned: optional(boolean).describe('If true, a member who is not banned stays in the chat'),
  }),
  errors: [
    ...memberErrors,
    'shared_chats_only',
    'cant_restrict',
    'cant_restrict_self',
    'member_is_administrator',
  ],
  result: done,
  handler: async (context, p) => {
    const { chat, by, member } = await moderated(context, p, 'shared_chats_only');
    await context.store.chats.unban(chat, by, member, p.only_if_banned === true);
    return true;
  },
});
