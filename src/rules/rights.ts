/** Defines the rights of administrators (behaviour §3). */

export const rightNames = [
  'can_pin_messages',
  'can_edit_messages',
  'can_post_messages',
  'can_delete_messages',
  'can_invite_users',
  'can_change_info',
  'can_restrict_members',
  'can_promote_members',
] as const;
type RightName = (typeof rightNames)[number];

export const otherFlags = [
  'can_be_edited',
  'can_manage_chat',
  'can_manage_video_chats',
  'can_post_stories',
  'can_edit_stories',
  'can_delete_stories',
  'can_send_welcome_messages',
] as const;

const allRights = Object.fromEntries(rightNames.map((name) => [name, true]));

export function rightsOf(
  status: string,
  rights: Readonly<Record<string, boolean>>,
): Readonly<Record<string, boolean>> {
  if (status === 'creator') return allRights;
  return status === 'administrator' ? rights : {};
}

export const hasRight = (
  { status, rights }: { readonly status: string; readonly rights: Readonly<Record<string, boolean>> },
  right: RightName,
): boolean => rightsOf(status, rights)[right] === true;

export const isInChat = (status: string): boolean =>
  status === 'creator' || status === 'administrator' || status === 'member' || status === 'restricted';
