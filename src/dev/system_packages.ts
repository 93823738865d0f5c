/** Finds programs, and installs them with the system's package manager. */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Refusal } from './refusal.js';

/** Folders that the PATH of a service manager or an editor often lacks. */
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

export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...usualFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

export interface Manager {
  readonly command: string;
  readonly steps: readonly (readonly string[])[];
  /** Whether to run the package manager without root access, because Homebrew refuses to run as root. */
  readonly unprivileged?: boolean;
}

interface Wanted {
  readonly name: string;
  readonly managers: readonly Manager[];
  readonly byHand: string;
  /** The alternative to an installation, for a user without root access. It follows "or" in the error message. */
  readonly instead: string;
  readonly find: () => string | undefined;
}

function privileges(manager: Manager, { name, instead }: Wanted): readonly string[] {
  if (manager.unprivileged || process.getuid?.() === 0) return [];
  if (findProgram('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0)
    return ['sudo', '-n'];
  const commands = manager.steps.map((step) =>
    step[0] === 'sh' ? `sudo sh -c '${step[2]}'` : `sudo ${step.join(' ')}`,
  );
  throw new Refusal(
    `${name} is not installed, and installing it needs root. Run: ${commands.join(' && ')}\n` +
      `or ${instead}.`,
  );
}

function run(argv: readonly string[], log: (line: string) => void): Promise<number> {
  return new Promise((done) => {
    const [command = '', ...args] = argv;
    const child = spawn(command, args, {
      // RUNLEVEL=1 makes Debian's invoke-rc.d not start the package's service.
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

export const apt = (name: string): Manager => ({
  command: 'apt-get',
  steps: [
    ['apt-get', 'update', '-qq'],
    ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', name],
  ],
});

/**
 * Installs the program if it is missing. If the installation fails, throws a Refusal that names the commands to run.
 */
export async function ensureProgram(wanted: Wanted, log: (line: string) => void): Promise<string> {
  const { name, managers, byHand, find } = wanted;
  const present = find();
  if (present) return present;
  const manager = managers.find(({ command, unprivileged }) => {
    return findProgram(command) && !(unprivileged && process.getuid?.() === 0);
  });
  if (!manager)
    throw new Refusal(`${name} is not installed and no known package manager was found: ${byHand}`);
  const prefix = privileges(manager, wanted);
  log(`${name} is not installed: installing it with ${manager.command}`);
  let failed = 0;
  for (const step of manager.steps) {
    // sudo resets the environment, so `env` sets the variables again inside it.
    const environment = prefix.length > 0 ? ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1'] : [];
    failed = await run([...prefix, ...environment, ...step], log);
  }
  const made = find();
  if (made) return made;
  if (failed !== 0)
    throw new Refusal(`${manager.command} could not install ${name} (exit code ${failed}): ${byHand}`);
  throw new Refusal(`${name} could not be installed: ${byHand}`);
}
