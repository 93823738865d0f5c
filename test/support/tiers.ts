/**
 * Marks tests and cases that the short tier skips, although they are in its files. Other tests of the short tier cover
 * the same code. The long tier and runs of single files include the marked tests and cases.
 */
import { test } from 'vitest';

/** True in a run of the short tier. */
export const quick = process.env.PETREL_TEST_QUICK !== undefined;

/** Adds a test that the short tier skips. */
export const longTest = test.skipIf(quick);

/** Returns every case, or only the first `count` in the short tier. */
export const sampled = <T>(cases: readonly T[], count: number): readonly T[] =>
  quick ? cases.slice(0, count) : cases;
