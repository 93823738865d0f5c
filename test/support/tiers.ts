/**
 * Marks tests and cases that only the long tier runs, in files of the short tier. Other tests of the short tier cover
 * the same code. A run of single files includes these tests and cases, and so does the long tier.
 */
import { test } from 'vitest';

/** True while the whole short tier runs. */
export const quick = process.env.PETREL_TEST_QUICK !== undefined;

/** Adds a test that the short tier skips. */
export const longTest = test.skipIf(quick);

/** Returns every case, or only the first `count` in the short tier. */
export const sampled = <T>(cases: readonly T[], count: number): readonly T[] =>
  quick ? cases.slice(0, count) : cases;
