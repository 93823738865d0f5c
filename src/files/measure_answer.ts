/** Defines the messages between the measuring thread and its owner. */
import type { Measured } from './measure.js';

/** The thread sends this value, instead of a task number, when it has loaded its libraries. */
export const ready = 0;

export interface MeasureTask {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Whether the thread also removes metadata. */
  readonly isPhoto: boolean;
}

export interface MeasureAnswer {
  readonly id: number;
  readonly measured: Measured;
}
