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

/** Path of a program by name, or undefined. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...usualFolders];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

export interface Manager {
  readonly command: string;
  readonly steps: readonly (readonly string[])[];
  /** Homebrew refuses to run as root. */
  readonly unprivileged?: boolean;
}

export interface Wanted {
  /** Name for people. */
  readonly name: string;
  readonly managers: readonly Manager[];
  /** How to install it by hand. */
  readonly byHand: string;
  /** An alternative to the installation, for people without root. */
  readonly instead: string;
  readonly present: () => boolean;
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

/** Runs one step and returns its exit code. Passes its output to `log` line by line. */
function run(argv: readonly string[], log: (line: string) => void): Promise<number> {
  return new Promise((done) => {
    const [command = '', ...args] = argv;
    const child = spawn(command, args, {
      // RUNLEVEL=1 tells Debian's invoke-rc.d not to start the package's service.
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

/** Installs a program and logs what it does. Throws a Refusal with the commands to run when it cannot. */
export async function install(wanted: Wanted, log: (line: string) => void): Promise<void> {
  const { name, managers, byHand, present } = wanted;
  const manager = managers.find(({ command, unprivileged }) => {
    return findProgram(command) && !(unprivileged && process.getuid?.() === 0);
  });
  if (!manager)
    throw new Refusal(`${name} is not installed and no known package manager was found: ${byHand}`);
  const prefix = privileges(manager, wanted);
  log(`${name} is not installed: installing it with ${manager.command}`);
  let failed = 0;
  for (const step of manager.steps) {
    // sudo resets the environment, so it is set again inside.
    const environment = prefix.length > 0 ? ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1'] : [];
    failed = await run([...prefix, ...environment, ...step], log);
  }
  if (failed !== 0 && !present()) {
    throw new Refusal(`${manager.command} could not install ${name} (exit code ${failed}): ${byHand}`);
  }
}
