/**
 * `npm run bench:compare -- <ref>`: compares the current commit with the commit `<ref>`. The benchmarks of the two
 * commits run alternately on this machine. Checks `<ref>` out to a temporary folder and uses the bench code of that
 * commit. Exits with 1 when a budget is exceeded.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { readResults } from '../src/loadtest/results.js';
import { table } from '../src/loadtest/table.js';
import { type Change, changesOf } from './changes.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Options {
  readonly only: string;
  readonly runs: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number;
  readonly budget: number;
}

const number = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  if (text !== '' && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`A number from ${min} to ${max} is needed.`);
};

function git(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr.trim()}`);
  return stdout.trim();
}

/**
 * Checks the commit out to a folder. If both commits have the same lock file, links the packages that are already
 * installed here into the folder.
 */
function checkOut(commit: string, folder: string): void {
  git('worktree', 'add', '--detach', '--quiet', folder, commit);
  const lock = (at: string) => readFileSync(join(at, 'package-lock.json'), 'utf8');
  // If the lock files differ, the launcher in `folder` installs the packages of the commit.
  if (lock(folder) === lock(root) && existsSync(join(root, 'node_modules')))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
}

const runs = new Set<ReturnType<typeof spawn>>();

async function runOf(folder: string, file: string, { only, rounds, seconds, connections }: Options) {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [, launcher = '', role = ''] = /(\S+launch\.mjs) (\w+)/.exec(scripts.bench) ?? [];
  const sizes = { only, rounds, seconds, connections, json: file };
  const args = Object.entries(sizes).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(process.execPath, [join(folder, launcher), role, ...args, '--no-sweep'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  runs.add(child);
  const code = await new Promise((resolve) => child.once('close', resolve));
  runs.delete(child);
  if (code !== 0)
    throw new Error(`the bench of ${folder === root ? 'this tree' : 'the other commit'} exited with ${code}`);
  return readResults(readFileSync(file, 'utf8'));
}

const shown = ({ what, unit, before, after, ratio, limit, broken }: Change): string[] => [
  what,
  `${before.toFixed(2)} ${unit}`,
  `${after.toFixed(2)} ${unit}`,
  `${ratio.toFixed(3)} ×`,
  limit === null ? '' : limit,
  broken ? 'BROKEN' : limit === null ? '' : 'kept',
];

async function compare(ref: string, options: Options): Promise<void> {
  const commit = git('rev-parse', '--verify', `${ref}^{commit}`);
  const folder = mkdtempSync(join(tmpdir(), 'petrel-compare-'));
  const other = join(folder, 'tree');
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      for (const child of runs) child.kill('SIGTERM');
    });
  try {
    checkOut(commit, other);
    const [before, after]: [Awaited<ReturnType<typeof runOf>>[], Awaited<ReturnType<typeof runOf>>[]] = [
      [],
      [],
    ];
    for (let i = 0; i < options.runs; i++) {
      const turns = [
        async () => before.push(await runOf(other, join(folder, `before${i}.json`), options)),
        async () => after.push(await runOf(root, join(folder, `after${i}.json`), options)),
      ];
      // Alternates which commit runs first, because the second runs on a warmer machine.
      for (const turn of i % 2 === 0 ? turns : turns.reverse()) await turn();
    }
    const changes = changesOf(before, after, options.budget);
    const head = ['', `${ref} (${commit.slice(0, 10)})`, 'this tree', 'ratio', 'budget', ''];
    process.stdout.write(`\n${table([head, ...changes.map(shown)], 1)}\n`);
    const broken = changes.filter((change) => change.broken);
    process.stdout.write(
      `\n${broken.length} of ${changes.filter(({ limit }) => limit !== null).length} budgets exceeded\n`,
    );
    if (broken.length > 0) process.exitCode = 1;
  } finally {
    spawnSync('git', ['worktree', 'remove', '--force', other], { cwd: root });
    rmSync(folder, { recursive: true, force: true });
  }
}

await new Command('bench:compare')
  .description('Compares this tree with another commit and exits with 1 when a budget is exceeded.')
  .argument('<ref>', 'commit, branch or tag')
  .option(
    '--only <names>',
    'what is measured',
    'getMe,sendMessage,editMessageText,pinChatMessage,reactions,trips',
  )
  .option('--runs <n>', 'runs per side, alternating', number(1, 20), 2)
  .option('--rounds <n>', 'rounds per run', number(1, 100), 3)
  .option('--seconds <s>', 'duration of a turn', number(1, 600), 2)
  .option('--connections <n>', 'connections', number(1, 10_000), 64)
  .option(
    '--budget <share>',
    'allowed increase of the cost per call, and decrease of the share of the floor',
    number(0, 10),
    0.1,
  )
  .addHelpText(
    'after',
    '\nBudgets: CPU time per call of server and Redis, the share of the floor, p99 at half of the rate relative to the floor, round trips\n' +
      'and bytes. Absolute rates and latencies are only shown, because machines are noisy. The commit must have a bench\n' +
      'that writes the same version of the result file.',
  )
  .action((ref: string, options: Options) =>
    compare(ref, options).catch((error: Error) => {
      process.stderr.write(`bench:compare: ${error.message}\n`);
      process.exitCode = 1;
    }),
  )
  .parseAsync();
