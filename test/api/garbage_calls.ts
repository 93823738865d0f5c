/** Calls of every method and endpoint with the parameters that a case gives, in every form, and what every answer must be. */
import fc from 'fast-check';
import { Pool } from 'undici';
import { expect } from 'vitest';
import { endpoints, methods } from '../../src/api/registry.js';
import { holdEndpoint, holdMethod } from '../support/results.js';
import type { Answer, Service } from '../support/service.js';
import {
  fittingObject,
  type Given,
  garbage,
  type Hints,
  type Json,
  refusedValue,
  type Shape,
  shapeOf,
  spoiled,
  unstorable,
} from './garbage_values.js';

export interface Target {
  readonly name: string;
  readonly caller: 'bot' | 'user' | 'admin';
  readonly verb: string;
  /** With `{name}` for a segment; null for a bot method. */
  readonly path: string | null;
  readonly shape: Shape;
  /** Does not look at parameters at all. */
  readonly deaf: boolean;
  /** May answer otherwise than with JSON. */
  readonly other: boolean;
}

export const targets: readonly Target[] = [
  ...methods.map(
    ({ name, params }): Target => ({
      ...{ name, caller: 'bot', verb: 'POST', path: null, other: false },
      shape: params === null ? {} : shapeOf(params),
      deaf: params === null,
    }),
  ),
  ...endpoints.map(
    ({ verb, path, caller, params, contentType }): Target => ({
      ...{ name: `${verb} ${path}`, caller, verb, path, deaf: false },
      shape: shapeOf(params),
      other: contentType !== undefined,
    }),
  ),
];

const segmentNames = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);

const forms = ['query', 'json', 'urlencoded', 'multipart', 'split', 'labelled'] as const;
type Form = (typeof forms)[number];

/** One call; it is printed when it fails. */
export interface Case {
  readonly target: string;
  readonly params: Given;
  readonly form: Form;
  /** Some parts of a multipart body come as files. */
  readonly files?: boolean;
  /** In the place of the whole body, as latin1. */
  readonly raw?: string;
  readonly contentType?: string;
  /** In the place of the caller's token. */
  readonly token?: string;
  readonly idempotencyKey?: string;
}

const byName = new Map(targets.map((target) => [target.name, target]));

/** As UTF-8, and half a surrogate pair as the three bytes that no decoder takes. */
function bytesOf(text: string): Buffer {
  const parts = text.split(/(\p{Surrogate})/u).map((part) => {
    const code = part.charCodeAt(0);
    return part.length === 1 && code >= 0xd800 && code <= 0xdfff
      ? Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)])
      : Buffer.from(part, 'utf8');
  });
  return Buffer.concat(parts);
}

const escaped = (text: string) =>
  [...bytesOf(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[\w.~-]/.test(char) ? char : `%${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');

const asText = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

const asForm = (params: Given) =>
  Object.entries(params)
    .map(([name, value]) => `${escaped(name)}=${escaped(asText(value))}`)
    .join('&');

function asMultipart(params: Given, files: boolean): Buffer {
  const parts = Object.entries(params).flatMap(([name, value], i) => [
    Buffer.from('--b\r\nContent-Disposition: form-data; name="'),
    bytesOf(name.replace(/[\r\n"]/g, '_')),
    Buffer.from(`"${files && i % 3 === 2 ? '; filename="f.bin"' : ''}\r\n\r\n`),
    bytesOf(asText(value)),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...parts, Buffer.from('--b--\r\n')]);
}

/** What a head may hold besides. */
const query_chars_max = 6_000;

interface Encoded {
  readonly query: string;
  readonly body: Buffer | null;
  readonly contentType: string;
}

function encode({ params, form, files = false, raw, contentType }: Case, verb: string): Encoded {
  if (raw !== undefined)
    return { query: '', body: Buffer.from(raw, 'latin1'), contentType: contentType ?? 'application/json' };
  const names = Object.keys(params);
  const half = names.length >> 1;
  const pick = (from: number, to: number) =>
    Object.fromEntries(names.slice(from, to).map((name) => [name, params[name] as Json]));
  const json = (given: Given) => Buffer.from(JSON.stringify(given));
  const inQuery = form === 'query' || verb === 'GET';
  const query = inQuery ? asForm(params) : form === 'split' ? asForm(pick(0, half)) : '';
  if (query.length > query_chars_max)
    return { query: '', body: json(params), contentType: 'application/json' };
  if (inQuery) return { query, body: null, contentType: '' };
  if (form === 'split')
    return { query, body: json(pick(half, names.length)), contentType: 'application/json' };
  if (form === 'json') return { query, body: json(params), contentType: 'application/json; charset=utf-8' };
  if (form === 'multipart')
    return { query, body: asMultipart(params, files), contentType: 'multipart/form-data; boundary=b' };
  const type = 'application/x-www-form-urlencoded';
  return { query, body: form === 'labelled' ? json(params) : Buffer.from(asForm(params)), contentType: type };
}

export interface Callers {
  readonly bot: string;
  readonly user: string;
  readonly admin: string;
}

export interface Caller {
  /** Makes the call; throws, with the case, unless its answer is what every answer must be. */
  call(given: Case, callers: Callers): Promise<Answer>;
  close(): Promise<void>;
}

/** At most so many are under way at a time. */
const concurrency = 32;

export function openCaller(service: Service): Caller {
  const pool = new Pool(service.fronts[0].url, { connections: concurrency, pipelining: 1 });

  async function send(given: Case, target: Target, callers: Callers): Promise<Answer> {
    const token = given.token === undefined ? callers[target.caller] : escaped(given.token);
    const encoded = encode(given, target.verb);
    const segments = (target.path ?? '').replace(/\{(\w+)\}/g, (_, name: string) =>
      escaped(asText(given.params[name] ?? '')).slice(0, query_chars_max),
    );
    const path = target.path === null ? `/bot${token}/${target.name}` : segments;
    const method = target.path === null && given.form === 'query' ? 'GET' : target.verb;
    const answer = await pool.request({
      path: encoded.query === '' ? path : `${path}?${encoded.query}`,
      method: method as 'GET',
      headers: {
        ...(target.path === null ? {} : { authorization: `Bearer ${token}` }),
        ...(encoded.contentType === '' ? {} : { 'content-type': encoded.contentType }),
        ...(given.idempotencyKey === undefined ? {} : { 'idempotency-key': given.idempotencyKey }),
      },
      body: encoded.body,
    });
    const { statusCode: status, headers } = answer;
    if (status === 200 && target.other) {
      answer.body.on('error', () => undefined).destroy();
      return { status, headers, body: { ok: true } };
    }
    return { status, headers, body: JSON.parse(await answer.body.text()) };
  }

  return {
    async call(given, callers) {
      const target = byName.get(given.target) as Target;
      try {
        const answer = await send(given, target, callers);
        if (!(answer.status === 200 && target.other)) expectEnvelope(answer);
        if (target.path === null) holdMethod(target.name, answer);
        else holdEndpoint(target.verb, target.path, answer);
        return answer;
      } catch (error) {
        throw new Error(`${JSON.stringify(given).slice(0, 2_000)}: ${(error as Error).message}`, {
          cause: error,
        });
      }
    },
    close: () => pool.destroy(),
  };
}

/** Behaviour §1: JSON in every case, a refusal with its status and a text, no fault of the service. */
function expectEnvelope({ status, headers, body }: Answer): void {
  expect(headers['content-type']).toBe('application/json');
  if (status === 200) {
    expect(body.ok).toBe(true);
    return;
  }
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  const parameters = status === 429 ? { parameters: { retry_after: expect.any(Number) } } : {};
  expect(body).toEqual({ ok: false, error_code: status, description: expect.any(String), ...parameters });
  expect(body.description).not.toBe('');
}

/** Runs all cases, `concurrency` at a time. After one has failed no more begin, and those under way come to their end. */
export async function inFlight<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lanes = Array.from({ length: concurrency }, async () => {
    try {
      while (next < items.length) await work(items[next++] as T);
    } catch (error) {
      next = items.length;
      throw error;
    }
  });
  const failed = (await Promise.allSettled(lanes)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

/** Waiting polls would hold their connection for seconds. */
const impatient = (params: Given): Given => {
  const { timeout, ...rest } = params;
  const waits = (typeof timeout === 'number' || typeof timeout === 'string') && Number(timeout) > 1;
  return waits ? rest : params;
};

const form = fc.constantFrom(...forms);
/** All targets alike often. */
const oneOfEach = (of: readonly Target[], make: (target: Target) => fc.Arbitrary<Case>) =>
  fc.oneof(...of.map(make));

/** A call that is spoiled in some places, or in none. */
export const wildCase = (hints: (target: Target) => Hints): fc.Arbitrary<Case> =>
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
          params: target.name === 'getUpdates' ? impatient(whole) : whole,
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

/** A call that would do something, but for one thing for which it must be refused. */
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
