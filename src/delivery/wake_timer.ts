/** One timer shared by several callers. It fires at the earliest time requested. */

export interface WakeTimer {
  /** Fires in `ms` milliseconds. Has no effect when the timer is already due before then. */
  set(ms: number): void;
  clear(): void;
}

export function createWakeTimer(fire: () => void): WakeTimer {
  let timer: NodeJS.Timeout | undefined;
  /** When the timer is due, by the monotonic clock. */
  let dueAt = 0;
  return {
    set(ms) {
      const at = performance.now() + Math.max(0, ms);
      if (timer !== undefined && dueAt <= at) return;
      clearTimeout(timer);
      dueAt = at;
      timer = setTimeout(() => {
        timer = undefined;
        fire();
      }, ms);
    },
    clear() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
