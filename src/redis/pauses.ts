/**
 * Measures how long a slot migration blocked the calls on a partition. Reports the pause when the migration has ended.
 */
import { systemTime, type Time } from '../time.js';

export interface Pause {
  readonly partition: number;
  /** The time from the first blocked call to the next successful call. */
  readonly ms: number;
  /** The number of calls that waited too long and were rejected. Such calls changed nothing. */
  readonly refused: number;
}

export type Pauses = ReturnType<typeof createPauses>;

export function createPauses(onEnd: (pause: Pause) => void = () => {}, time: Time = systemTime) {
  const open = new Map<number, { readonly since: number; refused: number }>();
  let refused = 0;
  let longest = 0;
  return {
    began(partition: number) {
      if (!open.has(partition)) open.set(partition, { since: time.monotonic(), refused: 0 });
    },
    refused(partition: number) {
      refused++;
      const pause = open.get(partition);
      if (pause) pause.refused++;
    },
    ran(partition: number) {
      // Skips the lookup if no pause is being measured, which is the usual case.
      const pause = open.size === 0 ? undefined : open.get(partition);
      if (pause === undefined) return;
      open.delete(partition);
      const ms = Math.round(time.monotonic() - pause.since);
      longest = Math.max(longest, ms);
      onEnd({ partition, ms, refused: pause.refused });
    },
    get stats(): { readonly refused: number; readonly under_way: number; readonly longest_ms: number } {
      return { refused, under_way: open.size, longest_ms: longest };
    },
  };
}
