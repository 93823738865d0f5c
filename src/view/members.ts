/** Builds chat members in the form that client libraries expect. */
import { permissionNames } from '../rules/permissions.js';
import type { Profile } from '../store/core/codec.js';
import { viewStranger, viewUser } from './users.js';

interface MemberState {
  readonly status: string;
  readonly rights: Readonly<Record<string, boolean>>;
  readonly until_date?: number | null;
  readonly custom_title?: string | null;
  readonly promoted_by?: number | null;
}

const permissionsOf = (may: (name: string) => boolean) =>
  Object.fromEntries(permissionNames.map((name) => [name, may(name)]));

/** The flags that libraries expect but that no administrator in Petrel has. */
const notHere = {
  is_anonymous: false,
  can_manage_video_chats: false,
  can_post_stories: false,
  can_edit_stories: false,
  can_delete_stories: false,
  can_send_welcome_messages: false,
};

export function viewRights(
  rights: Readonly<Record<string, boolean>>,
  type: Profile['t'],
): Readonly<Record<string, boolean>> {
  const may = (name: string) => rights[name] === true;
  return {
    ...notHere,
    can_manage_chat: Object.values(rights).includes(true),
    can_delete_messages: may('can_delete_messages'),
    can_invite_users: may('can_invite_users'),
    can_edit_messages: may('can_edit_messages'),
    can_restrict_members: may('can_restrict_members'),
    can_promote_members: may('can_promote_members'),
    can_change_info: may('can_change_info'),
    ...(type === 'channel'
      ? { can_post_messages: may('can_post_messages') }
      : { can_pin_messages: may('can_pin_messages') }),
  };
}

/**
 * Builds a `ChatMember`: `status` and the fields for this status. `viewer` is the bot that gets the object. A bot can
 * edit only the administrators that it promoted.
 */
export function viewMember(
  profile: Profile,
  { status, rights, until_date, custom_title, promoted_by }: MemberState,
  type: Profile['t'],
  viewer = 0,
): Readonly<Record<string, unknown>> {
  const user = viewUser(profile);
  const may = (name: string) => rights[name] === true;
  const until = { until_date: until_date ?? 0 };
  switch (status) {
    case 'creator':
      return { user, status, is_anonymous: false };
    case 'administrator':
      return {
        user,
        status,
        ...viewRights(rights, type),
        can_manage_chat: true,
        can_be_edited: viewer !== 0 && promoted_by === viewer,
        ...(custom_title ? { custom_title } : {}),
      };
    case 'restricted':
      return { user, status, is_member: true, ...permissionsOf(may), ...until };
    case 'kicked':
      return { user: viewStranger(profile), status, ...until };
    case 'member':
      return { user, status };
    default:
      // A person who left keeps their restrictions. Without restrictions, a former member looks the same as a person
      // who was never in the chat.
      return Object.keys(rights).length > 0
        ? {
            user: viewStranger(profile),
            ...{ status: 'restricted', is_member: false, ...permissionsOf(may), ...until },
          }
        : { user: viewStranger(profile), status: 'left' };
  }
}
