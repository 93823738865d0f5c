/** Notifies viewers of a post's changes: at once by hints, and by a check every second, because hints may be lost. */
import { limits } from '../../limits.js';
import type { Hints } from '../../redis/hints.js';
import type { StoreContext } from '../core/context.js';
import { partitionOfPost } from '../core/keys.js';

/** Called with null when the post changed, or with its current version, which the listener may already have seen. */
export type PostListener = (version: number | null) => void;

export interface PostWatches {
  /** Calls `listener` when a post's reactions may have changed. Returns the function that unsubscribes. */
  watch(post: number, listener: PostListener): Promise<() => void>;
}

export function createPostWatches({ scripts, keys }: StoreContext, hints: Hints): PostWatches {
  const watched = new Map<number, Set<PostListener>>();
  let timer: NodeJS.Timeout | undefined;

  /** Checks all watched posts with one script call per partition. */
  async function check(): Promise<void> {
    const byPartition = new Map<number, string[]>();
    for (const post of watched.keys()) {
      const list = byPartition.get(partitionOfPost(post)) ?? [];
      byPartition.set(partitionOfPost(post), list);
      list.push(String(post));
    }
    await Promise.all(
      [...byPartition].map(async ([partition, posts]) => {
        const at = { post: keys.postRoot(partition) };
        const { versions } = await scripts.call('posts/versions', partition, at, { posts });
        for (const [i, post] of posts.entries()) {
          const version = Number(versions[i]);
          if (version > 0) for (const listener of watched.get(Number(post)) ?? []) listener(version);
        }
      }),
    );
  }

  function add(post: number, listener: PostListener): void {
    watched.set(post, (watched.get(post) ?? new Set()).add(listener));
    // Failures are ignored: the next check is a second later.
    timer ??= setInterval(() => check().catch(() => undefined), limits.poll_tick_ms).unref();
  }

  function remove(post: number, listener: PostListener): void {
    const listeners = watched.get(post);
    listeners?.delete(listener);
    if (listeners?.size === 0) watched.delete(post);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    async watch(post, listener) {
      const unlisten = await hints.listen(keys.postChannel(post), () => listener(null));
      add(post, listener);
      return () => {
        unlisten();
        remove(post, listener);
      };
    },
  };
}
