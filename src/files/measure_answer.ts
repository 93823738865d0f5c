/** Defines the messages from the measuring thread to its owner. */
import type { Measured } from './measure.js';

/** The thread sends this instead of a task number to report that it has loaded its libraries. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
