/**
 * Publishes scheduled posts when they are due (decision 0087). Runs in the background of the role `deliver`. Several
 * processes may publish at the same time, because each post is claimed before it is published, and every attempt has
 * the same request id.
 */
import { isFinal, publishClaimed } from '../actions/scheduled_posts.js';
import { figuresOf } from '../obs/metrics.js';
import { storeLimits as limits } from '../store/limits.js';
import type { ClaimedPost } from '../store/posts/scheduled_posts.js';
import { type Backends, isLate } from './backends.js';
import type { Role } from './role.js';

export type SchedulerBackends = Pick<Backends, 'store' | 'time' | 'held' | 'troubles' | 'figures'>;

export function startScheduler({ store, time, held, troubles, figures }: SchedulerBackends): Role {
  const counts = { published: 0, failed: 0 };
  const onError = troubles.onDelay('scheduled posts', 'scheduled posts are published late', isLate);
  figures.push(
    ...figuresOf(
      {
        petrel_scheduled_posts_published_total: 'Scheduled posts that this process published.',
        petrel_scheduled_posts_failed_total: 'Scheduled posts whose publication was refused.',
      },
      () => ({
        petrel_scheduled_posts_published_total: counts.published,
        petrel_scheduled_posts_failed_total: counts.failed,
      }),
    ),
  );
  const stopping = new AbortController();

  async function publish(post: ClaimedPost): Promise<void> {
    try {
      await publishClaimed(store, post);
      counts.published++;
    } catch (error) {
      // After a temporary error, the post is published again when this process's claim on the post has ended.
      if (!isFinal(error)) return onError(error);
      await store.scheduledPosts.failed(post, error.kind).catch(onError);
      counts.failed++;
    }
  }

  /** Publishes the due posts. Returns the time in ms until the next check for due posts. */
  async function publishDue(): Promise<number> {
    while (!stopping.signal.aborted) {
      const ms = (await store.scheduledPosts.untilDue()) ?? Number.POSITIVE_INFINITY;
      if (ms > 0) return ms;
      const due = await store.scheduledPosts.claimDue();
      // If nothing could be claimed, another process has claimed the due posts.
      if (due.length === 0) break;
      await Promise.all(due.map(publish));
    }
    return limits.scheduled_posts_retry_ms;
  }

  async function run(): Promise<void> {
    let cleanAt = 0;
    while (!stopping.signal.aborted) {
      let ms: number = limits.scheduled_posts_retry_ms;
      // Publishes nothing during a drill (a test with a restored backup), because the posts belong to the original
      // installation.
      if (!held())
        ms = await publishDue().catch((error: unknown) => {
          onError(error);
          return limits.scheduled_posts_retry_ms;
        });
      if (time.monotonic() >= cleanAt) {
        cleanAt = time.monotonic() + limits.scheduled_posts_clean_ms;
        await store.scheduledPosts.clean().catch(onError);
      }
      const idleMs = time.untilNext(limits.scheduled_posts_look_ms_max);
      await time.sleep(Math.min(ms, idleMs), { signal: stopping.signal });
    }
  }
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
