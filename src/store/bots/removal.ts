/** Cleans up after the deletion of a bot. */

import { askAgain, loadGone } from '../../postgres/accounts/removal.js';
import { loadMemberships } from '../../postgres/chats/members.js';
import { dropReplays } from '../../postgres/webhooks/dead_updates.js';
import { deleteKeptOfBot } from '../../postgres/webhooks/kept_updates.js';
import type { Auth } from '../access/auth.js';
import type { Chats } from '../chats/chats.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { sharedChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export type RemovalFollowing = ReturnType<typeof createRemovalFollowing>;

export function createRemovalFollowing(
  { db, shards, scripts, keys }: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
    readonly chats: Pick<Chats, 'putMember'>;
  },
) {
  const { control, auth, webhooks, chats } = parts;

  async function closeQueue(id: number, version: number): Promise<void> {
    const partition = keys.partitions.of(id);
    const at = {
      meta: keys.meta(partition),
      state: keys.queueState(id),
      queue: keys.queue(id),
      marks: keys.queueMarks(id),
      routes: keys.routes(id),
      due: keys.webhooksDue(partition),
    };
    await scripts.call('updates/close_queue', partition, at, { version });
  }

  async function leaveChats(id: number): Promise<void> {
    const chatIds = await loadMemberships(db, id, limits.memberships_ended_at_once);
    for (const chat of chatIds) {
      await chats.putMember(sharedChat(chat), { id, is_bot: true }, 'left', {}, id, true);
    }
    if (chatIds.length === limits.memberships_ended_at_once) await askAgain(db, id);
  }

  /** Deletes some of the bot's stored updates. The sweep deletes the remaining updates later. */
  async function deleteKept(id: number): Promise<void> {
    const shard = shards.at(keys.partitions.of(id));
    for (let pieces = 0; await deleteKeptOfBot(shard, id); )
      if (++pieces === limits.kept_pieces_deleted_at_once) return askAgain(db, id);
  }

  return {
    /**
     * Cleans up after the commit. May be called again. `revoked` is true if no node accepts the bot's token any more.
     */
    async follow(id: number, revoked: boolean = false) {
      const gone = await loadGone(db, id);
      if (!gone) return;
      if (!revoked) {
        await control.forget('bot', id);
        await auth.revoke(`bot:${id}`);
      }
      await dropReplays(shards.at(keys.partitions.of(id)), id);
      await Promise.all([control.refresh('commands', id), closeQueue(id, gone.version)]);
      // Passes the bot's version, so that the script drops the bot's queue.
      await webhooks.refresh(id, gone.version);
      await leaveChats(id);
      await deleteKept(id);
    },
  };
}
