/** Compares the table of client libraries with the libraries that the tests use. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { botApiMethods, debianLibraries, npmLibraries } from '../../infra/build/client_libraries.mjs';
import { methods } from '../../src/methods/methods.gen.js';
import { libraries } from '../clients/feature_libraries.js';
import { programBots } from '../clients/feature_programs.js';

const document = readFileSync(new URL('../../infra/docs/bots.md', import.meta.url), 'utf8');
const tableOf = (name: string) => document.split(new RegExp(`<!-- /?${name} -->`))[1] ?? '';

test('the table of libraries lists each library that the tests use for the feature bot', () => {
  expect(npmLibraries).toEqual(Object.keys(libraries));
  expect(Object.keys(debianLibraries)).toEqual(Object.keys(programBots));
  const rows = tableOf('libraries').match(/^\| `.*$/gm);
  expect(rows).toHaveLength(npmLibraries.length + Object.keys(debianLibraries).length);
});

test('the table of methods lists each method of the Bot API that Petrel lacks', () => {
  const own = methods.map(({ name }) => name);
  const all: string[] = botApiMethods();
  expect(all.length).toBeGreaterThan(150);
  const listed = (title: string) =>
    tableOf('coverage')
      .split('\n')
      .find((row) => row.includes(title)) ?? '';
  const missing = all.filter((name) => !own.includes(name));
  expect(listed('404').match(/\w+(?=`)/g)).toEqual(missing);
  expect(listed('only in Petrel').match(/\w+(?=`)/g)).toEqual(
    own.filter((name) => !all.includes(name)).sort(),
  );
});
