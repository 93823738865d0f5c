/** Bots as the API shows them to their owners and to other people. */

import type { AuditRow } from '../store/access/audit.js';
import type { WriteAccess } from '../store/access/write_access.js';
import type { OfferRow } from '../store/bots/transfers.js';
import type { Profile } from '../store/core/codec.js';
import type { Bot, Commands, Descriptions } from '../store/core/control.js';

/** A bot in its owner's list, named in the owner's language. */
export const viewBot = (profile: Profile) => ({
  id: profile.id,
  is_bot: true,
  username: profile.u,
  name: profile.n,
});

/** A bot with its settings, for its owner: pictures, and texts by language, `""` for the default. */
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
});

/** A bot's public page, in the viewer's language (interface §2). */
export const viewBotPage = (
  profile: Profile,
  texts: { readonly description: string; readonly shortDescription: string },
  pictures: object,
  commands: Commands[string],
  canWrite: boolean,
) => ({
  id: profile.id,
  username: profile.u,
  name: profile.n,
  description: texts.description,
  short_description: texts.shortDescription,
  ...pictures,
  ...(commands.length === 0 ? {} : { commands }),
  can_write: canWrite,
});

/** A pending offer to transfer a bot, used where transfers need consent. */
export const viewTransfer = ({ bot_id, bot_username, from_id, to_id, expires_at }: OfferRow) => ({
  ...{ bot_id, bot_username, from_id, to_id, expires_at },
});

/** An event of the audit log (behaviour §14). */
export const viewAudit = ({ id, event, actor_type, actor_id, details, at }: AuditRow) => ({
  id,
  event,
  actor: { type: actor_type, ...(actor_id === null ? {} : { id: actor_id }) },
  details,
  at,
});
