/** Runs the simulator like the command `npm run simulate`, for the long tests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));

/** Returns the exit code, and the output including errors. */
export async function runSimulator(...args: string[]) {
  const child = spawn(process.execPath, [launcher, 'simulate', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { status, output: `${stdout}${stderr}` };
}
