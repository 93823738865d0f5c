/** Finds a Redis server on this machine, or installs one through the system's package manager. */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Refusal } from './refusal.js';

const major_version_min = 7;

/** Folders that a service manager's or an editor's PATH often lacks. */
const usualFolders = [
  '/usr/local/bin',
  '/usr/bin',
  '/usr/sbin',
  '/usr/local/sbin',
  '/opt/homebrew/bin',
  '/opt/local/bin',
  '/snap/bin',
  '/home/linuxbrew/.linuxbrew/bin',
];

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function find(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...usualFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** Path of `redis-server` or `valkey-server`, or undefined. */
export function findRedis(): string | undefined {
  return find('redis-server') ?? find('valkey-server');
}

/** The version a server reports of itself, for instance '7.0.15'. */
export function redisVersion(executable: string): string {
  const told = spawnSync(executable, ['--version'], { encoding: 'utf8' }).stdout ?? '';
  return /v=(\d+\.\d+\.\d+)/.exec(told)?.[1] ?? '0';
}

interface Manager {
  readonly command: string;
  readonly steps: readonly (readonly string[])[];
  /** Homebrew refuses to run as root. */
  readonly unprivileged?: boolean;
}

/** Each with the names under which distributions carry the server: the first that installs is taken. */
const managers: readonly Manager[] = [
  {
    command: 'apt-get',
    steps: [
      ['apt-get', 'update', '-qq'],
      ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', 'redis-server'],
    ],
  },
  { command: 'dnf', steps: [['sh', '-c', 'dnf install -y valkey || dnf install -y redis']] },
  { command: 'yum', steps: [['sh', '-c', 'yum install -y valkey || yum install -y redis']] },
  { command: 'apk', steps: [['sh', '-c', 'apk add --no-cache valkey || apk add --no-cache redis']] },
  {
    command: 'pacman',
    steps: [['sh', '-c', 'pacman -Sy --noconfirm valkey || pacman -Sy --noconfirm redis']],
  },
  { command: 'brew', steps: [['brew', 'install', 'redis']], unprivileged: true },
];

const byHand =
  'install Redis 7 or newer (redis-server) or Valkey yourself, or set REDIS_URL to one that runs already';

function privileges(manager: Manager): readonly string[] {
  if (manager.unprivileged || process.getuid?.() === 0) return [];
  if (find('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0)
    return ['sudo', '-n'];
  const commands = manager.steps.map((step) =>
    step[0] === 'sh' ? `sudo sh -c '${step[2]}'` : `sudo ${step.join(' ')}`,
  );
  throw new Refusal(
    `Redis is not installed, and installing it needs root. Run: ${commands.join(' && ')}\n` +
      'or set REDIS_URL to a Redis that runs already.',
  );
}

/** Runs one step and returns its exit code; its output is passed to `log` line by line. */
function run(argv: readonly string[], log: (line: string) => void): Promise<number> {
  return new Promise((done) => {
    const [command = '', ...args] = argv;
    const child = spawn(command, args, {
      // RUNLEVEL=1 asks Debian's invoke-rc.d not to start the package's own service.
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const show = (chunk: Buffer) => {
      for (const line of chunk.toString('utf8').split('\n'))
        if (/^\s*[^(\s]/.test(line)) log(`  ${line.trimEnd()}`);
    };
    child.stdout.on('data', show);
    child.stderr.on('data', show);
    child.once('error', () => done(127));
    child.once('close', (code) => done(code ?? 1));
  });
}

/**
 * Path of a Redis server that is new enough, installed now if there is none. Says through `log` what it does.
 * Throws a Refusal that tells what to run where it cannot.
 */
export async function ensureRedis(log: (line: string) => void): Promise<string> {
  if (!findRedis()) await install(log);
  const found = findRedis();
  if (!found) throw new Refusal(`Redis could not be installed: ${byHand}`);
  const version = redisVersion(found);
  if (Number.parseInt(version, 10) < major_version_min) {
    throw new Refusal(`${found} is version ${version}, which is too old: ${byHand}`);
  }
  return found;
}

async function install(log: (line: string) => void): Promise<void> {
  const manager = managers.find(({ command, unprivileged }) => {
    return find(command) && !(unprivileged && process.getuid?.() === 0);
  });
  if (!manager) throw new Refusal(`Redis is not installed and no known package manager was found: ${byHand}`);
  const prefix = privileges(manager);
  log(`Redis is not installed: installing it with ${manager.command}`);
  let failed = 0;
  for (const step of manager.steps) {
    // Under sudo the environment is reset, so it is set again inside.
    const environment = prefix.length > 0 ? ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1'] : [];
    failed = await run([...prefix, ...environment, ...step], log);
  }
  if (failed !== 0 && !findRedis()) {
    throw new Refusal(`${manager.command} could not install Redis (exit code ${failed}): ${byHand}`);
  }
}
