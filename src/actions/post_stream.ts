/** The reactions on one post, shown to a stream that asked for them (interface §6, behaviour §8). */

import { limits } from '../limits.js';
import type { User } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { viewReactions } from './posts.js';

/**
 * Shows all reactions on a post now, and again after changes, which are merged to four a second. The returned function
 * ends it.
 */
export async function watchReactions(
  store: Store,
  user: User,
  post: number,
  show: (data: object) => void,
): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined;
  let busy = false;
  let again = false;
  let ended = false;
  let shown = 0;
  const look = async () => {
    again = false;
    // A post that is gone, or that cannot be read now, has nothing to show: what was shown stays behind, and is looked at
    // again.
    const state = await store.posts.find(post, { id: user.id, isBot: false }).catch(() => null);
    if (ended || state === null) return;
    shown = state.version;
    const name = { post_id: post, external_id: store.posts.nameOf(post) };
    show({ ...name, reactions: viewReactions(state, user), my_reactions: state.own });
  };
  /** One look at a time: what it finds is no older than what is shown. */
  const lookSoon = () => {
    again = busy;
    if (busy || ended) return;
    busy = true;
    timer = setTimeout(async () => {
      await look();
      busy = false;
      if (again) lookSoon();
    }, limits.post_stream_interval_ms);
  };
  const stop = await store.posts.watch(post, (version) => {
    if (version !== shown) lookSoon();
  });
  await look();
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
  };
}
