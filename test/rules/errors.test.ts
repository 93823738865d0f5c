/** Tests that an error answer is created quickly, because most refused calls throw an error. */
import { expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';

test('an error answer has no stack trace', () => {
  const limit = Error.stackTraceLimit;
  expect(new ApiError('not_found').stack).not.toContain('\n');
  expect(Error.stackTraceLimit).toBe(limit);
  expect(new Error('unexpected').stack).toContain('errors.test.ts');
});
