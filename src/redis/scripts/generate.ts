/** Generates scripts.gen.ts, the TypeScript types of all script calls, from the headers below lua/. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readScripts, type Script, type ValueSpec, type ValueType } from './contract.js';

const tsTypes: Record<ValueType, string> = {
  text: 'string',
  int: 'number',
  bytes: 'Buffer',
  flag: 'boolean',
  'bytes?': 'Buffer | null',
  'int?': 'number | null',
  'text?': 'string | null',
  texts: 'string[]',
  raw: 'unknown',
};

/** The TypeScript types of numeric and binary arguments. Each type also allows text, for example for ids. */
const argTypes: Partial<Record<ValueType, string>> = { int: 'number | string', bytes: 'Buffer | string' };

const fields = (specs: readonly ValueSpec[]) => specs.map((s) => `; ${s.name}: ${tsTypes[s.type]}`).join('');

function scriptType(script: Script): string {
  const keys = script.keys.map(
    (key) => `${key.name}: ${key.form === 'list' ? 'readonly string[]' : 'string'}`,
  );
  const args = script.args
    .filter((arg) => arg.name !== 'run')
    .map((arg) => {
      const type = argTypes[arg.type] ?? tsTypes[arg.type];
      return `${arg.name}: ${arg.form === 'list' ? `readonly (${type})[]` : type}`;
    });
  const results = [
    `{ status: 'ok'${fields(script.ok)} }`,
    ...[...script.errors].map(([name, specs]) => `{ status: '${name}'${fields(specs)} }`),
  ];
  return [
    `  /** ${script.summary} */`,
    `  '${script.name}': {`,
    `    keys: { ${keys.join('; ')} };`,
    `    args: { ${args.join('; ')} };`,
    `    result:\n      | ${results.join('\n      | ')};`,
    '  };',
  ].join('\n');
}

/** Returns the content of scripts.gen.ts for the scripts below `root`. */
export function generateTypes(root: string): string {
  const scripts = [...readScripts(root).values()];
  return [
    '/** Generated from the headers below lua/ by `npm run generate`. Do not edit. */',
    '',
    'export interface Scripts {',
    ...scripts.map(scriptType),
    '}',
    '',
    'export type ScriptName = keyof Scripts;',
    '',
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = new URL('../../../src/redis/scripts/scripts.gen.ts', import.meta.url);
  const text = generateTypes(fileURLToPath(new URL('../../../lua', import.meta.url)));
  if (text !== readFileSync(target, { encoding: 'utf8', flag: 'a+' })) writeFileSync(target, text);
}
