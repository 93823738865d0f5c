/** One timer for many who want to be woken: the earliest time that was asked for counts. */

export interface Alarm {
  /** Rings in so many milliseconds, or sooner: one that is due before is left. */
  set(ms: number): void;
  clear(): void;
}

export function createAlarm(ring: () => void): Alarm {
  let timer: NodeJS.Timeout | undefined;
  /** When it is due, by the monotonic clock. */
  let dueAt = 0;
  return {
    set(ms) {
      const at = performance.now() + Math.max(0, ms);
      if (timer !== undefined && dueAt <= at) return;
      clearTimeout(timer);
      dueAt = at;
      timer = setTimeout(() => {
        timer = undefined;
        ring();
      }, ms);
    },
    clear() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
