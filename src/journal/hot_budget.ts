/**
 * Limits how many bytes of flushed messages stay in Redis for each bot, group or channel, so that a single one of them
 * cannot fill Redis.
 */
import { systemTime, type Time } from '../time.js';
import { journalLimits as limits } from './limits.js';

export type HotBudget = ReturnType<typeof createHotBudget>;

interface Level {
  bytes: number;
  /** When `bytes` was computed (ms on the monotonic clock). */
  at: number;
}

/**
 * Creates a budget that works as a leaky bucket, which holds `bytesMax` and empties within `hotMs`. A flushed message
 * stays in Redis for `hotMs`. The messages in Redis thus take at most twice `bytesMax`: a full bucket, and the bytes
 * that leak from it during `hotMs`. If `bytesMax` is 0, there is no limit. A flusher that takes over a partition starts
 * with an empty bucket.
 */
export function createHotBudget(bytesMax: number, hotMs: number, time: Time = systemTime) {
  const levels = new Map<number, Level>();
  return {
    /**
     * Counts a flushed message. All direct chats of a bot count together. Returns false if the budget of the bot, group
     * or channel is used up. Such a message leaves Redis soon, and is loaded from Postgres on demand.
     */
    admits(chatId: number, bytes: number): boolean {
      if (bytesMax === 0) return true;
      const at = time.monotonic();
      const level = levels.get(chatId);
      const left = level ? Math.max(0, level.bytes - ((at - level.at) * bytesMax) / hotMs) : 0;
      if (left + bytes > bytesMax) return false;
      if (levels.size >= limits.hot_levels_max) levels.clear();
      levels.set(chatId, { bytes: left + bytes, at });
      return true;
    },
  };
}
