/** Bots on client libraries in other languages. Each bot runs in a separate process. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { debianLibraries, hasDebianLibrary } from '../../infra/build/client_libraries.mjs';
import { png } from '../support/samples.js';
import { temporaryFolder } from '../support/servers.js';
import type { FeatureBot, FeatureRun } from './features.js';

type Name = keyof typeof debianLibraries;
type Command = readonly [program: string, ...args: string[]];

const run = promisify(execFile);
const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

function variables({ bot, root, hook }: FeatureRun): Record<string, string> {
  const picture = join(temporaryFolder(), 'picture.png');
  writeFileSync(picture, png(64, 64));
  const own = { API_ROOT: root, BOT_TOKEN: bot.token, PICTURE: picture };
  if (!hook) return own;
  const { port, certificateFile, keyFile, secret } = hook;
  const tls = { CERTIFICATE: certificateFile, CERTIFICATE_KEY: keyFile };
  return { ...own, ...tls, HOOK_PORT: `${port}`, SECRET: secret };
}

/**
 * Starts a program and waits until it prints `ready`. Resolves with a function that ends the program. Every
 * other line counts as a failure.
 */
async function start([program, ...args]: Command, feature: FeatureRun): Promise<() => Promise<void>> {
  const { PATH = '' } = process.env;
  const child = spawn(program, args, {
    env: { PATH, ...variables(feature) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const errors = createInterface(child.stderr);
  errors.on('line', feature.fail);
  const ready = new Promise<void>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line === 'ready') resolve();
      else feature.fail(line);
    });
    errors.once('line', (line) => reject(new Error(line)));
    exited.then(() => reject(new Error(`${program} has ended`)), reject);
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  try {
    await ready;
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** Builds the Go program offline, with the Go packages from Debian. */
async function buildGo(): Promise<Command> {
  const built = join(temporaryFolder(), 'feature_bot');
  const { PATH, HOME, GOCACHE } = process.env;
  const env = { PATH, HOME, GOCACHE, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '' };
  await run(debianLibraries['telebot.v3'].program, ['build', '-o', built, pathOf('go/feature_bot.go')], {
    env,
  });
  return [built];
}

/** Ignores Python warnings, because Debian's package warns about the version of urllib3. */
const python: Command = [
  debianLibraries['python-telegram-bot'].program,
  ...['-B', '-W', 'ignore', pathOf('python/feature_bot.py')],
];

/** Prints a line for each bot whose library is not installed. */
export const programBots: Readonly<Record<Name, FeatureBot>> = {
  'python-telegram-bot': {
    installed: hasDebianLibrary('python-telegram-bot', console.warn),
    start: (feature) => start(python, feature),
  },
  'telebot.v3': {
    installed: hasDebianLibrary('telebot.v3', console.warn),
    start: async (feature) => start(await buildGo(), feature),
  },
};
