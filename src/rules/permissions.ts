/**
 * The default permissions. Only administrators may pin messages, unless an administrator permits members to pin
 * (interface §5.11).
 */
const defaults = {
  can_send_messages: true,
  can_send_audios: true,
  can_send_documents: true,
  can_send_photos: true,
  can_send_videos: true,
  can_send_video_notes: true,
  can_send_voice_notes: true,
  can_send_polls: true,
  can_send_other_messages: true,
  can_add_web_page_previews: true,
  can_react_to_messages: true,
  can_edit_tag: false,
  can_change_info: false,
  can_invite_users: false,
  can_pin_messages: false,
  can_manage_topics: false,
} as const;

export type PermissionName = keyof typeof defaults;
/** An old permission for all kinds of files. Older libraries still send it. */
export const formerMedia = 'can_send_media_messages';
export type Permissions = Readonly<Partial<Record<PermissionName | typeof formerMedia, boolean>>>;
export const permissionNames = Object.keys(defaults) as readonly PermissionName[];

const media = [
  'can_send_audios',
  'can_send_documents',
  'can_send_photos',
  'can_send_videos',
  'can_send_video_notes',
  'can_send_voice_notes',
] as const;

/**
 * Returns all permissions. Absent permissions become false. If `independent` is false, the rules of the Bot API apply:
 * the permission to send polls includes texts, and the permission to send stickers or previews includes texts and
 * files.
 */
export function fullPermissions(given: Permissions, independent: boolean): Record<PermissionName, boolean> {
  const all = Object.fromEntries(permissionNames.map((name) => [name, given[name] === true]));
  if (given[formerMedia] === true) for (const name of media) all[name] = true;
  if (!independent) {
    if (all.can_send_other_messages || all.can_add_web_page_previews)
      for (const name of ['can_send_messages', ...media]) all[name] = true;
    if (all.can_send_polls || given[formerMedia] === true) all.can_send_messages = true;
  }
  return all as Record<PermissionName, boolean>;
}

/**
 * Returns the names of the permissions that differ from the default, separated by commas. This text is stored in the
 * chat.
 */
export const packPermissions = (permissions: Record<PermissionName, boolean>): string =>
  permissionNames.filter((name) => permissions[name] !== defaults[name]).join(',');

export function unpackPermissions(differing: string): Record<PermissionName, boolean> {
  const names = new Set(differing.split(','));
  return Object.fromEntries(
    permissionNames.map((name) => [name, defaults[name] !== names.has(name)]),
  ) as Record<PermissionName, boolean>;
}

/**
 * Returns whether a member has a permission. The creator has all permissions. An administrator has the permission only
 * with the right of the same name. `differing` contains the chat's permissions that differ from the defaults.
 */
export function isPermitted(
  { status, rights }: { readonly status: string; readonly rights: Readonly<Record<string, boolean>> },
  differing: string,
  name: 'can_change_info' | 'can_invite_users' | 'can_pin_messages',
): boolean {
  if (status === 'creator') return true;
  if (status === 'administrator') return rights[name] === true;
  if (status !== 'member' && status !== 'restricted') return false;
  return unpackPermissions(differing)[name] && (status === 'member' || rights[name] === true);
}
