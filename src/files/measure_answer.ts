/** Defines the messages from the measuring thread to its owner. */
import type { Measured } from './measure.js';

/** Stands in for the task number when the thread reports that it has loaded its libraries. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
