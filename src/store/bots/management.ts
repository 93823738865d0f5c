/** The management bot's data: it has no owner, and a delivery worker handles its updates in-process. */

import { limits } from '../../limits.js';
import { ensureManagementBot, type ManagementIdentity } from '../../postgres/bots/management_bot.js';
import { kindBit } from '../../rules/update_kinds.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { createTalks, type Talks } from './talks.js';

export type { ManagementIdentity };

export interface Management extends Talks {
  /**
   * Creates the management bot if there is none, with this username and these texts. Returns its id. Its updates are
   * queued and leased like those of other bots with a webhook, in order per chat. Error: `username_taken`.
   */
  ensure(identity: ManagementIdentity): Promise<number>;
}

/** Placeholder for the receiver's URL. It cannot be reached. */
const inside = 'https://management.invalid/';
const kinds = kindBit('message') | kindBit('callback_query') | kindBit('my_chat_member');

export function createManagement(
  context: StoreContext,
  control: ControlCopies,
  webhooks: Webhooks,
): Management {
  const { db } = context;
  return {
    ...createTalks(context),
    async ensure(identity) {
      const id = await ensureManagementBot(db, identity);
      const known = await webhooks.find(id);
      if (known?.url === inside) return id;
      await control.refresh('bot', id);
      const settings = { url: inside, secretToken: null, certificate: null, address: null };
      const maxConnections = limits.webhook_connections_max_per_bot;
      await webhooks.set(id, { ...settings, maxConnections }, { drop: false, mask: kinds });
      return id;
    },
  };
}
