/** Tells whether this process has more to do than it can. */

const windowMs = 100;
const busyShare = 0.8;

/** Returns a question that costs next to nothing: whether the event loop hardly rested while it was last looked at. */
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
