/** Tests inline message ids. A bot uses such an id to name a message that a person sent via the bot. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSecrets } from '../../src/store/core/secrets.js';
import { createInlineIds } from '../../src/store/inline/inline_ids.js';

const secretsOf = (root: string) => createSecrets([root], [{ id: 'k', key: Buffer.alloc(32, 1) }]);
const ids = createInlineIds(secretsOf('pepper'));
const id_max = 10 ** 13 - 1;
const id = fc.integer({ min: 1, max: id_max });
const place = fc.record({
  chat: fc.oneof(fc.record({ id, user: id }), fc.record({ id: id.map((n) => -n), user: fc.constant(0) })),
  messageId: id,
});

test('the inline message id of a message never changes, identifies only this message, and has at most 128 characters', () => {
  fc.assert(
    fc.property(id, place, (bot, at) => {
      const name = ids.idOf(bot, at);
      expect(ids.placeOf(bot, name)).toEqual(at);
      expect(ids.idOf(bot, at)).toBe(name);
      expect(name).toMatch(/^[\w-]{40,128}$/);
    }),
  );
});

test('an inline message id is invalid for other bots and in other installations', () => {
  const at = { chat: { id: -7, user: 0 }, messageId: 3 };
  const name = ids.idOf(1, at);
  expect(ids.placeOf(2, name)).toBeNull();
  expect(createInlineIds(secretsOf('other')).placeOf(1, name)).toBeNull();
  expect(ids.idOf(2, at)).not.toBe(name);
  expect(ids.instanceOf(2, at.chat)).not.toBe(ids.instanceOf(1, at.chat));
});

test('a changed or invented inline message id is invalid', () => {
  const name = ids.idOf(1, { chat: { id: -7, user: 0 }, messageId: 3 });
  for (let i = 0; i < name.length - 1; i++) {
    const other = name[i] === 'A' ? 'B' : 'A';
    expect(ids.placeOf(1, name.slice(0, i) + other + name.slice(i + 1))).toBeNull();
  }
  fc.assert(fc.property(fc.string({ maxLength: 300 }), (text) => ids.placeOf(1, text) === null));
});

test('only the person who saw an inline answer can use its id', () => {
  fc.assert(
    fc.property(id, fc.integer({ min: 1_000, max: id_max }), (user, query) => {
      const name = ids.answerIdOf(user, `${query}`);
      expect(ids.queryOf(user, name)).toBe(`${query}`);
      for (const other of [name.replace(/^./, (digit) => `${9 - Number(digit)}`), `${query}`, `${query}-`])
        expect(ids.queryOf(user, other)).toBeNull();
      expect(ids.queryOf(user + 1, name)).toBeNull();
    }),
  );
  fc.assert(fc.property(fc.string({ maxLength: 300 }), (text) => ids.queryOf(1, text) === null));
});

test('two messages in one chat have unrelated inline message ids', () => {
  const [one, other] = [3, 4].map((messageId) => ids.idOf(1, { chat: { id: -7, user: 0 }, messageId }));
  const common = [...(one as string)].findIndex((letter, i) => letter !== (other as string)[i]);
  expect(common).toBeLessThan(8);
});
