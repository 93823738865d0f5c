/** Sends the reactions on one post to an event stream that follows the post (interface §6, behaviour §8). */

import type { User } from '../store/core/control.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { Timer } from '../time.js';
import { viewReactions } from './posts.js';

/**
 * Sends all reactions on a post now and after each change, at most four times a second. Returns a function that stops
 * sending.
 */
export async function watchReactions(
  store: Store,
  user: User,
  post: number,
  show: (data: object) => void,
): Promise<() => void> {
  const { time } = store;
  let timer: Timer | undefined;
  let busy = false;
  let again = false;
  let ended = false;
  let shown = 0;
  const look = async () => {
    again = false;
    // If the post cannot be read, for example because it was deleted, sends nothing. `shown` then stays unchanged, so
    // that the next change causes another read.
    const state = await store.posts.find(post, { id: user.id, isBot: false }).catch(() => null);
    if (ended || state === null) return;
    shown = state.version;
    show({
      post_id: post,
      external_id: store.postIds.nameOf(post),
      reactions: viewReactions(state, user),
      my_reactions: state.own,
    });
  };
  /** Runs one read at a time. Otherwise a client could get an older state after a newer one. */
  const lookSoon = () => {
    again = busy;
    if (busy || ended) return;
    busy = true;
    timer = time.after(limits.post_stream_interval_ms, async () => {
      await look();
      busy = false;
      if (again) lookSoon();
    });
  };
  const stop = await store.postWatches.watch(post, (version) => {
    if (version !== shown) lookSoon();
  });
  await look();
  return () => {
    ended = true;
    time.cancel(timer);
    stop();
  };
}
