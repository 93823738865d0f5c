/** How many bytes of flushed messages Redis keeps for one bot, group or channel, so that none of them fills it. */
import { limits } from '../limits.js';

export interface HotBudget {
  /**
   * Counts a message that was flushed. False when its bot (all direct chats together), group or channel has had its bytes: the
   * message then leaves Redis soon, and is read back from Postgres.
   */
  admits(chatId: number, bytes: number): boolean;
}

interface Level {
  bytes: number;
  /** By the monotonic clock, in ms. */
  at: number;
}

/**
 * A leaky bucket of `bytesMax` that empties within `hotMs`: what was admitted and is still in Redis is at most twice `bytesMax`.
 * `bytesMax` 0 is no bound. A flusher that takes over a partition begins anew.
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
