/** Defines the messages from the measuring thread to its owner. */
import type { Measured } from './measure.js';

/** The task number of the message that the thread has loaded its libraries. Other messages name a task. */
export const ready = 0;

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
