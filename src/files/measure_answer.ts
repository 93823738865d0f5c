/** Defines the messages from the measuring thread to its owner. */
import type { Measured } from './measure.js';

/** Replaces the task number in the message that the thread has loaded its libraries. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
