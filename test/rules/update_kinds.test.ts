import { expect, test } from 'vitest';
import { defaultUpdateMask, maskNames, updateMask } from '../../src/rules/update_kinds.js';

test('a list of names becomes the set of known kinds, and unknown names are ignored', () => {
  expect(maskNames(updateMask(['chat_member', 'message', 'poll']))).toEqual(['message', 'chat_member']);
});

test.each([[[]], [['mesage']], [['poll', 'inline_query']]])(
  'a list without known names (%j) means the default kinds',
  (names) => {
    expect(updateMask(names)).toBe(defaultUpdateMask);
  },
);
