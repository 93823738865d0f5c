/** Builds the OpenAPI 3.1 document from the methods, endpoints and error catalogue. */
import type { z } from 'zod';
import { catalogue, type ErrorName } from '../errors.js';
import { type Endpoint, kindForPeople } from '../server/endpoint.js';
import { changesState, type Method } from '../server/method.js';
import { type Components, documentSchema, type Json } from './openapi_schemas.js';
import { idempotencyText, introduction, parameterTexts } from './openapi_texts.js';

export interface DocumentOptions {
  readonly methods: readonly Method[];
  readonly endpoints: readonly Endpoint[];
  /** The program version. */
  readonly version: string;
  /** Public URL of the service; without it, the host that the document was loaded from. */
  readonly baseUrl?: string | undefined;
  /** The rate limits that are on, by setting. */
  readonly rates?: Readonly<Record<string, string>> | undefined;
}

type Parts = Readonly<Record<string, Json>>;

const jsonType = 'application/json';
const schemaRef = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const jsonOf = (schema: Json): Json => ({ [jsonType]: { schema } });

/** Errors that any call can answer, besides its own. */
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

/** Error answers by status, with their exact texts. */
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

/** The parameters of a call. A parameter without its own description gets the common one of its name. */
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

/** A parameter in the query or path. Nested values are JSON text there. */
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

function methodPath(method: Method, group: string, components: Components): Json {
  const parameters = parametersOf(method.params, components);
  const names = Object.keys(parameters.properties);
  const changes = changesState(method);
  const result = method.result ? documentSchema(method.result, 'output', components) : {};
  const common = {
    tags: [group],
    summary: method.summary,
    security: [],
    responses: {
      200: { description: 'Done', content: jsonOf(envelope(result)) },
      ...refusals([
        ...(names.length > 0 || changes ? withParameters : []),
        ...(changes ? (['idempotency_key_reused'] as const) : []),
        ...method.errors,
        ...everywhere,
      ]),
    },
  };
  const keyed = changes ? [keyHeader] : [];
  const component = `${title(method.name)}Parameters`;
  if (names.length > 0) components[component] = { type: 'object', ...parameters };
  return {
    parameters: [{ $ref: '#/components/parameters/BotToken' }],
    get: {
      operationId: `${method.name}ByQuery`,
      ...common,
      parameters: [...keyed, ...names.map((name) => parameter('query', name, parameters))],
    },
    post: {
      operationId: method.name,
      ...common,
      parameters: keyed,
      ...(names.length > 0
        ? { requestBody: requestBody(schemaRef(component), parameters.required.length > 0) }
        : {}),
    },
  };
}

function answerOf(endpoint: Endpoint, components: Components): Json {
  if (endpoint.contentType && endpoint.line)
    return { [endpoint.contentType]: { schema: documentSchema(endpoint.line, 'output', components) } };
  if (endpoint.contentType) return { [endpoint.contentType]: { schema: { type: 'string' } } };
  if (endpoint.body) return jsonOf(documentSchema(endpoint.body, 'output', components));
  return jsonOf(envelope(endpoint.result ? documentSchema(endpoint.result, 'output', components) : {}));
}

const securityOf = {
  admin: { operator: [] },
  user: { person: [] },
  partner: { partnerKey: [], partnerSignature: [] },
};

function operationOf(endpoint: Endpoint, components: Components): Json {
  const { verb, path, caller, summary, errors } = endpoint;
  const parameters = parametersOf(endpoint.params, components);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const others = Object.keys(parameters.properties).filter((name) => !inPath.includes(name));
  const changes = verb !== 'GET';
  const inBody = changes && verb !== 'DELETE';
  const bodyOf = (): Json => ({
    type: 'object',
    properties: Object.fromEntries(others.map((name) => [name, parameters.properties[name]])),
    required: parameters.required.filter((name) => others.includes(name)),
  });
  return {
    operationId: `app${title(verb.toLowerCase())}${path.replace(/^\/api/, '').replace(/[/_{}]+(\w?)/g, (_, c: string) => c.toUpperCase())}`,
    tags: [`/api/${path.split('/')[2]}`],
    summary,
    security: [securityOf[caller]],
    parameters: [
      ...(changes ? [keyHeader] : []),
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
        ...(changes ? (['idempotency_key_reused'] as const) : []),
        ...errors.map(kindForPeople),
        ...(caller === 'admin' ? (['address_not_allowed'] as const) : []),
        ...everywhere,
      ]),
    },
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
  },
  securitySchemes: {
    person: { type: 'http', scheme: 'bearer', description: 'Token of a person' },
    operator: {
      type: 'http',
      scheme: 'bearer',
      description: 'ADMIN_TOKEN, or a token of `petrel admin tokens add`',
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
        'ECDSA P-256 with SHA-256 over the body, DER in base64; the name of the header is a setting',
    },
  },
};

/** Builds the OpenAPI document. Throws when two schemas have the same name. */
export function openApiDocument({ methods, endpoints, version, baseUrl, rates }: DocumentOptions): Json {
  const components: Components = { Error: errorSchema };
  const paths: Record<string, Json> = {};
  for (const method of methods)
    paths[`/bot{token}/${method.name}`] = methodPath(method, 'Bot methods', components);
  for (const endpoint of endpoints) {
    const operation = { [endpoint.verb.toLowerCase()]: operationOf(endpoint, components) };
    paths[endpoint.path] = { ...paths[endpoint.path], ...operation };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Petrel', version, description: introduction, ...(rates && { 'x-rates': rates }) },
    servers: [{ url: baseUrl?.replace(/\/+$/, '') ?? '/' }],
    paths,
    components: { ...fixedComponents, schemas: components },
  };
}
