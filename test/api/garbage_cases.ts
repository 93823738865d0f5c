/** Generates garbage: calls with any number of invalid parts, and valid calls with exactly one invalid part. */
import fc from 'fast-check';
import { asText, type Case, forms, type Target, targets } from './garbage_calls.js';
import {
  fittingObject,
  type Given,
  garbage,
  type Hints,
  type Json,
  refusedValue,
  spoiled,
  unstorable,
} from './garbage_values.js';

const segmentNames = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);

/** Removes a timeout above one second, because a long poll would occupy its connection. */
const impatient = (params: Given): Given => {
  const { timeout, ...rest } = params;
  const waits = (typeof timeout === 'number' || typeof timeout === 'string') && Number(timeout) > 1;
  return waits ? rest : params;
};

/**
 * Removes the parameter with which the call would delete the calling person or revoke the caller's token. Later cases
 * need both.
 */
function lasting(target: string, params: Given, tokenId: number): Given {
  if (target === 'DELETE /api/me') {
    const { confirm: _, ...rest } = params;
    return rest;
  }
  if (target === 'DELETE /api/me/tokens' && Number(asText(params.id ?? '')) === tokenId) {
    const { id: _, ...rest } = params;
    return rest;
  }
  return target === 'getUpdates' ? impatient(params) : params;
}

const form = fc.constantFrom(...forms);
const oneOfEach = (of: readonly Target[], make: (target: Target) => fc.Arbitrary<Case>) =>
  fc.oneof(...of.map(make));

/**
 * Generates a call with up to three invalid parts. `tokenId` is the id of the token with which people make their calls.
 */
export const wildCase = (hints: (target: Target) => Hints, tokenId: number): fc.Arbitrary<Case> =>
  oneOfEach(targets, (target) => {
    const spoil = fc.record({
      path: fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 4 }),
      bad: garbage,
    });
    const extra = fc.tuple(fc.constantFrom('__proto__', 'x', 'toString', 'ok', 'caption', ''), garbage);
    return fc
      .record(
        {
          base: fittingObject(target.shape, hints(target)),
          spoils: fc.oneof(fc.constant([]), fc.array(spoil, { minLength: 1, maxLength: 3 })),
          extras: fc.array(extra, { maxLength: 1 }),
          form,
          files: fc.boolean(),
          token: garbage,
          useToken: fc.nat({ max: 40 }),
          idempotencyKey: fc.stringMatching(/^[!-~]{1,300}$/),
          useKey: fc.nat({ max: 12 }),
        },
        { noNullPrototype: true },
      )
      .map(({ base, spoils, extras, token, useToken, idempotencyKey, useKey, ...rest }) => {
        let params: Json = base;
        for (const { path, bad } of spoils) params = spoiled(params, path, bad);
        const whole = { ...(params as Given), ...Object.fromEntries(extras) };
        return {
          target: target.name,
          params: lasting(target.name, whole, tokenId),
          ...rest,
          ...(useToken === 0 ? { token: `9${asText(token).slice(0, 300)}` } : {}),
          ...(useKey === 0 ? { idempotencyKey } : {}),
        };
      });
  });

const broken = [
  '{',
  '{"a":1',
  '[1]',
  '"a"',
  'null',
  '{"a":1}}',
  '{"a":"\xff"}',
  '{"a":"\\ud800"}',
  '{"\\u0000":1}',
];
const deep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
const brokenParts = [
  '',
  '--b',
  '--b\r\n\r\n--b--',
  '--c\r\n\r\n\r\n--c--',
  '--b\r\nContent-Disposition: form-data; name="a',
];

/** Generates a call that must be refused because exactly one part of it is invalid. */
export const refusedCase = (hints: (target: Target) => Hints): fc.Arbitrary<Case> =>
  oneOfEach(
    targets.filter(({ deaf }) => !deaf),
    (target) => {
      const properties = Object.entries(target.shape.properties ?? {});
      const inPath = segmentNames(target.path ?? '');
      const base = fittingObject(target.shape, hints(target));
      const made = (given: fc.Arbitrary<Partial<Case>>): fc.Arbitrary<Case> =>
        fc.tuple(base, form, given).map(([params, each, poison]) => ({
          ...{ target: target.name, form: each },
          ...poison,
          params: { ...params, ...poison.params },
        }));
      const wrong = properties.flatMap(([name, shape]) =>
        forms.flatMap((each) => {
          const value = inPath.includes(name)
            ? null
            : refusedValue(shape, each === 'json' && target.verb !== 'GET');
          return value === null ? [] : [made(value.map((bad) => ({ form: each, params: { [name]: bad } })))];
        }),
      );
      const texts = made(
        fc
          .tuple(
            fc.constantFrom(
              'x',
              ...properties.map(([name]) => name).filter((name) => !inPath.includes(name)),
            ),
            unstorable,
          )
          .map(([name, bad]) => ({ params: { [name]: bad } })),
      );
      const body = made(fc.constantFrom(...broken, deep).map((raw) => ({ raw, form: 'json' as const })));
      const parts = made(
        fc.constantFrom(...brokenParts).map((raw) => ({
          raw: `${raw} `,
          form: 'json' as const,
          contentType: 'multipart/form-data; boundary=b',
        })),
      );
      return fc.oneof(
        ...(wrong.length === 0 ? [] : [{ weight: 6, arbitrary: fc.oneof(...wrong) }]),
        { weight: 2, arbitrary: texts },
        ...(target.verb === 'GET'
          ? []
          : [
              { weight: 1, arbitrary: body },
              { weight: 1, arbitrary: parts },
            ]),
      );
    },
  );
