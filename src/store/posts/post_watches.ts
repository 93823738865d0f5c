/**
 * Notifies viewers when a post changes. A hint notifies immediately, and a check every second finds changes whose hints
 * were lost.
 */

import type { Hints } from '../../redis/hints.js';
import type { Timer } from '../../time.js';
import type { StoreContext } from '../core/context.js';
import { groupBy } from '../core/groups.js';
import { partitionOfPost } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

/**
 * Called when a post may have changed. `version` is the current version of the post, or null if it is unknown. The
 * listener may be called again for a version that it has already seen.
 */
export type PostListener = (version: number | null) => void;

export type PostWatches = ReturnType<typeof createPostWatches>;

export function createPostWatches({ scripts, keys, time }: StoreContext, hints: Hints) {
  const watched = new Map<number, Set<PostListener>>();
  let timer: Timer | undefined;

  async function check(): Promise<void> {
    await Promise.all(
      [...groupBy(watched.keys(), partitionOfPost)].map(async ([partition, posts]) => {
        const at = { post: keys.postRoot(partition) };
        const { versions } = await scripts.call('posts/versions', partition, at, {
          posts: posts.map(String),
        });
        for (const [i, post] of posts.entries()) {
          const version = Number(versions[i]);
          if (version > 0) for (const listener of watched.get(post) ?? []) listener(version);
        }
      }),
    );
  }

  function add(post: number, listener: PostListener): void {
    watched.set(post, (watched.get(post) ?? new Set()).add(listener));
    // Ignores failures, because the next check follows in a second.
    timer ??= time.every(limits.poll_tick_ms, () => void check().catch(() => undefined)).unref();
  }

  function remove(post: number, listener: PostListener): void {
    const listeners = watched.get(post);
    listeners?.delete(listener);
    if (listeners?.size === 0) watched.delete(post);
    if (watched.size > 0) return;
    time.cancel(timer);
    timer = undefined;
  }

  return {
    /** Calls `listener` when a post's reactions may have changed. Returns a function that removes the listener. */
    async watch(post: number, listener: PostListener): Promise<() => void> {
      const unlisten = await hints.listen(keys.postChannel(post), () => listener(null));
      add(post, listener);
      return () => {
        unlisten();
        remove(post, listener);
      };
    },
  };
}
