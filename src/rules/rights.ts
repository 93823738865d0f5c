/** Rights of administrators (behaviour §3). */

export const rightNames = [
  'can_pin_messages',
  'can_edit_messages',
  'can_post_messages',
  'can_delete_messages',
  'can_invite_users',
] as const;
export type RightName = (typeof rightNames)[number];

/** What client libraries read besides of an administrator. */
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

/** What a member may do: the creator everything, an administrator what was given, others nothing. */
export function rightsOf(
  status: string,
  rights: Readonly<Record<string, boolean>>,
): Readonly<Record<string, boolean>> {
  if (status === 'creator') return allRights;
  return status === 'administrator' ? rights : {};
}

/** Whether someone of this status is in the chat. */
export const isInChat = (status: string): boolean =>
  status === 'creator' || status === 'administrator' || status === 'member';
