/**
 * Builds the code samples of the reference. Each shows one call with its required parameters, in curl, JavaScript and
 * Python.
 */
import type { Json } from './openapi_schemas.js';

export interface SampleCall {
  readonly verb: string;
  readonly path: string;
  /** The environment variable that contains the token. Null if the call sends no token in a header. */
  readonly token: 'TOKEN' | null;
  readonly query: Readonly<Record<string, unknown>>;
  /** The JSON body, or null for a call without a body. */
  readonly body: unknown;
  readonly rawType?: string | undefined;
}

const byName: Readonly<Record<string, unknown>> = {
  chat_id: 1000042,
  from_chat_id: 1000042,
  user_id: 1000042,
  message_id: 17,
  text: 'Hello',
  emoji: '👍',
  emoji_list: '👍',
  url: 'https://bot.example/updates',
  username: 'shop_bot',
  name: 'Shop',
  title: 'News',
  first_name: 'Carol',
  phone_number: '+49301234567',
  latitude: 52.52,
  longitude: 13.405,
  file_id: 'AgADBAADxx',
  photo: 'https://example.org/picture.jpg',
  language_code: 'en',
};

type Properties = Readonly<Record<string, Json>>;

const byType: Readonly<Record<string, unknown>> = { array: [], boolean: true, object: {} };

/**
 * Returns a value that fits the schema. Resolves references with `components`. Deeply nested schemas become an empty
 * object.
 */
export function sampleOf(schema: Json, components: Properties, name = '', depth = 0): unknown {
  if (depth > 5) return {};
  const {
    $ref,
    type,
    anyOf,
    oneOf,
    allOf,
    items,
    properties,
    required = [],
  } = schema as Record<string, never>;
  const inner = (of: Json = {}, as = name) => sampleOf(of, components, as, depth + 1);
  if ($ref !== undefined) return inner(components[($ref as string).split('/').at(-1) as string]);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (properties !== undefined) {
    const own = properties as Properties;
    // The sample of a message includes `text` although the schema makes it optional, because a message without content
    // is refused.
    const shown = (required as string[]).length === 0 && 'text' in own ? ['text'] : (required as string[]);
    return Object.fromEntries(shown.map((each) => [each, inner(own[each], each)]));
  }
  if (name in byName && type !== 'array' && type !== 'object') return byName[name];
  const [choice] = (anyOf ?? oneOf ?? allOf ?? []) as Json[];
  if (choice !== undefined) return inner(choice);
  if (type === 'array' && items !== undefined)
    return Array<unknown>(Number(schema.minItems ?? 1) || 1).fill(inner(items, name.replace(/s$/, '')));
  if (type === 'integer' || type === 'number') return Math.max(1, Number(schema.minimum ?? 1));
  return byType[String(type)] ?? (name || 'text');
}

/** Converts JSON to a Python literal. Python spells `true`, `false` and `null` differently. */
const python = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`)
      .join(', ')}}`;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return value === null ? 'None' : JSON.stringify(value);
};

const script = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( *)"([A-Za-z_]\w*)":/gm, '$1$2:');

function urlOf(path: string, query: SampleCall['query']): string {
  const given = Object.entries(query).map(
    ([name, value]) =>
      `${name}=${encodeURIComponent(typeof value === 'object' ? JSON.stringify(value) : String(value))}`,
  );
  return `${path}${given.length === 0 ? '' : `?${given.join('&')}`}`;
}

function curl(call: SampleCall, base: string): string {
  const { verb, token, body, rawType } = call;
  const url = `"${base}${urlOf(call.path, call.query).replace('{token}', '$TOKEN')}"`;
  const usual = body !== null && rawType === undefined ? 'POST' : 'GET';
  const lines = [`curl ${verb === usual ? '' : `-X ${verb} `}${url}`];
  if (token !== null) lines.push(`-H "Authorization: Bearer $${token}"`);
  if (rawType !== undefined) lines.push(`-H 'Content-Type: ${rawType}'`, '--data-binary @picture.png');
  else if (body !== null)
    lines.push(
      "-H 'Content-Type: application/json'",
      `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
    );
  return lines.join(' \\\n  ');
}

function javascript(call: SampleCall, base: string): string {
  const { verb, token, body, rawType } = call;
  const path = `${base}${urlOf(call.path, call.query)}`;
  const url = path.includes('{token}') ? `\`${path.replace('{token}', `\${token}`)}\`` : `'${path}'`;
  const headers = [
    ...(token === null ? [] : [`Authorization: \`Bearer \${token}\``]),
    ...(rawType === undefined ? [] : [`'Content-Type': '${rawType}'`]),
    ...(body === null || rawType !== undefined ? [] : ["'Content-Type': 'application/json'"]),
  ];
  const options = [
    ...(verb === 'GET' ? [] : [`method: '${verb}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(rawType === undefined ? [] : ["body: await readFile('picture.png')"]),
    ...(body === null || rawType !== undefined
      ? []
      : [`body: JSON.stringify(${script(body).replaceAll('\n', '\n  ')})`]),
  ];
  const given = options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`;
  return [
    ...(rawType === undefined ? [] : ["import { readFile } from 'node:fs/promises';"]),
    ...(token !== null || path.includes('{token}')
      ? ["import { env } from 'node:process';", '', 'const token = env.TOKEN;']
      : []),
    `const response = await fetch(${url}${given});`,
    'console.log(await response.text());',
  ].join('\n');
}

function inPython(call: SampleCall, base: string): string {
  const { verb, path, token, query, body, rawType } = call;
  const url = path.includes('{token}') ? `f"${base}${path}"` : `"${base}${path}"`;
  const given = [
    url,
    ...(token === null ? [] : ['headers={"Authorization": f"Bearer {token}"}']),
    ...(Object.keys(query).length === 0 ? [] : [`params=${python(query)}`]),
    ...(rawType === undefined ? [] : ['data=open("picture.png", "rb")']),
    ...(body === null || rawType !== undefined ? [] : [`json=${python(body)}`]),
  ];
  const call_ = `requests.${verb.toLowerCase()}(${given.length === 1 ? url : `\n    ${given.join(',\n    ')},\n`})`;
  return [
    ...(token !== null || path.includes('{token}') ? ['import os'] : []),
    'import requests',
    '',
    ...(token !== null || path.includes('{token}') ? ['token = os.environ["TOKEN"]'] : []),
    `response = ${call_}`,
    'print(response.text)',
  ].join('\n');
}

export const codeSamples = (call: SampleCall, base: string): Json[] => [
  { lang: 'Shell', label: 'curl', source: curl(call, base) },
  { lang: 'JavaScript', label: 'JavaScript', source: javascript(call, base) },
  { lang: 'Python', label: 'Python', source: inPython(call, base) },
];
