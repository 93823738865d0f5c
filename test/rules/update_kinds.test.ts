import { expect, test } from 'vitest';
import { defaultUpdateMask, maskNames, updateMask } from '../../src/rules/update_kinds.js';

test('a list is taken by its names, in the order of kinds, and unknown names are ignored', () => {
  expect(maskNames(updateMask(['chat_member', 'message', 'poll']))).toEqual(['message', 'chat_member']);
});

test.each([[[]], [['mesage']], [['poll', 'inline_query']]])('%j leaves the usual kinds', (names) => {
  expect(updateMask(names)).toBe(defaultUpdateMask);
});
