/** Chat members as client libraries expect them. */
import type { Profile } from '../store/core/codec.js';
import { viewStranger, viewUser } from './users.js';

/** Flags that libraries read, although no administrator has them here. */
const notHere = {
  can_be_edited: false,
  is_anonymous: false,
  can_manage_video_chats: false,
  can_restrict_members: false,
  can_promote_members: false,
  can_change_info: false,
  can_post_stories: false,
  can_edit_stories: false,
  can_delete_stories: false,
};

/** A ChatMember: `status` and the fields that belong to it. */
export function viewMember(
  profile: Profile,
  { status, rights }: { readonly status: string; readonly rights: Readonly<Record<string, boolean>> },
  type: 'group' | 'channel' | undefined,
): Readonly<Record<string, unknown>> {
  const user = viewUser(profile);
  const may = (name: string) => rights[name] === true;
  switch (status) {
    case 'creator':
      return { user, status, is_anonymous: false };
    case 'administrator':
      return {
        ...{ user, status, ...notHere, can_manage_chat: true },
        can_delete_messages: may('can_delete_messages'),
        can_invite_users: may('can_invite_users'),
        can_edit_messages: may('can_edit_messages'),
        ...(type === 'channel'
          ? { can_post_messages: may('can_post_messages') }
          : { can_pin_messages: may('can_pin_messages') }),
      };
    case 'kicked':
      return { user: viewStranger(profile), status, until_date: 0 };
    // Someone who was never in the chat is shown like someone who left.
    case 'member':
      return { user, status };
    default:
      return { user: viewStranger(profile), status: 'left' };
  }
}
