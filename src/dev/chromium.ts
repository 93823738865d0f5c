/** Finds Chromium for the browser tests, or installs it with the system's package manager. */
import { Refusal } from './refusal.js';
import { findProgram, install, type Manager } from './system_packages.js';

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Path of a Chromium or Chrome, or undefined. */
export function findChromium(): string | undefined {
  for (const name of names) {
    const found = findProgram(name);
    if (found) return found;
  }
  return undefined;
}

const managers: readonly Manager[] = [
  {
    command: 'apt-get',
    steps: [
      ['apt-get', 'update', '-qq'],
      ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', 'chromium'],
    ],
  },
  { command: 'dnf', steps: [['dnf', 'install', '-y', 'chromium']] },
  { command: 'apk', steps: [['apk', 'add', '--no-cache', 'chromium']] },
  { command: 'pacman', steps: [['pacman', '-Sy', '--noconfirm', 'chromium']] },
  { command: 'brew', steps: [['brew', 'install', '--cask', 'chromium']], unprivileged: true },
];

/**
 * Path of Chromium, which is installed if missing. Throws a Refusal with the commands to run when it cannot be
 * installed.
 */
export async function ensureChromium(log: (line: string) => void): Promise<string> {
  const byHand = 'install Chromium or Chrome yourself, in a folder of the PATH';
  if (!findChromium()) {
    const present = () => findChromium() !== undefined;
    await install({ name: 'Chromium', managers, byHand, instead: byHand, present }, log);
  }
  const found = findChromium();
  if (!found) throw new Refusal(`Chromium could not be installed: ${byHand}`);
  return found;
}
