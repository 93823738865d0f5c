/**
 * Installs and starts published bots and programs that were not written for Petrel. Pinned versions are installed into
 * a temporary folder. Only the address of the server and the token are set.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { temporaryFolder } from '../support/servers.js';

const run = promisify(execFile);
const install_ms_max = 120_000;
const redirectFolder = fileURLToPath(new URL('redirect/', import.meta.url));

export interface Started {
  /** Resolves with the next line of the output that matches. */
  line(form: RegExp): Promise<RegExpExecArray>;
  write(text: string): void;
  /** Resolves with the exit code and the complete output. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
  stop(): Promise<void>;
}

/** Starts a program whose environment contains only the given variables. */
function start(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Started {
  const { PATH = '' } = process.env;
  const child = spawn(program, args, { cwd, env: { PATH, ...env }, stdio: 'pipe' });
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  const take = (line: string) => {
    lines.push(line);
    for (const listen of listeners) listen();
  };
  createInterface(child.stdout).on('line', take);
  createInterface(child.stderr).on('line', take);
  const ended = once(child, 'close').then(([code]) => ({ code, output: lines.join('\n') }));
  return {
    ended,
    write: (text) => void child.stdin.write(text),
    line: (form) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.map((line) => form.exec(line)).find((each) => each !== null);
          if (!found) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
        ended.then(({ output }) => reject(new Error(`the program has ended: ${output}`)), reject);
      }),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Returns the last line of the error output of a failed installation. */
const reasonOf = (error: unknown) => {
  const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
  return (stderr || message).trim().split('\n').at(-1);
};

/** Installs npm packages without their scripts. Returns the folder. On failure, prints one line and returns null. */
export async function installNpm(packages: readonly string[]): Promise<string | null> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--save-exact'];
  try {
    await run('npm', ['install', ...options, ...packages], { cwd: folder, timeout: install_ms_max });
    return folder;
  } catch (error) {
    console.warn(`Skipped: a bot with ${packages.join(' ')}: ${reasonOf(error)}`);
    return null;
  }
}

/**
 * Unpacks Debian packages without installing them. Returns the folder. On failure, prints one line and returns null.
 */
export async function unpackDebian(packages: readonly string[]): Promise<string | null> {
  const folder = temporaryFolder();
  const options = { cwd: folder, timeout: install_ms_max };
  try {
    if (!existsSync('/usr/bin/apt-get')) throw new Error('there is no apt-get');
    await run('apt-get', ['download', ...packages], options);
    const { stdout } = await run('find', ['.', '-name', '*.deb'], options);
    for (const file of stdout.trim().split('\n')) await run('dpkg-deb', ['-x', file, '.'], options);
    return folder;
  } catch (error) {
    console.warn(`Skipped: a bot with ${packages.join(' ')}: ${reasonOf(error)}`);
    return null;
  }
}

/** Starts a JavaScript program from installed npm packages. `more` contains additional environment variables. */
export function startNode(
  folder: string,
  [program, ...args]: readonly [string, ...string[]],
  token: string,
  root: string,
  more: Readonly<Record<string, string>> = {},
): Started {
  const all = ['--require', join(redirectFolder, 'https.cjs'), join(folder, program), ...args];
  return start(process.execPath, all, folder, { API_ROOT: root, BOT_TOKEN: token, ...more });
}

/**
 * Starts a program that runs on Bun, which is one of the installed npm packages. `cwd` is the folder with the files of
 * the program.
 */
export function startBun(
  folder: string,
  program: string,
  cwd: string,
  root: string,
  { PATH = '', ...more }: Readonly<Record<string, string>>,
): Started {
  const bun = join(folder, 'node_modules/@oven/bun-linux-x64-baseline/bin/bun');
  const args = ['--preload', join(redirectFolder, 'grammy_bun.cjs'), join(folder, program), 'start'];
  return start(bun, args, cwd, { HOME: cwd, API_ROOT: root, PATH: `${PATH}:${process.env.PATH}`, ...more });
}

/** Returns whether `startBinary` works on this system. Prints one line if it does not work. */
export async function canStartBinaries(): Promise<boolean> {
  try {
    await run('unshare', ['--map-root-user', '--mount', 'true']);
    return true;
  } catch (error) {
    console.warn(`Skipped: compiled programs of Debian: ${reasonOf(error)}`);
    return false;
  }
}

/**
 * Starts a compiled program from unpacked Debian packages. Instead of the system's `/usr/share`, the program sees the
 * folder from these packages.
 */
export function startBinary(folder: string, program: string, args: readonly string[]): Started {
  const script = 'mount --bind usr/share /usr/share && exec "$0" "$@"';
  const all = ['--map-root-user', '--mount', 'sh', '-c', script, join(folder, program), ...args];
  return start('unshare', all, folder, { HOME: folder });
}

/** Matches the empty token in a README program that does not read its token from the environment. */
const emptyToken = /(new Bot(?:<\w+>)?\()""\)/;

/**
 * Finds the first program in a package's README that begins polling, writes this program to a file, and starts it.
 * Changes only two things: removes the TypeScript types, and replaces the placeholder by the token.
 */
export async function startReadme(
  folder: string,
  name: string,
  token: string,
  root: string,
): Promise<Started> {
  const readme = readFileSync(join(folder, 'node_modules', name, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```[jt]s\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
  const program = blocks.find((code) => /\bbot\.(launch|start)\(\)/.test(code));
  if (program === undefined) throw new Error(`the README of ${name} has no program`);
  const given = program.replace(emptyToken, (_, before: string) => `${before}${JSON.stringify(token)})`);
  const { code } = await transform(given, { loader: 'ts' });
  const file = /^import /m.test(program) ? 'bot.mjs' : 'bot.cjs';
  writeFileSync(join(folder, file), code);
  return startNode(folder, [file], token, root);
}

/** Starts a Python program of unpacked Debian packages. */
export function startPython(folder: string, program: string, args: readonly string[], root: string): Started {
  const packages = join(folder, 'usr/lib/python3/dist-packages');
  const env = { API_ROOT: root, HOME: folder, PYTHONPATH: `${redirectFolder}:${packages}` };
  // Ignores Python warnings, because Debian's package warns about the version of urllib3.
  const all = ['-B', '-u', '-W', 'ignore', join(folder, program), ...args];
  return start('/usr/bin/python3', all, folder, { ...env, LANG: 'C.UTF-8' });
}
