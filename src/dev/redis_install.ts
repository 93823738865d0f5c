/** Finds a Redis server on this machine. Installs one with the system's package manager if there is none. */
import { spawnSync } from 'node:child_process';
import { Refusal } from './refusal.js';
import { apt, ensureProgram, findProgram, type Manager } from './system_packages.js';

const major_version_min = 7;

export function findRedis(): string | undefined {
  return findProgram('redis-server') ?? findProgram('valkey-server');
}

export function redisVersion(executable: string): string {
  const output = spawnSync(executable, ['--version'], { encoding: 'utf8' }).stdout ?? '';
  return /v=(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? '0';
}

const managers: readonly Manager[] = [
  apt('redis-server'),
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
 * Installs Redis if it is missing or too old. If the installation fails, throws a Refusal that names the commands to
 * run.
 */
export async function ensureRedis(log: (line: string) => void): Promise<string> {
  const found = await ensureProgram(
    { name: 'Redis', managers, byHand, instead: 'set REDIS_URL to a running Redis', find: findRedis },
    log,
  );
  const version = redisVersion(found);
  if (Number.parseInt(version, 10) < major_version_min) {
    throw new Refusal(`${found} is version ${version}, which is too old: ${byHand}`);
  }
  return found;
}
