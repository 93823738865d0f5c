/** Detects when this process is overloaded. */

const windowMs = 100;
const busyShare = 0.8;

/** Returns a cheap function that reports whether the event loop was at least 80 % busy in the last sampling window. */
export function watchLoop(): () => boolean {
  let seen = performance.eventLoopUtilization();
  let seenAt = performance.now();
  let busy = false;
  return () => {
    const now = performance.now();
    if (now - seenAt < windowMs) return busy;
    const present = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(present, seen).utilization >= busyShare;
    seen = present;
    seenAt = now;
    return busy;
  };
}
