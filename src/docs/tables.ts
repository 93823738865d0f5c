/** Generates the tables of the documents from the code: `npm run generate`. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { z } from 'zod';
import { rateText, settings } from '../config/config.js';
import { catalogue } from '../errors.js';
import { endpoints } from '../server/endpoints.gen.js';
import { methods } from '../server/methods.gen.js';

const table = (head: readonly string[], rows: ReadonlyArray<readonly string[]>): string =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((c) => c.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');

const code = (text: string) => `\`${text}\``;

/** The allowed values of a setting, from its own error message. */
function allowed(schema: z.ZodType): string {
  const refused = schema.safeParse('?');
  return refused.success ? 'text' : (refused.error.issues[0]?.message ?? '');
}

/** A default in the form of a setting. Rates are the only defaults that are not plain values. */
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

/** The document of each table. The table stands between `<!-- name -->` and `<!-- /name -->`. */
const tables = [
  ['methods', 'bots.md', methodsTable],
  ['endpoints', 'api.md', endpointsTable],
  ['errors', 'api.md', errorsTable],
  ['settings', 'settings.md', settingsTable],
] as const;

/** Returns a document with its table regenerated. Throws if a marker is missing. */
function withTable(text: string, name: string, made: string): string {
  const pattern = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!pattern.test(text)) throw new Error(`there are no markers for the table ${name}`);
  return text.replace(pattern, (_, begin: string, end: string) => `${begin}\n${made}\n\n${end}`);
}

for (const [name, file, make] of tables) {
  const path = new URL(`../../infra/docs/${file}`, import.meta.url);
  const present = readFileSync(path, 'utf8');
  const wanted = withTable(present, name, make());
  if (wanted !== present) writeFileSync(path, wanted);
}
