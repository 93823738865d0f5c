import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../support/servers.js';

const project = fileURLToPath(new URL('../..', import.meta.url));

let root: string;

beforeEach(() => {
  root = temporaryFolder();
  for (const folder of ['infra/build', 'src/deep', 'lua']) mkdirSync(join(root, folder), { recursive: true });
  for (const part of readdirSync(join(project, 'infra/build')).filter((name) => name.endsWith('.mjs')))
    copyFileSync(join(project, 'infra/build', part), join(root, 'infra/build', part));
  writeFileSync(join(root, 'package.json'), '{"type": "module"}');
  symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, 'lua/a.lua'), 'return 1');
  writeFileSync(join(root, 'src/deep/one.sql'), 'select 1');
  writeFileSync(
    join(root, 'src/deep/read.ts'),
    `import { readFileSync } from 'node:fs';
     const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
     export const found = [read('../../lua/a.lua'), read('./one.sql')];`,
  );
  writeFileSync(
    join(root, 'src/main.ts'),
    `import { found } from './deep/read.js';
     import type { Gone } from './deep/read.js';
     const role: Gone = process.argv[2] as Gone;
     if (role === 'fail') throw new Error('on line four');
     console.log(JSON.stringify({ found, role, rest: process.argv.slice(3), pid: process.pid }));`,
  );
});

afterEach(() => rm(root, { recursive: true, force: true }));

async function launch(...given: [env: Record<string, string>, ...args: string[]] | string[]) {
  const [env, args] = typeof given[0] === 'object' ? [given[0], given.slice(1) as string[]] : [{}, given];
  const child = spawn(process.execPath, [join(root, 'infra/build/launch.mjs'), ...(args as string[])], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk));
  const [code] = await once(child, 'close');
  const line = out.split('\n').find((text) => text.startsWith('{'));
  return { code, out, pid: child.pid, printed: line ? JSON.parse(line) : undefined };
}

test('the launcher builds again only if the source has changed', async () => {
  const first = await launch('front', '--x', 'y');
  expect(first.out).toContain('Built in');
  expect(first.printed).toEqual({
    found: ['return 1', 'select 1'],
    role: 'front',
    rest: ['--x', 'y'],
    pid: first.pid,
  });

  utimesSync(join(root, 'src/main.ts'), new Date(), new Date(Date.now() + 60_000));
  expect((await launch('front')).out).not.toContain('Built');

  writeFileSync(join(root, 'src/deep/one.sql'), 'select 2');
  const changed = await launch('front');
  expect(changed.out).toContain('Built in');
  expect(changed.printed.found[1]).toBe('select 2');

  rmSync(join(root, 'src/deep/one.sql'));
  expect((await launch('front')).out).toMatch(/ENOENT.*one\.sql/);
});

test('if several launchers start at the same time, they share one build and leave no other files', async () => {
  for (let round = 0; round < 3; round++) {
    writeFileSync(join(root, 'src/extra.ts'), `export const round = ${round};\n`);
    const all = await Promise.all(Array.from({ length: 4 }, () => launch('front')));
    for (const { code, out, printed } of all) {
      expect(code, out).toBe(0);
      expect(printed.role).toBe('front');
    }
  }
  expect(readFileSync(join(root, 'dist/extra.js'), 'utf8')).toContain('round = 2');
  expect(readdirSync(root).sort()).toEqual(['dist', 'infra', 'lua', 'node_modules', 'package.json', 'src']);
});

test('an error in the program is reported with its line in the source', async () => {
  const { code, out } = await launch('fail');
  expect(code).toBe(1);
  expect(out).toMatch(/on line four[\s\S]*src\/main\.ts:4/);
});

test('without a compiler, the launcher runs the existing build, or reports what to do if no build exists', async () => {
  rmSync(join(root, 'node_modules'));
  mkdirSync(join(root, 'node_modules'));
  const nothing = await launch('front');
  expect(nothing.code).toBe(1);
  expect(nothing.out).toMatch(/^petrel: there is no build, and no compiler/);
  mkdirSync(join(root, 'dist'));
  writeFileSync(join(root, 'dist/main.js'), "console.log(JSON.stringify({ role: 'built' }))");
  const built = await launch('front');
  expect(built.printed).toEqual({ role: 'built' });
});

test('a failed build reports where it failed and keeps the previous build', async () => {
  await launch('front');
  const before = readFileSync(join(root, 'dist/main.js'), 'utf8');
  writeFileSync(join(root, 'src/main.ts'), 'const = ;');
  const { code, out } = await launch('front');
  expect(code).toBe(1);
  expect(out).toMatch(/main\.ts:1/);
  expect(out).toContain('petrel: the build failed');
  expect(readFileSync(join(root, 'dist/main.js'), 'utf8')).toBe(before);
});

test('the launcher installs packages without running their scripts', async () => {
  rmSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'package-lock.json'), '{}');
  // Stands in for npm. Records the arguments, and creates symbolic links instead of installing packages.
  const npm = join(root, 'npm-cli.js');
  writeFileSync(
    npm,
    `import { appendFileSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
     appendFileSync('${root}/calls', process.argv.slice(2).join(' ') + '\\n');
     if (process.argv[2] === 'ci') process.exit(1);
     mkdirSync('${root}/node_modules');
     for (const name of readdirSync('${project}/node_modules'))
       if (!name.startsWith('.')) symlinkSync('${project}/node_modules/' + name, '${root}/node_modules/' + name);`,
  );
  const { code, out } = await launch({ npm_execpath: npm }, 'front');
  expect(code, out).toBe(0);
  const calls = readFileSync(join(root, 'calls'), 'utf8').trim().split('\n');
  expect(calls.map((call) => call.split(' ')[0])).toEqual(['ci', 'install']);
  for (const call of calls) expect(call.split(' ')).toContain('--ignore-scripts');
});

test('the launcher installs again only if required packages differ from the lock file', async () => {
  rmSync(join(root, 'node_modules'));
  mkdirSync(join(root, 'node_modules'));
  const npm = join(root, 'npm-cli.js');
  writeFileSync(npm, `console.log('npm was asked'); process.exit(1);`);
  const one = { version: '1.0.0', integrity: 'sha512-one' };
  const other = { version: '1.0.0', integrity: 'sha512-other', optional: true };
  const launchWith = async (wanted: object, found: object) => {
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: { '': {}, ...wanted } }));
    writeFileSync(join(root, 'node_modules/.package-lock.json'), JSON.stringify({ packages: found }));
    return (await launch({ npm_execpath: npm }, 'build')).out.includes('npm was asked');
  };
  const path = 'node_modules/one';
  expect(await launchWith({ [path]: one }, { [path]: one })).toBe(false);
  expect(await launchWith({ [path]: one, 'node_modules/mac': other }, { [path]: one })).toBe(false);
  expect(await launchWith({ [path]: one, 'node_modules/two': one }, { [path]: one })).toBe(true);
  expect(await launchWith({ [path]: one }, { [path]: one, 'node_modules/two': one })).toBe(true);
  expect(await launchWith({ [path]: one }, { [path]: { ...one, version: '1.0.1' } })).toBe(true);
  expect(await launchWith({ [path]: one }, { [path]: { ...one, integrity: 'sha512-two' } })).toBe(true);
});
