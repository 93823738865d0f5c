/** What parameters may look like, beyond what JSON has for them. */
import { expect, test } from 'vitest';
import { boolean, integer } from '../../src/api/schema.js';

test.each([true, 'true', 'True', 'TRUE', '1', 1])('behaviour §1: %j is true', (value) =>
  expect(boolean.parse(value)).toBe(true),
);

test.each([false, 'false', 'False', '0', 0])('behaviour §1: %j is false', (value) =>
  expect(boolean.parse(value)).toBe(false),
);

test.each(['yes', 'tru', '', 2, null])('behaviour §1: %j is no boolean', (value) =>
  expect(boolean.safeParse(value).success).toBe(false),
);

test.each([
  [7, 7],
  ['7', 7],
  ['-7', -7],
])('behaviour §1: %j is the integer %j', (value, number) => expect(integer().parse(value)).toBe(number));

test.each([7.5, '7.5', '7x', '', ' 7', '0x7', '1e3', null])('behaviour §1: %j is no integer', (value) =>
  expect(integer().safeParse(value).success).toBe(false),
);
