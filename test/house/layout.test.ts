/** Tests the layout of the repository: its top folder, and the first sentence of each file. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { settings } from '../../src/config/config.js';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { catalogue } from '../../src/errors.js';
import { methods } from '../../src/methods/methods.gen.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const below = (folder: string): string[] =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file))
    : [];
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const code = ['src', 'test', 'lua', 'bench', 'infra']
  .flatMap(below)
  .filter((file) => /\.(ts|mjs|lua|sql)$/.test(file) && !/\.gen\.ts$|node_modules/.test(file));

test('only test files of the short tier may skip tests, because the long tier runs these files completely', () => {
  const users = code.filter((file) => /^test\//.test(file) && /\/support\/tiers\.js'/.test(read(file)));
  expect(users.length).toBeGreaterThan(10);
  expect(users.filter((file) => !/\.test\.ts$/.test(file) || /\.long\.test\.ts$/.test(file))).toEqual([]);
});

test('every file of src describes its job in its first sentence or in the comment of its only export', () => {
  expect(code.length).toBeGreaterThan(150);
  const defines = /^\/\*\*.*\*\/\nexport const|^ {2}summary:/m;
  const silent = code
    .filter((file) => /^src\/.*\.ts$/.test(file))
    .filter((file) => !/^(#!.*\n)?\/\*\*/.test(read(file)))
    .filter((file) => !/^src\/(methods|endpoints)\//.test(file) || !defines.test(read(file)));
  expect(silent).toEqual([]);
});

test('no test is skipped, and no work is marked as unfinished', () => {
  // Joins each searched word from two parts, so that the test does not find the words in its own file.
  const unfinished = new RegExp(`\\b(${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')})\\b`);
  const skipped = new RegExp(`\\b(test|it|describe)\\.(${['skip', 'only', 'todo'].join('|')})\\(`);
  expect(code.filter((file) => unfinished.test(read(file)))).toEqual([]);
  expect(code.filter((file) => skipped.test(read(file)))).toEqual([]);
});

test('the top folder of the repository has few entries', () => {
  const visible = readdirSync(root).filter(
    (name) => !name.startsWith('.') && !['node_modules', 'dist'].includes(name),
  );
  const known = [
    'bench',
    'infra',
    'lua',
    'src',
    'test',
    'docs',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
    'SECURITY.md',
  ];
  const tools = [
    'CONTRIBUTING.md',
    'Dockerfile',
    'biome.json',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'vitest.config.ts',
  ];
  expect(visible.filter((name) => ![...known, ...tools].includes(name))).toEqual([]);
});

describe('infra/docs and README.md', () => {
  const missing = (file: string, texts: readonly string[]) => {
    const text = read(`infra/docs/${file}`);
    return texts.filter((each) => !text.includes(each));
  };

  test('settings.md lists every setting', () => {
    expect(
      missing(
        'settings.md',
        Object.keys(settings).map((name) => `| \`${name}\` |`),
      ),
    ).toEqual([]);
  });

  test('bots.md lists every method, and api.md lists every endpoint and error', () => {
    expect(
      missing(
        'bots.md',
        methods.map(({ name }) => `| \`${name}\` |`),
      ),
    ).toEqual([]);
    expect(
      missing(
        'api.md',
        endpoints.map(({ verb, path }) => `\`${verb} ${path}\``),
      ),
    ).toEqual([]);
    expect(
      missing(
        'api.md',
        Object.values(catalogue).map(({ text }) => `\`${text}\``),
      ),
    ).toEqual([]);
  });

  test('README.md has at most 200 lines', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(200);
  });
});
