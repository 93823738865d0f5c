/** Detects when this process is overloaded. */
import type { Time } from '../time.js';

const windowMs = 100;
const busyShare = 0.8;

/**
 * Returns a function that reports whether the event loop was busy for at least 80 % of the last sampling window.
 * Calling this function is cheap.
 */
export function watchLoop(time: Time): () => boolean {
  let seen = performance.eventLoopUtilization();
  let seenAt = time.monotonic();
  let busy = false;
  return () => {
    const now = time.monotonic();
    if (now - seenAt < windowMs) return busy;
    const present = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(present, seen).utilization >= busyShare;
    seen = present;
    seenAt = now;
    return busy;
  };
}
