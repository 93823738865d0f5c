/**
 * Sends reaction counts of channel posts to the channels' bots, as `message_reaction_count` (behaviour §8). A post's
 * counts become due one second after a reaction, and the next sweep of any node sends them. They are therefore sent at
 * most once a second, and the last counts are always sent. If a node dies, another node's sweep sends its counts.
 */
import { ApiError } from '../../errors.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';
import type { MissingOfPost, PostReadBack } from './post_cold.js';

export type PostCounts = ReturnType<typeof createPostCounts>;

/** The sender of reaction counts. It is neither a bot nor a person, so no permission is checked. */
const nobody = 0;

export function createPostCounts({ scripts, keys, uniqueText }: StoreContext, cold: PostReadBack) {
  /** Loads a missing record. Returns false if the post no longer exists. */
  async function bring(post: number, missing: MissingOfPost): Promise<boolean> {
    try {
      await cold.bring(post, nobody, missing);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.kind === 'post_not_found') return false;
      throw error;
    }
  }

  return {
    /** Sends due counts. The counts stay due while the outbox is full. */
    async tellCounts(partition: number) {
      const at = {
        meta: keys.meta(partition),
        outbox: keys.outbox(partition),
        due: keys.countsDue(partition),
        post: keys.postRoot(partition),
        chat: keys.chatRoot(partition),
      };
      let gone: string[] = [];
      for (;;) {
        const args = { token: uniqueText(), limit: limits.counts_batch_max, gone };
        const result = await scripts.call('posts/tell_counts', partition, at, args);
        if (result.status !== 'ok') return;
        gone = [];
        for (let i = 0; i < result.missing.length; i += 4) {
          const [status, post, ticket, chat] = result.missing.slice(i, i + 4) as [
            string,
            string,
            string,
            string,
          ];
          if (!(await bring(Number(post), { status, ticket, chat: Number(chat) }))) gone.push(post);
        }
        if (!result.more && gone.length === 0) return;
      }
    },
  };
}
