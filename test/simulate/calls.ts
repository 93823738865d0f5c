/** How simulated clients call fronts. */
import { ApiError } from '../../src/errors.js';
import type { SimulatedProcess } from './process.js';

export const isUnknown = (error: unknown) =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'not_durable');

/**
 * Calls fronts until one answers. `again` is false for the first attempt. Returns undefined if the outcome is unknown.
 */
export type Ask = <T>(
  work: (front: SimulatedProcess, again: boolean) => Promise<T>,
) => Promise<T | undefined>;
