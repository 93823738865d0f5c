/** Writes the README's tables from what the program uses, so that they cannot drift apart: `npm run generate`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { endpoints, methods } from '../api/registry.js';
import { rateText, settings } from '../config.js';
import { catalogue } from '../errors.js';

const table = (head: readonly string[], rows: ReadonlyArray<readonly string[]>): string =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');

const code = (text: string) => `\`${text}\``;

/** What a setting allows, in the words of its own refusal. */
function allowed(schema: z.ZodType): string {
  const refused = schema.safeParse('?');
  return refused.success ? 'text' : (refused.error.issues[0]?.message ?? '');
}

/** As it would be given: a rate is the only default that is no plain value. */
const shown = (fallback: unknown): string =>
  typeof fallback === 'object' && fallback !== null && 'calls' in fallback
    ? rateText(fallback as Parameters<typeof rateText>[0])
    : String(fallback);

function settingsTable(): string {
  const rows = Object.entries(settings).map(([name, schema]) => {
    const fallback = schema.safeParse(undefined).data;
    return [
      code(name),
      schema.description ?? '',
      allowed(schema),
      fallback === undefined || shown(fallback) === '' ? '' : code(shown(fallback)),
    ];
  });
  return table(['setting', 'what it is', 'allowed', 'default'], rows);
}

const methodsTable = (): string =>
  table(
    ['method', 'what it does'],
    methods.map((method) => [code(method.name), method.summary]),
  );

const endpointsTable = (): string =>
  table(
    ['call', 'who', 'what it does'],
    endpoints.map(({ verb, path, caller, summary }) => [code(`${verb} ${path}`), caller, summary]),
  );

const errorsTable = (): string =>
  table(
    ['status', 'description'],
    Object.values(catalogue).map(({ code: status, text }) => [String(status), code(text)]),
  );

const tables: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  methods: methodsTable,
  endpoints: endpointsTable,
  errors: errorsTable,
};

/** The README with its tables as they should be now. Throws when a marker is missing. */
export function withTables(readme: string): string {
  let text = readme;
  for (const [name, make] of Object.entries(tables)) {
    const pattern = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`);
    if (!pattern.test(text)) throw new Error(`README.md has no place for the table of ${name}`);
    text = text.replace(pattern, (_, begin: string, end: string) => `${begin}\n${make()}\n\n${end}`);
  }
  return text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = new URL('../../README.md', import.meta.url);
  const present = readFileSync(target, 'utf8');
  const wanted = withTables(present);
  if (wanted !== present) writeFileSync(target, wanted);
}
