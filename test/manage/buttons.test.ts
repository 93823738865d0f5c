/** Tests that the data of buttons fit the limit and are parsed unchanged, and that all other data are refused. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { dataOf, type PageKey, type Press, pages, readPress } from '../../src/manage/buttons.js';
import { languages } from '../../src/rules/identity_texts.js';

const id = fc.integer({ min: 1, max: limits.id_max - 1 });
const until = fc.integer({ min: 1_600_000_000, max: 4_000_000_000 });
const page = fc.constantFrom(...(Object.keys(pages) as PageKey[]));
const press: fc.Arbitrary<Press> = fc.oneof(
  fc.record({ ask: fc.constant('list' as const), page, number: fc.nat(200) }),
  fc.record({ ask: fc.constant('page' as const), page, bot: id }),
  fc.record({ ask: fc.constantFrom('show_token' as const, 'accept' as const, 'decline' as const), bot: id }),
  fc.record({ ask: fc.constantFrom('issue' as const, 'delete' as const), bot: id, until }),
  fc.record({ ask: fc.constant('transfer' as const), bot: id, to: id, until }),
  fc.record({
    ask: fc.constantFrom('write' as const, 'remove' as const),
    page: fc.constantFrom('n' as const, 'd' as const, 's' as const),
    bot: id,
    language: fc.constantFrom('', ...languages),
  }),
  fc.record({
    ask: fc.constant('writers' as const),
    bot: id,
    policy: fc.constantFrom('all' as const, 'selected' as const, 'owner' as const),
  }),
  fc.record({
    ask: fc.constant('inline' as const),
    bot: id,
    change: fc.constantFrom(
      'on' as const,
      'off' as const,
      'hint' as const,
      'tell' as const,
      'quiet' as const,
    ),
  }),
  fc.constant({ ask: 'cancel' } as const),
);

test('the data of every button press fits the limit of callback data and is parsed unchanged', () => {
  fc.assert(
    fc.property(press, (given) => {
      const data = dataOf(given);
      expect(Buffer.byteLength(data)).toBeLessThanOrEqual(limits.callback_data_bytes_max);
      expect(readPress(data)).toEqual(given);
    }),
  );
});

test('readPress accepts only data that dataOf can produce', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^1(:[a-z0-9]{0,3}){0,5}$/)), (data) => {
      const read = readPress(data);
      if (read !== null) expect(dataOf(read)).toBe(data);
    }),
  );
  for (const data of [
    '',
    '1',
    '1:',
    '0:c',
    '2:c',
    '1:c:',
    '1:i:1',
    '1:p:z:1',
    '1:q:1:some',
    '1:w:1:some',
    '1:a:k:1:',
    '1:p:m:-1',
  ])
    expect(readPress(data), data).toBeNull();
});
