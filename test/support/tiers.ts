/**
 * Selects tests in files of the short tier that only the long tier runs. Other tests of the short tier cover the same
 * code. A run of named files includes these cases. The long tier runs each test file that imports this module in full.
 */
import { test } from 'vitest';

/** True while the whole short tier runs. */
export const quick = process.env.PETREL_TEST_QUICK !== undefined;

/** Adds a test that the short tier leaves out. */
export const longTest = test.skipIf(quick);

/** Returns every case, or only the first `count` in the short tier. */
export const sampled = <T>(cases: readonly T[], count: number): readonly T[] =>
  quick ? cases.slice(0, count) : cases;
