/** Runs tasks of the built program, `petrel <task>`, as a person would. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface Ran {
  readonly code: number;
  readonly out: string;
  /** The log lines, including the reason of a refusal. */
  readonly log: string;
}

export function petrel(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { env: { ...env }, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      const lines = stdout.split('\n');
      const logged = lines.filter((line) => line.startsWith('{'));
      const out = lines.filter((line) => !line.startsWith('{')).join('\n');
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, out, log: logged.join('\n') + stderr });
    });
  });
}

/** Starts a task that a test kills while the task runs. The caller must end the task. */
export const startPetrel = (
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): ChildProcess => spawn(process.execPath, [main, ...args], { env: { ...env }, stdio: 'ignore' });
