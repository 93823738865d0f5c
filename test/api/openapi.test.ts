/** The OpenAPI document is valid and agrees with the registry of methods and endpoints. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../src/docs/openapi.js';
import { catalogue } from '../../src/errors.js';
import { kindForPeople } from '../../src/server/endpoint.js';
import { endpoints } from '../../src/server/endpoints.gen.js';
import { changesState } from '../../src/server/method.js';
import { methods } from '../../src/server/methods.gen.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters: ReadonlyArray<{
    $ref?: string;
    name?: string;
    in?: string;
    required?: boolean;
    description?: string;
  }>;
  readonly requestBody?: {
    readonly content: Record<string, { schema: Schema }>;
  };
  readonly responses: Record<string, { description: string; content: Record<string, { schema: Schema }> }>;
}

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Record<string, Schema>;
  readonly required?: readonly string[];
}

const document = openApiDocument({
  methods,
  endpoints,
  version: '1.2.3',
  baseUrl: 'https://bots.example/',
}) as unknown as {
  openapi: string;
  servers: unknown;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};
const verbs = ['get', 'post', 'put', 'patch', 'delete'];
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  verbs
    .filter((verb) => item[verb])
    .map((verb) => [`${verb.toUpperCase()} ${path}`, item[verb] as Operation] as const),
);
const operation = (name: string) => operations.find(([each]) => each === name)?.[1] as Operation;
const shown = (schema: Schema | undefined): Schema =>
  schema?.$ref
    ? (document.components.schemas[schema.$ref.split('/').at(-1) as string] as Schema)
    : (schema ?? {});

test('the document is valid OpenAPI 3.1', async () => {
  const validator = new Validator();
  const outcome = await validator.validate(JSON.parse(JSON.stringify(document)));
  expect(outcome.errors).toBeUndefined();
  expect([outcome.valid, validator.version, document.openapi]).toEqual([true, '3.1', '3.1.0']);
  expect(document.servers).toEqual([{ url: 'https://bots.example' }]);
});

test('the document lists every method once for GET and once for POST, every endpoint once, and nothing else', () => {
  const wanted = [
    ...methods.flatMap(({ name }) => [`GET /bot{token}/${name}`, `POST /bot{token}/${name}`]),
    ...endpoints.map(({ verb, path }) => `${verb} ${path}`),
  ];
  expect(operations.map(([name]) => name).sort()).toEqual(wanted.sort());
  const ids = operations.map(([, { operationId }]) => operationId);
  expect(ids).toHaveLength(new Set(ids).size);
});

test('every reference points to an existing part of the document', () => {
  const text = JSON.stringify(document);
  const missing = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].filter(([, path = '']) => {
    let at: unknown = document;
    for (const part of path.split('/')) at = (at as Record<string, unknown> | undefined)?.[part];
    return at === undefined;
  });
  expect(missing.map(([, path]) => path)).toEqual([]);
  expect(text).not.toContain('#/$defs');
});

test('every method and endpoint has a result schema', () => {
  const silent = [
    ...methods.filter(({ result }) => !result).map(({ name }) => name),
    ...endpoints
      .filter(({ result, body, contentType }) => !result && !body && !contentType)
      .map(({ verb, path }) => `${verb} ${path}`),
  ];
  expect(silent).toEqual([]);
});

describe.each(operations)('%s', (name, given) => {
  test('describes each parameter', () => {
    const body = shown(given.requestBody?.content['application/json']?.schema);
    const silent = [
      ...given.parameters
        .filter(({ $ref, description }) => !$ref && !description)
        .map(({ name: own }) => own),
      ...Object.entries(body.properties ?? {})
        .filter(([, { description }]) => !description)
        .map(([own]) => own),
    ];
    expect(silent).toEqual([]);
    expect(given.summary).not.toBe('');
  });

  test('lists each of its refusals once, with its exact text and status', () => {
    const own = methods.find((method) => name.endsWith(`/bot{token}/${method.name}`));
    const endpoint = endpoints.find(({ verb, path }) => name === `${verb} ${path}`);
    const changes = own ? changesState(own) : endpoint?.verb !== 'GET';
    for (const kind of [
      ...(own?.errors ?? endpoint?.errors.map(kindForPeople) ?? []),
      ...(['unauthorized', 'too_many_requests', 'internal', 'unavailable'] as const),
      ...(changes ? (['idempotency_key_reused'] as const) : []),
    ]) {
      const { code, text } = catalogue[kind];
      expect(
        given.responses[code]?.description.split('\n\n').filter((line) => line === `\`${text}\``),
      ).toHaveLength(1);
    }
    expect(given.parameters.some(({ $ref }) => $ref === '#/components/parameters/IdempotencyKey')).toBe(
      changes,
    );
    for (const [status, { description }] of Object.entries(given.responses)) {
      if (status === '200') continue;
      const texts = Object.values(catalogue).filter(({ code }) => String(code) === status);
      for (const line of description.split('\n\n'))
        expect(texts.map(({ text }) => `\`${text}\``)).toContain(line);
    }
  });
});

test('the required parameters of sendMessage are marked as required in the query and in each form of a body', () => {
  const byQuery = operation('GET /bot{token}/sendMessage');
  expect(byQuery.parameters.filter(({ required }) => required).map(({ name }) => name)).toEqual([
    'chat_id',
    'text',
  ]);
  const byBody = operation('POST /bot{token}/sendMessage');
  const contents = byBody.requestBody?.content ?? {};
  expect(Object.keys(contents)).toEqual([
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
  ]);
  for (const { schema } of Object.values(contents))
    expect(shown(schema).required).toEqual(['chat_id', 'text']);
  const result = shown(byBody.responses['200']?.content['application/json']?.schema).properties?.result;
  expect(result).toEqual({ $ref: '#/components/schemas/Message' });
});

test.each([...methods])(
  'every parameter that $name cannot do without is marked as required',
  ({ name, params }) => {
    const outcome = (params ?? z.object({})).safeParse({});
    const missing = outcome.success ? [] : outcome.error.issues.map(({ path }) => String(path[0]));
    const byQuery = operation(`GET /bot{token}/${name}`);
    const required = byQuery.parameters.filter((each) => each.required).map((each) => each.name);
    expect(required).toEqual(expect.arrayContaining(missing));
  },
);

test('operations name the kind of token they need', () => {
  expect(operation('POST /bot{token}/sendMessage').security).toEqual([]);
  expect(operation('GET /api/me').security).toEqual([{ person: [] }]);
  expect(operation('POST /api/admin/users').security).toEqual([{ operator: [] }]);
});
