import { expect, test } from 'vitest';
import {
  defaultKinds,
  defaultUpdateMask,
  maskNames,
  updateKinds,
  updateMask,
} from '../../src/rules/update_kinds.js';

test('unknown names in a list of update kinds are ignored', () => {
  expect(maskNames(updateMask(['chat_member', 'message', 'business_message']))).toEqual([
    'message',
    'chat_member',
  ]);
});

test.each([[[]], [['mesage']], [['shipping_query', 'business_message']]])(
  'a list of update kinds without known names (%j) means the default kinds',
  (names) => {
    expect(updateMask(names)).toBe(defaultUpdateMask);
  },
);

test('a bot without a list of update kinds gets all kinds except chat_member and message_reaction_count', () => {
  const others = updateKinds.filter((kind) => !maskNames(defaultKinds).includes(kind));
  expect(others).toEqual(['chat_member', 'message_reaction_count']);
});

test('a list of only the first six update kinds does not mean the default kinds', () => {
  const six = updateKinds.slice(0, 6);
  expect(updateMask(six)).not.toBe(defaultUpdateMask);
  expect(maskNames(updateMask(six))).toEqual(six);
});
