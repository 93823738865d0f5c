/**
 * The steps of the image in a plain folder: the first stage is run as it is written, packages anew from the registry, and what the last
 * one copies is put together and served from. `npm run test:image` asks for it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/local/processes.js';
import { environment } from '../support/environment.js';
import { type FreshRedis, freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(join(root, 'infra/deploy/Dockerfile'), 'utf8').replaceAll('\\\n', ' ');
const stages = text
  .split(/^FROM .*$/m)
  .slice(1)
  .map((stage) => stage.split('\n').filter((line) => /^[A-Z]/.test(line)));
const [build = [], last = []] = stages;
const folder = temporaryFolder();
const [built, image] = [join(folder, 'build'), join(folder, 'image')];
let redis: FreshRedis;
let database: Awaited<ReturnType<typeof freshDatabase>>;

const settingsOf = () =>
  Object.fromEntries(
    last
      .filter((line) => line.startsWith('ENV '))
      .flatMap((line) => [...line.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)])
      .map(([, name, quoted, plain]) => [name as string, quoted ?? plain ?? '']),
  );

/** As the engine of containers does it: files of the checkout, or of the stage before. */
function copy(line: string, into: string): void {
  const [, from, names = ''] = /^COPY (?:--from=(\w+) )?(.*)$/.exec(line) ?? [];
  const parts = names.trim().split(/\s+/);
  const target = parts.pop() as string;
  for (const part of parts) {
    const path = from ? join(built, part.replace(/^\/petrel\//, '')) : join(root, part);
    const whole = target.endsWith('/') ? join(into, target, part) : join(into, target);
    mkdirSync(dirname(whole), { recursive: true });
    cpSync(path, whole, { recursive: true, verbatimSymlinks: true });
  }
}

beforeAll(async () => {
  [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  mkdirSync(built, { recursive: true });
  for (const line of build) {
    if (line.startsWith('COPY')) copy(line, built);
    const [, command] = /^RUN (.*)$/.exec(line) ?? [];
    if (command === undefined) continue;
    const { status, stdout, stderr } = spawnSync('sh', ['-ec', command], { cwd: built, encoding: 'utf8' });
    expect(status, `${command}\n${stdout}${stderr}`).toBe(0);
  }
  for (const line of last) if (line.startsWith('COPY')) copy(line, image);
}, 600_000);
afterAll(async () => {
  await Promise.all([redis?.stop(), database?.drop()]);
  rmSync(folder, { recursive: true, force: true });
});

test('what the image holds brings a database up to date and serves, without packages of development', async () => {
  expect(existsSync(join(image, 'node_modules', 'typescript'))).toBe(false);
  const [, script = ''] = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(text)?.[1] ?? '[]');
  const port = await freePort();
  const env = {
    ...environment(redis, database.url, 'an-admin-token-of-the-image'),
    ...settingsOf(),
    ...{ PORT: String(port), PETREL_HOME: join(folder, 'home'), METRICS_PORT: '', PARTITIONS: '4' },
  };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [script, ...args], { cwd: image, env, encoding: 'utf8' });
  expect(run('--version').stdout).toMatch(/^\d+\.\d+\.\d+/);
  const migrated = run('migrate');
  expect(migrated.status, migrated.stdout + migrated.stderr).toBe(0);
  const examined = run('doctor');
  expect(examined.stdout).toMatch(/^engine {7}\S+ \d+/m);
  // It serves, and the check of its health finds it.
  const child = spawn(process.execPath, [script, 'all'], { cwd: image, env, stdio: 'ignore' });
  try {
    const [, check = ''] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(text) ?? [];
    const [, ...args] = JSON.parse(check) as string[];
    const healthy = () => spawnSync(process.execPath, args, { env, encoding: 'utf8' }).status === 0;
    for (const end = performance.now() + 40_000; !healthy(); )
      if (performance.now() > end) throw new Error('it does not become healthy');
  } finally {
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
  expect(child.exitCode).toBe(0);
}, 120_000);
