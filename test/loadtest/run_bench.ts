/** Runs the benchmark from the build, with one round of a second for each scenario. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));

export interface Ended {
  readonly code: number;
  readonly output: string;
  readonly complaint: string;
  /** The names of the files that the run left in its temporary folder. */
  readonly left: readonly string[];
}

/** The run gets a new temporary folder in `dir`. */
export function bench(dir: string, name: string, ...args: readonly string[]): Promise<Ended> {
  const temporary = mkdtempSync(join(dir, `${name}-`));
  chmodSync(temporary, 0o711);
  const short = [
    '--rounds',
    '1',
    '--seconds',
    '1',
    '--warmup',
    '0',
    '--connections',
    '4',
    '--posts',
    '8',
    '--no-sweep',
  ];
  const env = { ...process.env, TMPDIR: temporary };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [launcher, 'measure', ...short, ...args],
      { env, timeout: 280_000 },
      (error, output, complaint) => {
        const code = error === null ? 0 : Number(error.code ?? 1);
        resolve({ code, output, complaint, left: readdirSync(temporary) });
      },
    );
  });
}
