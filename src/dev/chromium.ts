/** Finds Chromium for the browser tests. Installs it with the system's package manager if it is missing. */
import { apt, ensureProgram, findProgram, type Manager } from './system_packages.js';

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

export function findChromium(): string | undefined {
  return names.map(findProgram).find((found) => found !== undefined);
}

const managers: readonly Manager[] = [
  apt('chromium'),
  { command: 'dnf', steps: [['dnf', 'install', '-y', 'chromium']] },
  { command: 'apk', steps: [['apk', 'add', '--no-cache', 'chromium']] },
  { command: 'pacman', steps: [['pacman', '-Sy', '--noconfirm', 'chromium']] },
  { command: 'brew', steps: [['brew', 'install', '--cask', 'chromium']], unprivileged: true },
];

/** Installs Chromium if it is missing. If the installation fails, throws a Refusal that names the commands to run. */
export function ensureChromium(log: (line: string) => void): Promise<string> {
  const byHand = 'install Chromium or Chrome yourself, in a folder of the PATH';
  return ensureProgram({ name: 'Chromium', managers, byHand, instead: byHand, find: findChromium }, log);
}
