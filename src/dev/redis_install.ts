/** Finds a Redis server on this machine, or installs one with the system's package manager. */
import { spawnSync } from 'node:child_process';
import { Refusal } from './refusal.js';
import { findProgram, install, type Manager } from './system_packages.js';

const major_version_min = 7;

/** Path of `redis-server` or `valkey-server`, or undefined. */
export function findRedis(): string | undefined {
  return findProgram('redis-server') ?? findProgram('valkey-server');
}

/** The version that the server prints, for instance '7.0.15'. */
export function redisVersion(executable: string): string {
  const told = spawnSync(executable, ['--version'], { encoding: 'utf8' }).stdout ?? '';
  return /v=(\d+\.\d+\.\d+)/.exec(told)?.[1] ?? '0';
}

/** Package managers with the names of the server package. The first package that installs is used. */
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
  'install Redis 7 or newer (redis-server) or Valkey yourself, or set REDIS_URL to a running one';

/**
 * Path of a new enough Redis server, which is installed if missing. Logs what it does. Throws a Refusal with the
 * commands to run when it cannot be installed.
 */
export async function ensureRedis(log: (line: string) => void): Promise<string> {
  if (!findRedis())
    await install(
      {
        name: 'Redis',
        managers,
        byHand,
        instead: 'set REDIS_URL to a running Redis',
        present: () => findRedis() !== undefined,
      },
      log,
    );
  const found = findRedis();
  if (!found) throw new Refusal(`Redis could not be installed: ${byHand}`);
  const version = redisVersion(found);
  if (Number.parseInt(version, 10) < major_version_min) {
    throw new Refusal(`${found} is version ${version}, which is too old: ${byHand}`);
  }
  return found;
}
