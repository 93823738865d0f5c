import { expect, test } from 'vitest';
import { z } from 'zod';
import { methods } from '../../src/methods/methods.gen.js';
import { parseWith } from '../../src/server/method.js';
import {
  allowedUpdates,
  boolean,
  entities,
  integer,
  messageIds,
  replyMarkup,
} from '../../src/wire/schema.js';
import { processorMs } from '../support/times.js';

test.each([true, 'true', 'True', 'TRUE', '1', 1])('behaviour §1: the boolean %j is read as true', (value) =>
  expect(boolean.parse(value)).toBe(true),
);

test.each([false, 'false', 'False', '0', 0])('behaviour §1: the boolean %j is read as false', (value) =>
  expect(boolean.parse(value)).toBe(false),
);

test.each(['yes', 'tru', '', 2, null])('behaviour §1: %j is refused as a boolean', (value) =>
  expect(boolean.safeParse(value).success).toBe(false),
);

test.each([
  [7, 7],
  ['7', 7],
  ['-7', -7],
])('behaviour §1: %j is read as the integer %j', (value, number) =>
  expect(integer().parse(value)).toBe(number),
);

test.each([7.5, '7.5', '7x', '', ' 7', '0x7', '1e3', null])(
  'behaviour §1: %j is refused as an integer',
  (value) => expect(integer().safeParse(value).success).toBe(false),
);

test.each([
  ['entities', entities, (n: number) => Array.from({ length: n }, () => ({})), 'parameter_wrong'],
  ['allowed updates', allowedUpdates, (n: number) => Array.from({ length: n }, () => 1), 'parameter_wrong'],
  ['message ids', messageIds, (n: number) => Array.from({ length: n }, () => 'x'), 'parameter_wrong'],
  [
    'a keyboard',
    replyMarkup,
    (n: number) => ({ inline_keyboard: Array.from({ length: n }, () => [{}]) }),
    'keyboard_unparsable',
  ],
] as const)('%s with 150,000 wrong values are refused within 1.5 s', (_, schema, make, kind) => {
  for (const value of [make(150_000), JSON.stringify(make(150_000))]) {
    const took = processorMs(() =>
      expect(() => parseWith(z.object({ value: schema }), { value })).toThrow(
        expect.objectContaining({ kind }),
      ),
    );
    expect(took).toBeLessThan(1_500);
  }
});

test.each([
  ['entities', { text: 'a', entities: Array.from({ length: 9_900 }, () => 1) }],
  ['a keyboard', { text: 'a', reply_markup: { inline_keyboard: Array.from({ length: 9_900 }, () => 1) } }],
])('sendMessage refuses %s with 9,900 wrong values within 8 ms', (_, given) => {
  const { params } = methods.find(({ name }) => name === 'sendMessage') ?? {};
  const times = Array.from({ length: 15 }, () =>
    processorMs(() => expect(() => parseWith(params as z.ZodType, { chat_id: 1, ...given })).toThrow()),
  );
  expect(Math.min(...times)).toBeLessThan(8);
});

test('a list of 4,800 entities is refused', () => {
  const many = Array.from({ length: 2_400 }, () => ({ type: 'bold', offset: 0, length: 1 }));
  expect(parseWith(z.object({ value: entities }), { value: many })).toEqual({ value: many });
  const one = [...many, ...many];
  expect(() => parseWith(z.object({ value: entities }), { value: one })).toThrow('an array of entities');
});

/**
 * Parameters in which the text "null" is an ordinary value. In other parameters, this text means that the parameter is
 * absent.
 */
const freeTexts = ['caption', 'text', 'title', 'performer', 'certificate', 'url'];
freeTexts.push(
  'photo',
  'video',
  'audio',
  'document',
  'animation',
  'voice',
  'video_note',
  'sticker',
  'media',
  'thumbnail',
  'external_id',
  'question',
  'explanation',
  'next_offset',
);

const optionalParameters = methods.flatMap((method) => {
  const shape = method.params instanceof z.ZodObject ? method.params.shape : {};
  return Object.entries(shape)
    .filter(([, schema]) => (schema as z.ZodType).safeParse(undefined).success)
    .map(([name, schema]) => [`${method.name} ${name}`, name, schema as z.ZodType] as const);
});

test.each(optionalParameters)('%s treats null as absent', (_, name, schema) => {
  const absent = schema.parse(undefined);
  expect(schema.parse(null) ?? absent).toEqual(absent);
  if (!freeTexts.includes(name)) expect(schema.parse('null')).toEqual(absent);
});
