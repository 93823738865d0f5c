/**
 * Bounds the bytes of flushed messages that Redis keeps for one bot, group or channel, so that none of them fills
 * Redis.
 */
import { limits } from '../limits.js';

export interface HotBudget {
  /**
   * Counts a flushed message. Returns false when its bot (all direct chats together), group or channel has used its
   * bytes: the message then leaves Redis soon, and is read from Postgres when needed.
   */
  admits(chatId: number, bytes: number): boolean;
}

interface Level {
  bytes: number;
  /** Time of the last change of the bucket, by the monotonic clock, in ms. */
  at: number;
}

/**
 * A leaky bucket of `bytesMax` that empties within `hotMs`: the admitted messages that are still in Redis have at
 * most twice `bytesMax`. `bytesMax` 0 means no bound. A flusher that takes over a partition starts with an empty
 * bucket.
 */
export function createHotBudget(
  bytesMax: number,
  hotMs: number,
  now: () => number = () => performance.now(),
): HotBudget {
  const levels = new Map<number, Level>();
  return {
    admits(chatId, bytes) {
      if (bytesMax === 0) return true;
      const at = now();
      const level = levels.get(chatId);
      const left = level ? Math.max(0, level.bytes - ((at - level.at) * bytesMax) / hotMs) : 0;
      if (left + bytes > bytesMax) return false;
      if (levels.size >= limits.hot_levels_max) levels.clear();
      levels.set(chatId, { bytes: left + bytes, at });
      return true;
    },
  };
}
