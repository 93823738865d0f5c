/** Messages from the measuring thread to its owner. */
import type { Measured } from './measure.js';

/** The value that is sent instead of a task number when the thread has loaded its libraries. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
