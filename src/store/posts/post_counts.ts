/**
 * Sends reaction counts of channel posts to the channels' bots (behaviour §8): `message_reaction_count`. A reaction
 * also makes its post due a second later. The next sweep by any node sends the counts at that time. So each post is
 * sent at most once a second, its last state is always sent, and the death of a node only delays it until the next
 * sweep.
 */
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import type { MissingOfPost, PostReadBack } from './post_cold.js';

export interface PostCounts {
  /** Adds due counts to the partition's outbox. While the outbox is full they stay due. */
  tellCounts(partition: number): Promise<void>;
}

/** Id of neither a bot nor a person, because the bots that receive the counts need no permission check. */
const nobody = 0;

export function createPostCounts({ scripts, keys }: StoreContext, cold: PostReadBack): PostCounts {
  /** Loads a missing record of a post. Returns false if the post no longer exists. */
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
    async tellCounts(partition) {
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
