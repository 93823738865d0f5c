/** Builds the OpenAPI 3.1 document from the methods, endpoints and error catalogue. */
import type { z } from 'zod';
import { catalogue, type ErrorName } from '../errors.js';
import { type Endpoint, kindForPeople } from '../server/endpoint.js';
import { changesState, type Method } from '../server/method.js';
import { type Components, documentSchema, type Json } from './openapi_schemas.js';
import { idempotencyText, introduction, parameterTexts } from './openapi_texts.js';
import { tags, webhooks } from './openapi_webhooks.js';
import { codeSamples, sampleOf } from './samples.js';

export interface Operations {
  readonly methods: readonly Method[];
  readonly endpoints: readonly Endpoint[];
}

type Parts = Readonly<Record<string, Json>>;

const jsonType = 'application/json';
const schemaRef = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const jsonOf = (schema: Json): Json => ({ [jsonType]: { schema } });

/** The errors that any call can return in addition to its own. */
const everywhere: readonly ErrorName[] = [
  'unauthorized',
  'too_large',
  'too_many_requests',
  'internal',
  'unavailable',
];
const withParameters: readonly ErrorName[] = [
  'bad_request',
  'bad_json',
  'bad_unicode',
  'too_many_parameters',
  'parameter_required',
  'parameter_wrong',
];

function errorExample(kind: ErrorName): Json {
  const { code, text } = catalogue[kind];
  const later = text.includes('{retry_after}');
  return {
    value: {
      ok: false,
      error_code: code,
      description: later ? text.replace('{retry_after}', '1') : text,
      ...(later ? { parameters: { retry_after: 1 } } : {}),
    },
  };
}

function refusals(kinds: readonly ErrorName[]): Json {
  const byStatus = new Map<number, ErrorName[]>();
  for (const kind of new Set(kinds)) {
    const { code } = catalogue[kind];
    byStatus.set(code, [...(byStatus.get(code) ?? []), kind]);
  }
  return Object.fromEntries(
    [...byStatus].map(([code, of]) => [
      String(code),
      {
        description: of.map((kind) => `\`${catalogue[kind].text}\``).join('\n\n'),
        ...(code === 429 || code === 503
          ? { headers: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } } }
          : {}),
        content: {
          [jsonType]: {
            schema: schemaRef('Error'),
            examples: Object.fromEntries(of.map((kind) => [kind, errorExample(kind)])),
          },
        },
      },
    ]),
  );
}

const envelope = (result: Json): Json => ({
  type: 'object',
  properties: { ok: { const: true }, result, description: { type: 'string' } },
  required: ['ok', 'result'],
});

interface Parameters {
  readonly properties: Parts;
  readonly required: readonly string[];
}

/** If the schema of a parameter has no description, uses the shared description for the parameter's name. */
function parametersOf(schema: z.ZodType | null, components: Components): Parameters {
  const whole = schema === null ? {} : documentSchema(schema, 'input', components);
  const properties = (whole.properties ?? {}) as Parts;
  const described = Object.entries(properties).map(([name, property]) => {
    const description = property.description ?? parameterTexts[name];
    return [name, description === undefined ? property : { ...property, description }];
  });
  return { properties: Object.fromEntries(described), required: (whole.required ?? []) as string[] };
}

const isNested = (schema: Json) => schema.type === 'object' || schema.type === 'array';

function parameter(place: 'query' | 'path', name: string, { properties, required }: Parameters): Json {
  const { description, ...schema } = properties[name] as Json;
  return {
    name,
    in: place,
    ...(description === undefined ? {} : { description }),
    required: place === 'path' || required.includes(name),
    ...(isNested(schema) ? { content: jsonOf(schema) } : { schema }),
  };
}

const keyHeader: Json = { $ref: '#/components/parameters/IdempotencyKey' };
const coalesceHeader: Json = { $ref: '#/components/parameters/Coalesce' };
const consumerHeaders: Json[] = ['Consumer', 'ConsumerTimeout'].map((name) => ({
  $ref: `#/components/parameters/${name}`,
}));

const lastEventHeader: Json = { $ref: '#/components/parameters/LastEventId' };

function requestBody(schema: Json, required: boolean): Json {
  const types = [jsonType, 'application/x-www-form-urlencoded', 'multipart/form-data'];
  return { required, content: Object.fromEntries(types.map((type) => [type, { schema }])) };
}

const pictureBody: Json = {
  required: true,
  content: Object.fromEntries(
    ['image/png', 'image/jpeg', 'image/webp'].map((type) => [
      type,
      { schema: { type: 'string', format: 'binary' } },
    ]),
  ),
};

const title = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/**
 * A method that can also edit inline messages has a second set of parameters, with `inline_message_id`. Merges both
 * sets. A parameter counts as required only if both sets require it.
 */
function withInline({ ofInline }: Method, usual: Parameters, components: Components): Parameters {
  if (ofInline === undefined) return usual;
  const inline = parametersOf(ofInline.params, components);
  return {
    properties: { ...usual.properties, ...inline.properties },
    required: usual.required.filter((name) => inline.required.includes(name)),
  };
}

/** Lists every method for POST only. The introduction says that GET works too. */
function methodPath(method: Method, base: string, components: Components): Json {
  const usual = parametersOf(method.params, components);
  const parameters = withInline(method, usual, components);
  const names = Object.keys(parameters.properties);
  const changes = changesState(method);
  const answer = method.events
    ? { 'text/event-stream': { schema: eventsOf(method.events, components) } }
    : jsonOf(envelope(documentSchema(method.result, 'output', components)));
  const component = `${title(method.name)}Parameters`;
  if (names.length > 0) components[component] = { type: 'object', ...parameters };
  return {
    parameters: [{ $ref: '#/components/parameters/BotToken' }],
    post: {
      operationId: method.name,
      tags: ['Bot methods'],
      summary: method.name,
      description: method.summary,
      security: [],
      parameters: [
        ...(changes ? [keyHeader] : []),
        ...(method.coalesces ? [coalesceHeader] : []),
        ...(method.consumes ? consumerHeaders : []),
        ...(method.events ? [lastEventHeader] : []),
      ],
      ...(names.length > 0
        ? { requestBody: requestBody(schemaRef(component), parameters.required.length > 0) }
        : {}),
      responses: {
        200: { description: 'Done', content: answer },
        ...refusals([
          ...(names.length > 0 || changes ? withParameters : []),
          ...(changes ? (['idempotency_key_reused'] as const) : []),
          ...method.errors,
          ...everywhere,
        ]),
      },
      'x-codeSamples': codeSamples(
        {
          verb: changes || names.length > 0 ? 'POST' : 'GET',
          path: `/bot{token}/${method.name}`,
          token: null,
          query: {},
          body: names.length > 0 ? sampleOf({ type: 'object', ...usual }, components as Parts) : null,
        },
        base,
      ),
    },
  };
}

function eventsOf(events: NonNullable<Endpoint['events']>, components: Components): Json {
  return {
    description: 'Server-sent events. `data` is JSON.',
    oneOf: Object.entries(events).map(([name, schema]) => ({
      title: name,
      type: 'object',
      properties: {
        event: { const: name },
        id: { type: 'string', description: 'Value of `Last-Event-ID` when the client reconnects' },
        data: documentSchema(schema, 'output', components),
      },
      required: ['event', 'data'],
    })),
  };
}

function answerOf(endpoint: Endpoint, components: Components): Json {
  if (endpoint.contentType && endpoint.line)
    return { [endpoint.contentType]: { schema: documentSchema(endpoint.line, 'output', components) } };
  if (endpoint.contentType && endpoint.events)
    return { [endpoint.contentType]: { schema: eventsOf(endpoint.events, components) } };
  if (endpoint.contentType) return { [endpoint.contentType]: { schema: { type: 'string' } } };
  if (endpoint.body) return jsonOf(documentSchema(endpoint.body, 'output', components));
  return jsonOf(envelope(endpoint.result ? documentSchema(endpoint.result, 'output', components) : {}));
}

const securityOf = {
  admin: [{ operator: [] }],
  user: [{ person: [] }],
  partner: [{ partnerKey: [], partnerSignature: [] }],
  anyone: [],
};

/** A call that needs no token ignores a wrong token, so it cannot fail with `unauthorized`. */
const everywhereFor = (caller: Endpoint['caller']): readonly ErrorName[] =>
  caller === 'anyone' ? everywhere.filter((kind) => kind !== 'unauthorized') : everywhere;

const operationIdOf = ({ verb, path }: Endpoint): string =>
  `app${title(verb.toLowerCase())}${path.replace(/^\/api/, '').replace(/[/_{}]+(\w?)/g, (_, c: string) => c.toUpperCase())}`;

const groupOf = ({ path }: Endpoint): string => `/api/${path.split('/')[2]}`;

function operationOf(endpoint: Endpoint, base: string, components: Components): Json {
  const { verb, path, caller, summary, errors } = endpoint;
  const parameters = parametersOf(endpoint.params, components);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const others = Object.keys(parameters.properties).filter((name) => !inPath.includes(name));
  const hasKey = verb !== 'GET' && caller !== 'anyone';
  const inBody = verb !== 'GET' && verb !== 'DELETE';
  const bodyOf = (): Json => ({
    type: 'object',
    properties: Object.fromEntries(others.map((name) => [name, parameters.properties[name]])),
    required: parameters.required.filter((name) => others.includes(name)),
  });
  return {
    operationId: operationIdOf(endpoint),
    tags: [groupOf(endpoint)],
    summary: path,
    description: summary,
    security: securityOf[caller],
    parameters: [
      ...(hasKey ? [keyHeader] : []),
      ...inPath.map((name) => parameter('path', name, parameters)),
      ...(inBody ? [] : others.map((name) => parameter('query', name, parameters))),
    ],
    ...(endpoint.rawBody ? { requestBody: pictureBody } : {}),
    ...(endpoint.given
      ? {
          requestBody: {
            required: true,
            content: jsonOf(documentSchema(endpoint.given, 'input', components)),
          },
        }
      : {}),
    ...(inBody && others.length > 0
      ? {
          requestBody: requestBody(
            bodyOf(),
            parameters.required.some((name) => others.includes(name)),
          ),
        }
      : {}),
    responses: {
      200: { description: 'Done', content: answerOf(endpoint, components) },
      ...refusals([
        ...withParameters,
        ...(hasKey ? (['idempotency_key_reused'] as const) : []),
        ...errors.map(kindForPeople),
        ...(caller === 'admin' ? (['address_not_allowed'] as const) : []),
        ...everywhereFor(caller),
      ]),
    },
    'x-codeSamples': codeSamples(
      {
        verb,
        path: path.replace(/\{(\w+)\}/g, (_, name: string) =>
          encodeURIComponent(String(sampleOf(parameters.properties[name] ?? {}, components as Parts, name))),
        ),
        token: caller === 'partner' || caller === 'anyone' ? null : 'TOKEN',
        query: inBody ? {} : (sampleOf(bodyOf(), components as Parts) as Record<string, unknown>),
        body: !inBody
          ? null
          : sampleOf(
              endpoint.given ? documentSchema(endpoint.given, 'input', components) : bodyOf(),
              components as Parts,
            ),
        rawType: endpoint.rawBody ? 'image/png' : undefined,
      },
      base,
    ),
  };
}

const errorSchema: Json = {
  type: 'object',
  description: 'A refusal.',
  properties: {
    ok: { const: false },
    error_code: { type: 'integer', description: 'The HTTP status' },
    description: { type: 'string' },
    parameters: {
      type: 'object',
      properties: { retry_after: { type: 'integer', description: 'Seconds' } },
      required: ['retry_after'],
    },
  },
  required: ['ok', 'error_code', 'description'],
};

const fixedComponents: Json = {
  parameters: {
    BotToken: {
      name: 'token',
      in: 'path',
      required: true,
      description: 'Secret token of the bot',
      schema: { type: 'string' },
    },
    IdempotencyKey: {
      name: 'Idempotency-Key',
      in: 'header',
      description: idempotencyText,
      schema: { type: 'string', maxLength: 255 },
    },
    Coalesce: {
      name: 'X-Service-Coalesce',
      in: 'header',
      description: 'The value `1` is the same as the parameter `coalesce: true`',
      schema: { type: 'string' },
    },
    Consumer: {
      name: 'X-Service-Consumer',
      in: 'header',
      description: 'Same as the parameter `consumer`',
      schema: { type: 'string' },
    },
    LastEventId: {
      name: 'Last-Event-ID',
      in: 'header',
      description: 'Id of the last update that the client has. The stream sends the updates after it',
      schema: { type: 'string' },
    },
    ConsumerTimeout: {
      name: 'X-Service-Consumer-Timeout',
      in: 'header',
      description: 'Same as the parameter `consumer_timeout`. Used only with `X-Service-Consumer`',
      schema: { type: 'string' },
    },
  },
  securitySchemes: {
    person: { type: 'http', scheme: 'bearer', description: 'Token of a person' },
    operator: {
      type: 'http',
      scheme: 'bearer',
      description: 'ADMIN_TOKEN, or a token created with `petrel admin tokens add`',
    },
    partnerKey: {
      type: 'apiKey',
      in: 'header',
      name: 'Github-Public-Key-Identifier',
      description: 'Id of the key that signed the body; the name of the header is a setting',
    },
    partnerSignature: {
      type: 'apiKey',
      in: 'header',
      name: 'Github-Public-Key-Signature',
      description:
        'Signature of the body: ECDSA P-256 with SHA-256, as DER in base64. The name of the header is a setting',
    },
  },
};

/** Returns the entries of the search index: methods by name, endpoints by verb and path. */
export function operationsOf({ methods, endpoints }: Operations): Json[] {
  // Builds the same anchors as the renderer of the documentation pages.
  const slug = (text: string) => text.toLowerCase().replaceAll(' ', '-').replaceAll('/', '');
  const url = (tag: string, id: string) => `/docs/reference#/${slug(tag)}/${slug(id)}`;
  return [
    ...methods.map(({ name, summary }) => ({
      title: name,
      place: 'Bot method',
      text: summary,
      url: url('Bot methods', name),
    })),
    ...endpoints.map((endpoint) => ({
      title: `${endpoint.verb} ${endpoint.path}`,
      place: 'Endpoint',
      text: endpoint.summary,
      url: url(groupOf(endpoint), operationIdOf(endpoint)),
    })),
  ];
}

/**
 * The parts of the document that depend on a front's settings. The front adds them at run time. `baseUrl` is the
 * setting BASE_URL.
 */
export interface HeadOptions {
  readonly version: string;
  /** If undefined, clients use the host that they loaded the document from. */
  readonly baseUrl?: string | undefined;
  readonly rates?: Readonly<Record<string, string>> | undefined;
}

const withoutSlash = (url: string) => url.replace(/\/+$/, '');

export const sampleBase = (baseUrl?: string): string => withoutSlash(baseUrl ?? 'http://localhost:8081');

export const documentHead = ({ version, baseUrl, rates }: HeadOptions): Json => ({
  openapi: '3.1.0',
  info: { title: 'Petrel', version, description: introduction, ...(rates && { 'x-rates': rates }) },
  servers: [{ url: baseUrl === undefined ? '/' : withoutSlash(baseUrl) }],
});

/**
 * Returns the parts of the document that do not depend on settings. `base` is the base URL in code samples. Throws if
 * two schemas have the same name.
 */
export function documentBody({ methods, endpoints }: Operations, base: string): Json {
  const components: Components = { Error: errorSchema };
  const paths: Record<string, Json> = {};
  for (const method of methods) paths[`/bot{token}/${method.name}`] = methodPath(method, base, components);
  for (const endpoint of endpoints) {
    const operation = { [endpoint.verb.toLowerCase()]: operationOf(endpoint, base, components) };
    paths[endpoint.path] = { ...paths[endpoint.path], ...operation };
  }
  return {
    tags: tags(endpoints.map(groupOf)),
    paths,
    webhooks,
    components: { ...fixedComponents, schemas: components },
  };
}

/**
 * Builds the whole OpenAPI document. This takes 0.1 s of CPU time or more, so fronts read the result of `documentBody`
 * from the build instead.
 */
export const openApiDocument = (options: Operations & HeadOptions): Json => ({
  ...documentHead(options),
  ...documentBody(options, sampleBase(options.baseUrl)),
});
