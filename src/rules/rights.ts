/** Rights of administrators (behaviour §3). */

export const rightNames = [
  'can_pin_messages',
  'can_edit_messages',
  'can_post_messages',
  'can_delete_messages',
  'can_invite_users',
] as const;
export type RightName = (typeof rightNames)[number];

/** Further administrator flags that client libraries read. */
export const otherFlags = [
  'can_be_edited',
  'can_manage_chat',
  'can_manage_video_chats',
  'can_restrict_members',
  'can_promote_members',
  'can_change_info',
  'can_post_stories',
  'can_edit_stories',
  'can_delete_stories',
] as const;

const allRights = Object.fromEntries(rightNames.map((name) => [name, true]));

/** A member's rights: all for the creator, the granted ones for an administrator, none for others. */
export function rightsOf(
  status: string,
  rights: Readonly<Record<string, boolean>>,
): Readonly<Record<string, boolean>> {
  if (status === 'creator') return allRights;
  return status === 'administrator' ? rights : {};
}

/** Whether a person with this status is a member of the chat. */
export const isInChat = (status: string): boolean =>
  status === 'creator' || status === 'administrator' || status === 'member';
