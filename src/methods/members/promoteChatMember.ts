import { z } from 'zod';
import { memberErrors, memberParams, moderated } from '../../actions/moderation.js';
import { rightNames } from '../../rules/rights.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

const right = optional(boolean);
const noFeature = right.describe('Has no effect, because Petrel does not have this feature');

/**
 * Sets an administrator's rights. Without any right and without `can_manage_chat`, the administrator becomes an
 * ordinary member.
 */
export const promoteChatMember = defineMethod({
  name: 'promoteChatMember',
  effect: 'configure',
  summary:
    'Makes a member an administrator with the given rights. If the call gives no rights, an administrator becomes an ordinary member.',
  params: z.object({
    ...memberParams,
    is_anonymous: optional(
      boolean.pipe(z.literal(false, { error: 'false: administrators are not anonymous' })),
    ),
    can_manage_chat: right,
    ...Object.fromEntries(rightNames.map((name) => [name, right])),
    can_manage_video_chats: noFeature,
    can_post_stories: noFeature,
    can_edit_stories: noFeature,
    can_delete_stories: noFeature,
    can_manage_topics: noFeature,
    can_manage_direct_messages: noFeature,
    can_manage_tags: noFeature,
    can_send_welcome_messages: noFeature,
  }),
  errors: [
    ...memberErrors,
    'private_chat_members',
    'not_enough_rights',
    'right_forbidden',
    'cant_promote_self',
    'not_participant',
    'too_many_administrators',
  ],
  result: done,
  handler: async (context, p) => {
    const { chat, by, member } = await moderated(context, p, 'private_chat_members');
    const given = p as Readonly<Record<string, unknown>>;
    const rights = Object.fromEntries(rightNames.map((name) => [name, given[name] === true]));
    const any = p.can_manage_chat === true || Object.values(rights).includes(true);
    await context.store.chats.promote(chat, by, member, any ? rights : null);
    return true;
  },
});
