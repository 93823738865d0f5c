#!/usr/bin/env node
/**
 * Gets the program to run from a bare checkout: packages, build, role. Only what Node brings with it is imported here,
 * since this is what installs the rest.
 *
 *   launch.mjs <role> [arguments]   any role of the program, for instance `dev`
 *   launch.mjs build                only packages and build
 *   launch.mjs test [arguments]     the test suite, with Redis installed if absent
 *   launch.mjs test-ui [arguments]  the tests of the web application in their long form, with Chromium installed if absent
 *   launch.mjs faults [arguments]   the tests of faults in their long form, with their figures
 *   launch.mjs bench [arguments]    measures the service against its floors
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle, packageVersions } from './web.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');
const modules = join(root, 'node_modules');
const main = join(dist, 'main.js');
const benchSource = join(root, 'bench');
const benchDist = join(dist, 'bench');

const say = (line) => process.stdout.write(`${line}\n`);

/** An ordinary refusal: shown without a stack. */
class Refusal extends Error {}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 11)) {
    throw new Refusal(`Node ${process.versions.node} is too old: version 20.11 or newer is needed`);
  }
}

const hash = (text) => createHash('sha256').update(text).digest('hex');
const readIfThere = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Runs `work` while no other launch on this checkout does; a lock whose holder is gone is broken. */
async function alone(lock, work) {
  for (let waited = 0; ; waited += 50) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const holder = Number(readIfThere(lock));
      // An empty file is a lock of this very instant, or of a launch that was killed in it.
      if (holder ? !alive(holder) : waited > 1_000) rmSync(lock, { force: true });
      else if (waited === 1_000) say('Another launch is busy on this folder: waiting for it');
      await sleep(50);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    child.once('error', () => resolve(127));
    child.once('close', (code, signal) => resolve(signal ? 1 : (code ?? 1)));
  });
}

/** npm, preferably the one that started us. */
function npm(args) {
  const script = process.env.npm_execpath;
  // Without development packages there is no compiler, whatever the environment says of production.
  const all = [...args, '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  if (script && /npm-cli\.c?js$/.test(script)) return run(process.execPath, [script, ...all]);
  return run(process.platform === 'win32' ? 'npm.cmd' : 'npm', all, { shell: process.platform === 'win32' });
}

const stampPath = join(modules, '.petrel-install');

/** True when the packages on the disk are those of the lock file. */
function packagesAreCurrent(lock) {
  if (!existsSync(modules)) return false;
  const stamp = readIfThere(stampPath);
  if (stamp !== undefined) return stamp === hash(lock);
  // Installed by hand: npm leaves a lock file of its own, which is younger than the one it was made from.
  const own = statSync(join(modules, '.package-lock.json'), { throwIfNoEntry: false });
  if (!own || own.mtimeMs < statSync(join(root, 'package-lock.json')).mtimeMs) return false;
  keepStamp(lock);
  return true;
}

function keepStamp(lock) {
  try {
    writeFileSync(stampPath, hash(lock));
  } catch {
    // A read-only image: the next start looks again.
  }
}

async function ensurePackages() {
  const lock = readIfThere(join(root, 'package-lock.json'));
  if (lock === undefined) {
    if (existsSync(modules)) return;
    throw new Refusal('package-lock.json is missing: this is not a complete copy of the project');
  }
  if (packagesAreCurrent(lock)) return;
  await alone(join(root, '.launch-install.lock'), async () => {
    if (packagesAreCurrent(lock)) return;
    const started = Date.now();
    say(
      `${existsSync(modules) ? 'package-lock.json has changed: updating' : 'First start: installing'} packages`,
    );
    const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`;
    const beat = setInterval(() => say(`  still installing, ${elapsed()}`), 5_000);
    let code = await npm(['ci']);
    if (code !== 0 && code !== 127) {
      say('npm ci did not work; trying npm install with the same lock file');
      code = await npm(['install', '--no-save']);
    }
    clearInterval(beat);
    if (code === 127) throw new Refusal('npm was not found: install it, or run npm ci yourself');
    if (code !== 0) throw new Refusal(`the packages could not be installed (npm ended with ${code})`);
    keepStamp(lock);
    say(`  packages installed in ${elapsed()}`);
  });
}

/** Every file below a folder, sorted, so that two runs see the same list. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** The content decides, not the times: a checkout or an image copies files with times of its own. */
function fingerprint(files, compiler) {
  const sum = createHash('sha256').update(compiler);
  for (const file of files) sum.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  return sum.digest('hex');
}

function findCompiler() {
  try {
    return createRequire(import.meta.url).resolve('esbuild');
  } catch {
    return undefined;
  }
}

const isScript = (file) => file.endsWith('.ts') && !file.endsWith('.d.ts');

async function transpile(compiler, files, target, options) {
  const { build, stop } = await import(pathToFileURL(compiler).href).then(
    (module) => module.default ?? module,
  );
  await build({
    entryPoints: files.filter(isScript),
    outdir: target,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'error',
    ...options,
  }).catch(() => {
    throw new Refusal('the build failed, see above');
  });
  // The compiler is a process of its own and would stay for as long as we run.
  await stop();
}

/** The viewer of the API reference: its files go into the build, so that only building needs its package. */
const viewer = join(modules, '@fastify', 'swagger-ui', 'static');
const viewerFiles = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** The part of the application that browsers run: bundled, not transpiled. */
const client = join(source, 'web', 'client');
const isClient = (file) => file.startsWith(client + sep);

async function compileClient(compiler, files, target) {
  const esbuild = await import(pathToFileURL(compiler).href).then((module) => module.default ?? module);
  const made = fingerprint([...files, join(root, 'infra', 'web.mjs')], packageVersions(modules));
  const [to, former] = [target, dist].map((folder) => join(folder, 'web', 'client'));
  await bundle({ esbuild, source: client, target: to, former, fingerprint: made, modules }).catch((error) => {
    throw new Refusal(`the application was not built: ${error.message}`);
  });
  await esbuild.stop();
}

async function compile(compiler, all, target) {
  const files = all.filter((file) => !isClient(file));
  await transpile(compiler, files, target, { bundle: false, outbase: source });
  await compileClient(compiler, all.filter(isClient), target);
  // What the program reads beside its code: SQL migrations, pages.
  for (const file of files.filter((file) => !file.endsWith('.ts'))) {
    const copy = join(target, relative(source, file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
  }
  mkdirSync(join(target, 'docs', 'viewer'), { recursive: true });
  for (const name of viewerFiles.filter((name) => existsSync(join(viewer, name))))
    copyFileSync(join(viewer, name), join(target, 'docs', 'viewer', name));
}

/** The bench is built beside the program it runs: imports of `../src/…` become imports of `../…`, all others stay. */
function compileBench(compiler, files, target) {
  const imports = {
    name: 'imports',
    setup: ({ onResolve }) =>
      onResolve({ filter: /^/ }, ({ kind, path }) =>
        kind === 'entry-point' ? undefined : { path: path.replace(/^\.\.\/src\//, '../'), external: true },
      ),
  };
  return transpile(compiler, files, target, { bundle: true, outbase: benchSource, plugins: [imports] });
}

/**
 * Brings a build up to date. It is made aside and put in place whole; of two launches that race, the second finds
 * its own result there already and leaves the files alone that the first may be loading.
 */
async function ensureBuilt({ from, to, make, program }) {
  const compiler = findCompiler();
  if (!compiler || !existsSync(from)) {
    if (existsSync(program)) return;
    throw new Refusal('there is no build, and no compiler to make one: run npm ci with development packages');
  }
  const files = filesBelow(from);
  const packages = [join(dirname(compiler), '..'), join(viewer, '..')];
  const versions = packages.map((folder) => readIfThere(join(folder, 'package.json'))).join('');
  const bundling = packageVersions(modules) + (readIfThere(join(root, 'infra', 'web.mjs')) ?? '');
  const wanted = fingerprint(files, versions + bundling);
  const isBuilt = () => readIfThere(join(to, '.fingerprint')) === wanted;
  if (isBuilt()) return;
  const started = Date.now();
  const aside = join(root, `.launch-build-${process.pid}`);
  try {
    rmSync(aside, { recursive: true, force: true });
    await make(compiler, files, aside);
    writeFileSync(join(aside, '.fingerprint'), wanted);
    await alone(join(root, '.launch-build.lock'), () => {
      if (isBuilt()) return;
      const old = `${aside}-old`;
      if (existsSync(to)) renameSync(to, old);
      renameSync(aside, to);
      rmSync(old, { recursive: true, force: true });
    });
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  say(`Built in ${Date.now() - started} ms`);
}

const ensureBuild = () => ensureBuilt({ from: source, to: dist, make: compile, program: main });

/** Lies in dist/, so a new build of the program takes it away: it is never older than what it measures. */
const ensureBench = () =>
  ensureBuilt({
    from: benchSource,
    to: benchDist,
    make: compileBench,
    program: join(benchDist, 'main.js'),
  });

/** npm that is killed cannot tell us; that our parent has changed does. */
function endWithNpm() {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  watch.unref();
}

/** Runs a program in this very process, so that signals and the exit code are its own. */
async function takeOver(program, args) {
  process.setSourceMapsEnabled(true);
  process.argv = [process.argv[0], program, ...args];
  await import(pathToFileURL(program).href);
}

async function launch([role, ...args]) {
  checkNode();
  // A server's role never changes the packages it was deployed with.
  if (!existsSync(modules) || ['dev', 'test', 'test-ui', 'build', 'bench', 'faults'].includes(role))
    await ensurePackages();
  await ensureBuild();
  if (role === 'build') return;
  if (['test', 'test-ui', 'faults'].includes(role)) {
    const { testWork } = await import('./tests.mjs');
    process.exitCode = await testWork(role, { dist, run, say })(args);
    return;
  }
  if (role === 'bench' || role === 'dev') endWithNpm();
  if (role === 'bench') {
    await ensureBench();
    return takeOver(join(benchDist, 'main.js'), args);
  }
  return takeOver(main, role === undefined ? [] : [role, ...args]);
}

/** Refusals of our own build carry the same class name, since its modules are not ours to import. */
launch(process.argv.slice(2)).catch((error) => {
  const ordinary = error instanceof Refusal || error?.constructor?.name === 'Refusal';
  process.stderr.write(`petrel: ${ordinary ? error.message : (error?.stack ?? error)}\n`);
  process.exitCode = 1;
});
