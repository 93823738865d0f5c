/** Builds the objects that describe bots to their owners and to other people. */

import type { MenuButton } from '../rules/menu_button.js';
import type { AuditRow } from '../store/access/audit.js';
import type { WriteAccess } from '../store/access/write_access.js';
import type { OfferRow } from '../store/bots/transfers.js';
import type { Profile } from '../store/core/codec.js';
import type { Bot, Commands, DefaultRights, Descriptions } from '../store/core/control.js';

export const viewBot = (profile: Profile) => ({
  id: profile.id,
  is_bot: true,
  username: profile.u,
  name: profile.n,
});

export const viewOwnBot = (
  profile: Profile,
  bot: Bot,
  descriptions: Descriptions,
  access: WriteAccess,
  pictures: object,
) => ({
  ...viewBot(profile),
  ...pictures,
  texts: {
    name: bot.names,
    description: descriptions.description,
    short_description: descriptions.shortDescription,
  },
  write_access: {
    policy: access.policy,
    ...(access.policy === 'selected' ? { usernames: access.usernames } : {}),
  },
  ...(bot.inline === undefined ? {} : { inline_mode: bot.inline }),
});

/** Omits `can_manage_chat`, because every administrator has this right. */
const rightsIn = (asked: DefaultRights): DefaultRights =>
  Object.fromEntries(
    Object.entries(asked).map(([type, names]) => [
      type,
      names.filter((name: string) => name !== 'can_manage_chat'),
    ]),
  );

export const viewBotPage = (
  profile: Profile,
  texts: { readonly description: string; readonly shortDescription: string },
  pictures: object,
  offers: {
    readonly commands: Commands[string];
    readonly menuButton: MenuButton | null;
    readonly defaultRights: DefaultRights;
  },
  canWrite: boolean,
) => ({
  id: profile.id,
  username: profile.u,
  name: profile.n,
  description: texts.description,
  short_description: texts.shortDescription,
  ...pictures,
  ...(offers.commands.length === 0 ? {} : { commands: offers.commands }),
  ...(offers.menuButton?.type === 'web_app' ? { menu_button: offers.menuButton } : {}),
  ...(Object.keys(offers.defaultRights).length === 0
    ? {}
    : { administrator_rights: rightsIn(offers.defaultRights) }),
  can_write: canWrite,
});

/**
 * Builds a pending offer to transfer a bot. Such offers exist only on installations where the new owner must accept a
 * transfer.
 */
export const viewTransfer = ({ bot_id, bot_username, from_id, to_id, expires_at }: OfferRow) => ({
  bot_id,
  bot_username,
  from_id,
  to_id,
  expires_at,
});

export const viewAudit = ({ id, event, actor_type, actor_id, details, at }: AuditRow) => ({
  id,
  event,
  actor: { type: actor_type, ...(actor_id === null ? {} : { id: actor_id }) },
  details,
  at,
});
