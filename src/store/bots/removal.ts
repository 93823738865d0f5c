/** Deletes bots: the deletion itself and the cleanup after its commit. */

import { limits } from '../../limits.js';
import { askAgain, deleteBot, loadGone } from '../../postgres/accounts/removal.js';
import { loadMemberships } from '../../postgres/chats/members.js';
import { dropReplays } from '../../postgres/webhooks/dead_updates.js';
import type { Auth } from '../access/auth.js';
import type { Chats } from '../chats/chats.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { sharedChat } from '../core/keys.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export interface Removal {
  /**
   * Deletes a bot. Once this returns, no node accepts its token, nobody can write to it, and its webhook and pending
   * updates are gone. It leaves its groups and channels, the last of many some seconds later. Its messages remain, and
   * its username stays reserved for limits.deleted_username_hold_ms. Errors: `bot_not_found`, `not_bot_owner`.
   */
  remove(owner: number, id: number): Promise<void>;
}

export interface RemovalFollowing {
  /** Does the cleanup after the commit; may be repeated. `revoked`: no node accepts the bot's token any more. */
  follow(id: number, revoked?: boolean): Promise<void>;
}

export function createRemovalFollowing(
  { db, shards, scripts, keys }: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
    readonly chats: Pick<Chats, 'putMember'>;
  },
): RemovalFollowing {
  const { control, auth, webhooks, chats } = parts;

  async function closeQueue(id: number, version: number): Promise<void> {
    const partition = keys.partitions.of(id);
    const at = {
      meta: keys.meta(partition),
      state: keys.queueState(id),
      queue: keys.queue(id),
      marks: keys.queueMarks(id),
    };
    await scripts.call('updates/close_queue', partition, at, { version });
  }

  async function leaveChats(id: number): Promise<void> {
    const chatIds = await loadMemberships(db, id, limits.memberships_ended_at_once);
    for (const chat of chatIds) {
      await chats.putMember(sharedChat(chat), { id, is_bot: true }, 'left', {});
    }
    if (chatIds.length === limits.memberships_ended_at_once) await askAgain(db, id);
  }

  return {
    async follow(id, revoked = false) {
      const gone = await loadGone(db, id);
      if (!gone) return;
      if (!revoked) {
        await control.forget('bot', id);
        await auth.revoke(`bot:${id}`);
      }
      await dropReplays(shards.of(keys.partitions.of(id)).db, id);
      // Passing the bot's own version requests to drop its queue.
      await webhooks.refresh(id, gone.version);
      await Promise.all([control.refresh('commands', id), closeQueue(id, gone.version)]);
      await leaveChats(id);
    },
  };
}

export const createRemoval = (
  { db }: StoreContext,
  parts: { readonly control: ControlCopies; readonly auth: Auth; readonly removal: RemovalFollowing },
): Removal => ({
  async remove(owner, id) {
    await parts.auth.revoking(`bot:${id}`, async () => {
      await deleteBot(db, id, owner, limits.deleted_username_hold_ms);
      await parts.control.forget('bot', id);
    });
    await parts.removal.follow(id, true);
  },
});
