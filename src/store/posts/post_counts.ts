/**
 * Tells bots how often each emoji stands on the posts of their channels (behaviour §8): `message_reaction_count`. A change
 * makes its post due a second later, in the same step; whichever node sweeps next tells the counts as they are then. So a
 * post is told once a second at most, its last state is always told, and a node that dies costs the time to the next sweep.
 */
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import type { MissingOfPost, PostReadBack } from './post_cold.js';

export interface PostCounts {
  /** Puts the counts that are due into the partition's outbox. While that is full they stay due. */
  tellCounts(partition: number): Promise<void>;
}

/** No bot and no person: whoever is told of a post sees it. */
const nobody = 0;

export function createPostCounts({ scripts, keys }: StoreContext, cold: PostReadBack): PostCounts {
  /** Reads back what a post lacks. False when there is no such post any more. */
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
