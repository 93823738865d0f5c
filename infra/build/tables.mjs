/** Generates the tables of the documents from the code: `npm run generate`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { rateText, settings } from '../../dist/config/config.js';
import { secretSettings } from '../../dist/config/config_file.js';
import { endpoints } from '../../dist/endpoints/endpoints.gen.js';
import { catalogue } from '../../dist/errors.js';
import { methods } from '../../dist/methods/methods.gen.js';
import { actions } from '../../dist/testmode/actions.js';
import { testEndpoints } from '../../dist/testmode/endpoints.js';
import { coverageTable, librariesTable } from './client_libraries.mjs';
import { withFigures } from './growing.mjs';
import { table, withTable } from './markdown_tables.mjs';

const code = (text) => `\`${text}\``;

/** Returns a setting's allowed values, taken from its error message. */
function allowed(schema) {
  const refused = schema.safeParse('?');
  return refused.success ? 'text' : (refused.error.issues[0]?.message ?? '');
}

/**
 * Returns a setting's default in the form in which an operator writes the setting. Only the default of a rate is an
 * object.
 */
const shown = (fallback) =>
  typeof fallback === 'object' && fallback !== null && 'calls' in fallback
    ? rateText(fallback)
    : String(fallback);

function settingsTable() {
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

const methodsTable = () =>
  table(
    ['method', 'what it does'],
    methods.map((method) => [code(method.name), method.summary]),
  );

const endpointsTable = () =>
  table(
    ['call', 'who', 'what it does'],
    endpoints.map(({ verb, path, caller, summary }) => [code(`${verb} ${path}`), caller, summary]),
  );

const testEndpointsTable = () =>
  table(
    ['call', 'what it does'],
    testEndpoints.map(({ verb, path, summary }) => [code(`${verb} ${path}`), summary]),
  );

const actionsTable = () =>
  table(
    ['action', 'parameters', 'what it does'],
    actions.map(({ name, summary, params }) => [
      code(name),
      Object.keys(params.shape).map(code).join(', '),
      summary,
    ]),
  );

/** Returns a code example for the document about testing bots. The test suite also runs this example. */
const exampleText = (language, file) => {
  const text = readFileSync(new URL(`../../test/testmode/${file}`, import.meta.url), 'utf8');
  return `\`\`\`${language}\n${text}\`\`\``;
};

const errorsTable = () =>
  table(
    ['status', 'description'],
    Object.values(catalogue).map(({ code: status, text }) => [String(status), code(text)]),
  );

/**
 * Which document contains which tables. A document marks the place of a table with `<!-- name -->` and `<!-- /name
 * -->`.
 */
const tables = [
  ['methods', 'bots.md', methodsTable],
  ['libraries', 'bots.md', librariesTable],
  ['coverage', 'bots.md', () => coverageTable(methods.map(({ name }) => name))],
  ['endpoints', 'api.md', endpointsTable],
  ['errors', 'api.md', errorsTable],
  ['settings', 'settings.md', settingsTable],
  ['secret_files', 'settings.md', () => secretSettings.map((name) => `- ${code(`${name}_FILE`)}`).join('\n')],
  ['vitest', 'testing_bots.md', () => exampleText('ts', 'example.long.test.ts')],
  ['node_test', 'testing_bots.md', () => exampleText('js', 'examples/bot.mjs')],
  ['pytest', 'testing_bots.md', () => exampleText('py', 'examples/test_bot.py')],
  ['actions', 'testing_bots.md', actionsTable],
  ['test_endpoints', 'testing_bots.md', testEndpointsTable],
];

function update(file, make) {
  const path = new URL(`../docs/${file}`, import.meta.url);
  const present = readFileSync(path, 'utf8');
  const wanted = make(present);
  if (wanted !== present) writeFileSync(path, wanted);
}

for (const [name, file, make] of tables) update(file, (text) => withTable(text, name, make()));
update('growing.md', (text) => withFigures(text));
