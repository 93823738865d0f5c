/** What the measuring thread says to its owner. */
import type { Measured } from './measure.js';

/** Stands in the place of a task's number when the thread has loaded what it needs. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
