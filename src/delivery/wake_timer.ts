/** Creates a timer shared by several callers. It fires at the earliest requested time. */

export function createWakeTimer(fire: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let dueAt = 0;
  return {
    set(ms: number) {
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
