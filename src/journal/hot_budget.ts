/**
 * Bounds the bytes of flushed messages that stay in Redis for each bot, group or channel. No single bot or chat can
 * therefore fill Redis.
 */
import { journalLimits as limits } from './limits.js';

export type HotBudget = ReturnType<typeof createHotBudget>;

interface Level {
  bytes: number;
  /** In ms of the monotonic clock. */
  at: number;
}

/**
 * Creates a leaky bucket that holds `bytesMax` and empties within `hotMs`. The admitted messages still in Redis
 * therefore take at most twice `bytesMax`. If `bytesMax` is 0, there is no bound. A flusher that takes over a partition
 * starts with an empty bucket.
 */
export function createHotBudget(
  bytesMax: number,
  hotMs: number,
  now: () => number = () => performance.now(),
) {
  const levels = new Map<number, Level>();
  return {
    /**
     * Counts a flushed message, and all direct chats of a bot together. Returns false when the budget of the bot, group
     * or channel is used up. The message then leaves Redis soon, and is loaded from Postgres on demand.
     */
    admits(chatId: number, bytes: number): boolean {
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
