/** Creates a timer shared by several callers. It fires at the earliest requested time. */
import type { Time, Timer } from '../time.js';

export function createWakeTimer(time: Time, fire: () => void) {
  let timer: Timer | undefined;
  let dueAt = 0;
  return {
    set(ms: number) {
      const at = time.monotonic() + Math.max(0, ms);
      if (timer !== undefined && dueAt <= at) return;
      time.cancel(timer);
      dueAt = at;
      timer = time.after(ms, () => {
        timer = undefined;
        fire();
      });
    },
    clear() {
      time.cancel(timer);
      timer = undefined;
    },
  };
}
