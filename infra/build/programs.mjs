/** Installs programs that some tests need, with the system's package manager (Debian and derivatives). */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { Refusal } from './checkout.mjs';

export function isThere(program) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/usr/bin'];
  return folders.filter(Boolean).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Installs missing programs. `packages` has the Debian package of each program. Prints progress with `say`. Throws a
 * Refusal when it cannot install.
 */
export function ensurePrograms(packages, say) {
  const missing = () => Object.keys(packages).filter((program) => !isThere(program));
  if (missing().length === 0) return;
  const wanted = [...new Set(missing().map((program) => packages[program]))];
  const byHand = `install ${missing().join(', ')} yourself (Debian: apt-get install ${wanted.join(' ')})`;
  if (!isThere('apt-get')) throw new Refusal(byHand);
  const root = process.getuid?.() === 0;
  if (!root && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status !== 0) throw new Refusal(byHand);
  say(`Installing ${wanted.join(', ')} with apt-get`);
  // With RUNLEVEL=1, Debian's invoke-rc.d does not start the packages' services.
  const environment = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1'];
  const apt = [
    ...(root ? [] : ['sudo', '-n']),
    ...environment,
    'apt-get',
    '-o',
    'DPkg::Lock::Timeout=300',
    '-qq',
  ];
  for (const step of [['update'], ['install', '-y', '--no-install-recommends', ...wanted]]) {
    const [command, ...args] = [...apt, ...step];
    spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  if (missing().length > 0) throw new Refusal(byHand);
}

export const balancers = { haproxy: 'haproxy', nginx: 'nginx-light' };
export const watchers = { prometheus: 'prometheus', promtool: 'prometheus' };
