import { expect, test } from 'vitest';
import { parseRange } from '../../src/rules/ranges.js';

test.each([
  ['bytes=0-0', [0, 0]],
  ['bytes=2-5', [2, 5]],
  ['bytes=2-', [2, 9]],
  ['bytes=2-99', [2, 9]],
  ['bytes=-3', [7, 9]],
  ['bytes=-99', [0, 9]],
  ['Bytes = 1 - 2', [1, 2]],
  ['bytes=9-', [9, 9]],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=10-12', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['', null],
  ['bytes=', null],
  ['bytes=-', null],
  ['bytes=5-2', null],
  ['bytes=0-1,3-4', null],
  ['bytes=a-b', null],
  ['items=0-1', null],
  ['bytes=0x1-2', null],
  [`bytes=0-${'9'.repeat(400)}`, null],
])('the range "%s" of a file of ten bytes is parsed', (header, range) => {
  expect(parseRange(header, 10)).toEqual(range);
});
