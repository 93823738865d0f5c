/** Defines the messages between the measuring thread and the main thread. */
import type { Measured } from './measure.js';

/** The thread sends this value instead of a task number when its libraries are loaded. */
export const ready = 0;

export interface MeasureTask {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Whether the file is a photo whose metadata must be removed. */
  readonly isPhoto: boolean;
}

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
