/** The management bot as the store keeps it: a bot that nobody owns, whose updates a worker handles in its own process. */

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
   * Makes the bot unless there is one, with this username and these texts; returns its id. Its updates wait as those of any bot
   * with a webhook do, under the same leases and in each chat's order. Error: `username_taken`.
   */
  ensure(identity: ManagementIdentity): Promise<number>;
}

/** Stands where other bots have the address of their receiver. It names nothing that could be reached. */
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
