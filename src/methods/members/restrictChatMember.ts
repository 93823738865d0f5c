import { z } from 'zod';
import {
  chatPermissions,
  endOf,
  memberErrors,
  memberParams,
  moderated,
  untilDate,
} from '../../actions/moderation.js';
import { fail } from '../../errors.js';
import { formerMedia, fullPermissions, type Permissions, permissionNames } from '../../rules/permissions.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

const former = optional(boolean).describe('Former parameter, has an effect only without `permissions`');

const formerParams = {
  can_send_messages: former,
  [formerMedia]: former,
  can_send_other_messages: former,
  can_add_web_page_previews: former,
};

/**
 * Returns the permissions that older libraries send as separate parameters. These libraries cannot send a permission
 * for polls. If a call grants all other permissions, it is meant to lift the restrictions, so polls are permitted too.
 */
function formerPermissions(
  given: { readonly [name in keyof typeof formerParams]?: boolean | undefined },
): Permissions {
  const names = Object.keys(formerParams) as (keyof typeof formerParams)[];
  const granted = names.map((name) => [name, given[name] === true]);
  return { ...Object.fromEntries(granted), can_send_polls: names.every((name) => given[name] === true) };
}

/** Restricts a member of a group. A call that grants all permissions lifts the restrictions. */
export const restrictChatMember = defineMethod({
  name: 'restrictChatMember',
  effect: 'configure',
  summary: 'Limits the permissions of a group member.',
  params: z.object({
    ...memberParams,
    permissions: optional(chatPermissions).describe('Absent permissions are denied'),
    ...formerParams,
    use_independent_chat_permissions: optional(boolean),
    until_date: untilDate,
  }),
  errors: [...memberErrors, 'groups_only', 'cant_restrict', 'cant_restrict_self', 'member_is_administrator'],
  result: done,
  handler: async (context, p) => {
    const { chat, kind, by, member } = await moderated(context, p, 'groups_only');
    if (kind !== 'group') fail('groups_only');
    const rights = fullPermissions(
      p.permissions ?? formerPermissions(p),
      p.use_independent_chat_permissions === true,
    );
    const lifted = permissionNames.every((name) => rights[name] || !liftable.has(name));
    await context.store.chats.restrict(
      chat,
      by,
      member,
      lifted ? null : rights,
      endOf(p.until_date, context.store.time.nowSeconds()),
    );
    return true;
  },
});

/**
 * The permissions that older libraries send. A call that grants all of them lifts all restrictions, and so also grants
 * the permissions that older libraries do not send.
 */
const liftable = new Set(
  permissionNames.filter((name) => name.startsWith('can_send_') || name === 'can_add_web_page_previews'),
);
