/** Tests that the OpenAPI document is valid and agrees with the registry of methods and endpoints. */
import { spawnSync } from 'node:child_process';
import { Validator } from '@seriousme/openapi-schema-validator';
import { transformSync } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../src/docs/openapi.js';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { catalogue } from '../../src/errors.js';
import { methods } from '../../src/methods/methods.gen.js';
import { kindForPeople } from '../../src/server/endpoint.js';
import { changesState } from '../../src/server/method.js';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly 'x-codeSamples': ReadonlyArray<{ label: string; source: string }>;
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
  webhooks: Record<string, { post: Operation }>;
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

test('the OpenAPI document is valid OpenAPI 3.1', async () => {
  const validator = new Validator();
  const outcome = await validator.validate(JSON.parse(JSON.stringify(document)));
  expect(outcome.errors).toBeUndefined();
  expect([outcome.valid, validator.version, document.openapi]).toEqual([true, '3.1', '3.1.0']);
  expect(document.servers).toEqual([{ url: 'https://bots.example' }]);
});

test('the OpenAPI document lists every method and endpoint once, and nothing else', () => {
  const wanted = [
    ...methods.map(({ name }) => `POST /bot{token}/${name}`),
    ...endpoints.map(({ verb, path }) => `${verb} ${path}`),
  ];
  expect(operations.map(([name]) => name).sort()).toEqual(wanted.sort());
  const ids = operations.map(([, { operationId }]) => operationId);
  expect(ids).toHaveLength(new Set(ids).size);
});

test('every reference in the OpenAPI document points to a part that exists', () => {
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
  test('the OpenAPI document describes each parameter', () => {
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

  test('the OpenAPI document lists each refusal of an operation once, with its exact text and status', () => {
    const own = methods.find((method) => name.endsWith(`/bot{token}/${method.name}`));
    const endpoint = endpoints.find(({ verb, path }) => name === `${verb} ${path}`);
    // An endpoint that needs no token does not accept idempotency keys, so the document does not list the refusal about
    // reused keys.
    const isOpen = endpoint?.caller === 'anyone';
    const changes = own ? changesState(own) : endpoint?.verb !== 'GET' && !isOpen;
    for (const kind of [
      ...(own?.errors ?? endpoint?.errors.map(kindForPeople) ?? []),
      ...(['too_many_requests', 'internal', 'unavailable'] as const),
      ...(isOpen ? [] : (['unauthorized'] as const)),
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

test('the required parameters of sendMessage are marked as required for each content type of the body', () => {
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

const missingIn = (params: z.ZodType | null) => {
  const outcome = (params ?? z.object({})).safeParse({});
  return outcome.success ? [] : outcome.error.issues.map(({ path }) => String(path[0]));
};

test.each([...methods])('parameters that $name requires are marked as required', (method) => {
  const { name, params, ofInline } = method;
  const forInline = ofInline && missingIn(ofInline.params);
  // If a method can also edit inline messages, only the parameters that both kinds of edit need are marked as required.
  const missing = missingIn(params).filter((each) => forInline?.includes(each) ?? true);
  const body = operation(`POST /bot{token}/${name}`).requestBody?.content['application/json']?.schema;
  expect(shown(body).required ?? []).toEqual(expect.arrayContaining(missing));
});

test('setWebhook requires no parameter, because a call without a URL deletes the webhook', () => {
  const body = operation('POST /bot{token}/setWebhook').requestBody?.content['application/json']?.schema;
  expect(shown(body).required ?? []).toEqual([]);
});

test('the OpenAPI document names the kind of token that each operation needs', () => {
  expect(operation('POST /bot{token}/sendMessage').security).toEqual([]);
  expect(operation('GET /api/me').security).toEqual([{ person: [] }]);
  expect(operation('POST /api/admin/users').security).toEqual([{ operator: [] }]);
});

test('the OpenAPI document describes webhook requests with their headers and the update in their body', () => {
  const { parameters, requestBody } = document.webhooks.update?.post ?? ({} as Operation);
  expect(parameters.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['webhook-id', 'webhook-timestamp', 'webhook-signature', 'X-Service-Signature']),
  );
  expect(requestBody?.content['application/json']?.schema).toEqual({ $ref: '#/components/schemas/Update' });
});

test('the OpenAPI document lists each event of a stream with the schema of its data', () => {
  const events = (path: string, verb = 'GET') => {
    const { content } = operation(`${verb} ${path}`).responses['200'] as Operation['responses'][string];
    const schema = content['text/event-stream']?.schema as unknown as {
      oneOf: Array<{ title: string; properties: { data: { $ref: string } } }>;
    };
    return schema.oneOf.map(({ title, properties }) => [title, properties.data.$ref?.split('/').at(-1)]);
  };
  expect(events('/api/stream')).toEqual([
    ['ready', 'ReadyEvent'],
    ['message', 'MessageEvent'],
    ['edited_message', 'Message'],
    ['message_deleted', 'MessageDeletedEvent'],
    ['pinned', 'PinnedEvent'],
    ['chat_joined', 'ChatJoinedEvent'],
    ['chat_left', 'ChatLeftEvent'],
    ['chat_read', 'ChatReadEvent'],
    ['chat_settings', 'ChatSettingsEvent'],
    ['scheduled_posts', 'ScheduledPostsEvent'],
    ['profile', 'ProfileEvent'],
    ['chat_draft', 'ChatDraft'],
    ['chat_action', 'ChatActionEvent'],
    ['message_draft', 'MessageDraftEvent'],
    ['message_draft_stopped', 'MessageDraftStoppedEvent'],
    ['callback_answer', 'CallbackAnswerEvent'],
    ['post_reactions', 'PostReactionsEvent'],
    ['reset', 'ResetEvent'],
  ]);
  expect(events('/bot{token}/streamUpdates', 'POST').map(([title]) => title)).toEqual(['update', 'end']);
  expect(events('/api/stream/posts').map(([title]) => title)).toEqual(['ready', 'post_reactions']);
});

describe('code samples', () => {
  test.each(operations)('%s has a sample in each language', (_, { 'x-codeSamples': samples }) => {
    expect(samples.map(({ label }) => label)).toEqual(['curl', 'JavaScript', 'Python']);
    expect(samples.every(({ source }) => source.includes('https://bots.example/'))).toBe(true);
  });

  test.each(methods)(
    'the sample body of $name contains only parameters that the method accepts',
    ({ name, params }) => {
      const [sample] = operation(`POST /bot{token}/${name}`)['x-codeSamples'];
      const body = /-d '(.*)'$/.exec(sample?.source ?? '')?.[1];
      if (params === null || body === undefined) return;
      const outcome = params.safeParse(JSON.parse(body));
      expect(outcome.error?.issues ?? []).toEqual([]);
    },
  );

  test('code samples are valid JavaScript and Python', () => {
    const of = (label: string) =>
      operations.map(([, each]) => each['x-codeSamples'].find((one) => one.label === label)?.source ?? '');
    for (const source of of('JavaScript'))
      expect(() => transformSync(source, { format: 'esm', target: 'es2022' })).not.toThrow();
    const check = 'import ast, json, sys\nfor source in json.load(sys.stdin): ast.parse(source)';
    const run = spawnSync('python3', ['-c', check], {
      input: JSON.stringify(of('Python')),
      encoding: 'utf8',
    });
    if (run.error === undefined) expect(run.stderr).toBe('');
  });
});
