/**
 * Manages the data of the management bot. This bot has no owner. A delivery worker passes its updates to code in the
 * same process.
 */

import { ensureManagementBot, type ManagementIdentity } from '../../postgres/bots/management_bot.js';
import { kindBit } from '../../rules/update_kinds.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { storeLimits as limits } from '../limits.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { createTalks } from './talks.js';

export type { ManagementIdentity };

/** The webhook URL of the management bot. It stands for this process, and its host name does not exist. */
const inside = 'https://management.invalid/';
const kinds = kindBit('message') | kindBit('callback_query') | kindBit('my_chat_member');

export function createManagement(context: StoreContext, control: ControlCopies, webhooks: Webhooks) {
  const { db } = context;
  return {
    ...createTalks(context),
    /**
     * Returns the id of the management bot. If the bot does not exist, creates it with this username and these texts.
     * Its updates are queued and delivered like those of any bot with a webhook: a worker leases the queue, and updates
     * stay in order within each chat. Error: `username_taken`.
     */
    async ensure(identity: ManagementIdentity): Promise<number> {
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
