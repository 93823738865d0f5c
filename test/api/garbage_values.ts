/**
 * Generates parameters from the schemas of the registry: nearly valid values, garbage, and values that must be refused.
 */
import fc from 'fast-check';
import { z } from 'zod';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type Given = Readonly<Record<string, Json>>;

/** The part of JSON Schema that the parameters of the registry use. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly Json[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Shape;
  readonly additionalProperties?: Shape | boolean;
}

export const shapeOf = (schema: z.ZodType): Shape =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Shape;

/** Maps parameter names to values that exist in the service, such as chat ids, message ids, media and emoji. */
export type Hints = Readonly<Record<string, readonly Json[]>>;

const words = [
  'words',
  '<b>x</b> & <i>y',
  '*x* _y_ ||z||',
  '/start@somebot a',
  '#tag @name https://e.org',
  '👍🏽 ',
  'x'.repeat(300),
];

/**
 * Generates a value that matches the type or enum in `shape`. The service may still refuse the value for another
 * reason.
 */
export function fitting(shape: Shape, hints: Hints, name = '', depth = 0): fc.Arbitrary<Json> {
  const known = hints[name];
  if (known && shape.type !== 'array' && shape.type !== 'object') return fc.constantFrom(...known);
  if (shape.enum) return fc.constantFrom(...shape.enum);
  if (shape.anyOf) return fc.oneof(...shape.anyOf.map((each) => fitting(each, hints, name, depth)));
  switch (Array.isArray(shape.type) ? shape.type[0] : shape.type) {
    case 'integer':
    case 'number':
      return fc.constantFrom<Json>(0, 1, 2, 3, 7, 20, '5');
    case 'boolean':
      return fc.constantFrom<Json>(true, false, 'true', '0');
    case 'array':
      return fc.array(fitting(shape.items ?? {}, hints, name.replace(/s$/, ''), depth + 1), {
        minLength: shape.minItems ?? 0,
        maxLength: Math.max(2, shape.minItems ?? 0),
      });
    case 'object':
      return fittingObject(shape, hints, depth);
    default:
      return fc.constantFrom(...words);
  }
}

/**
 * Generates an object that nearly always has the required parameters and the parameters listed in `hints`. Half of the
 * objects have no other parameters, because a method with twenty optional parameters refuses most combinations of them.
 */
export const fittingObject = (shape: Shape, hints: Hints, depth = 0): fc.Arbitrary<Given> =>
  depth > 0
    ? objectWith(shape, hints, depth)
    : fc.oneof(objectWith(shape, hints, depth), objectWith(withoutOthers(shape, hints), hints, depth));

const withoutOthers = (shape: Shape, hints: Hints): Shape => ({
  ...shape,
  properties: Object.fromEntries(
    Object.entries(shape.properties ?? {}).filter(
      ([name]) => shape.required?.includes(name) || name in hints,
    ),
  ),
});

function objectWith(shape: Shape, hints: Hints, depth: number): fc.Arbitrary<Given> {
  const properties = Object.entries(shape.properties ?? {});
  if (properties.length === 0 && typeof shape.additionalProperties === 'object') {
    const name = shape.propertyNames?.enum ?? ['', 'ru', 'en'];
    return fc.dictionary(
      fc.constantFrom(...(name as string[])),
      fitting(shape.additionalProperties, hints, '', depth + 1),
      { maxKeys: 2 },
    );
  }
  const present = properties.map(([name, each]) => {
    const certain = shape.required?.includes(name) || (name in hints && depth === 0);
    const weight = certain ? 60 : depth === 0 ? 1 : 2;
    return fc.oneof(
      { weight, arbitrary: fitting(each, hints, name, depth + 1) },
      { weight: certain ? 2 : 4, arbitrary: fc.constant(undefined) },
    );
  });
  return fc
    .tuple(...present)
    .map((values) =>
      Object.fromEntries(
        values.flatMap((value, i) => (value === undefined ? [] : [[properties[i]?.[0] as string, value]])),
      ),
    );
}

const nested = (depth: number, leaf: Json): Json => (depth === 0 ? leaf : [nested(depth - 1, leaf)]);

const lone = fc.constantFrom('\ud800', 'a\udc00b', '\udfff\ud83d', '👍\ud83d');
const nul = fc.constantFrom('\u0000', 'a\u0000', '\u0000'.repeat(9));

export const unstorable: fc.Arbitrary<string> = fc.oneof(lone, nul);

export const garbage: fc.Arbitrary<Json> = fc.oneof(
  fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }) as fc.Arbitrary<Json>,
  fc.constantFrom<Json>(
    ...[
      null,
      true,
      false,
      '',
      ' ',
      '0',
      '-1',
      '1e9',
      'NaN',
      'Infinity',
      '0x10',
      '٣',
      '１',
      '1.5',
      '+1',
      '-0',
    ],
    ...['null', 'undefined', '[object Object]', '[]', '{}', '{"a":', '[[[[', '"', '\\', '%00', '%', '\r\n'],
    ...[
      '@',
      '@x',
      `@${'x'.repeat(40)}`,
      'attach://',
      'attach://x',
      'https://',
      'https://e.org/x',
      'http://[::1]/',
    ],
    ...['__proto__', 'constructor', '$1', "';drop table users;--", '../../etc/passwd', '\u202e', '\ufffe'],
    ...[1.5, -1, -0, 1e21, -1e21, 2 ** 31, -(2 ** 31), 2 ** 53, -(2 ** 53), 1e13, -1e13, 1e13 - 1, 1e-9],
  ),
  fc.integer({ min: -60, max: 60 }),
  fc.maxSafeInteger(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }).map(String),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  unstorable,
  fc.constantFrom(4_097, 20_000).map((length) => 'я'.repeat(length)),
  fc
    .nat({ max: 200 })
    .chain((depth) => fc.constantFrom<Json>('x', 1, null).map((leaf) => nested(depth, leaf))),
  fc.nat({ max: 300 }).map((count) => Array.from({ length: count }, (_, i) => i)),
  fc.constant(Object.fromEntries(['toString', 'length', 'then', '__proto__'].map((name) => [name, 1]))),
);

export function spoiled(value: Json, path: readonly number[], bad: Json): Json {
  if (path.length === 0 || typeof value !== 'object' || value === null) return bad;
  const names = Object.keys(value);
  if (names.length === 0) return bad;
  const at = names[(path[0] as number) % names.length] as string;
  const inner = spoiled((value as { readonly [name: string]: Json })[at] as Json, path.slice(1), bad);
  if (Array.isArray(value)) return value.map((each: Json, i) => (String(i) === at ? inner : each));
  return { ...value, [at]: inner };
}

/**
 * Generates a value that a parameter with this schema always refuses. Returns null if the parameter accepts any text.
 */
export function refusedValue(shape: Shape, asJson: boolean): fc.Arbitrary<Json> | null {
  const noNumber: Json[] = ['abc', 'NaN', ' 1', 'Infinity', '0x1', {}, [1], { a: 1 }, '99999999999999999999'];
  if (shape.anyOf) {
    const both = shape.anyOf.every(({ type }) => type === 'integer' || type === 'string');
    return both ? fc.constantFrom<Json>('abc', 'NaN', '@', 'a b', {}, [], [1], 1.5, '1e3') : null;
  }
  if (shape.enum) return fc.constantFrom<Json>('none of these', '0', 'Photo', 'constructor');
  switch (shape.type) {
    case 'integer':
      return fc.constantFrom(...noNumber, '1e3', '1.5', '9007199254740993');
    case 'number':
      return fc.constantFrom(...noNumber);
    case 'boolean':
      return fc.constantFrom<Json>('yes', '2', 'on', {}, [], [true]);
    case 'array':
      // Each text begins with "[", because any other text counts as an absent list and would not be refused.
      return fc.constantFrom<Json>('[', '[}', '["a"', '[1]]');
    case 'object':
      return fc.constantFrom<Json>('[]', '5', '"a"', 'false', '{', 'abc', '[{}]');
    case 'string':
      return asJson ? fc.constantFrom<Json>({}, [], [[]], true, { a: 'b' }, ['a']) : null;
    default:
      return null;
  }
}
