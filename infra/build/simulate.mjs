/**
 * Runs the simulator in `test/simulate`, either on the unchanged sources or with a mutation. A mutation replaces text
 * in source files or scripts. `--mutation` selects a mutation from `test/simulate/mutations.json` by name. If the
 * mutation has a `focus`, which names a set of fault conditions, every seed uses these conditions.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { modules, Refusal, root, run } from './checkout.mjs';

/**
 * The simulator allocates many short-lived objects, so fewer garbage collections save time. Extra threads for garbage
 * collection would cost time.
 */
const settings = ['--max-semi-space-size=32', '--single-threaded-gc'];

export const readMutations = () =>
  JSON.parse(readFileSync(join(root, 'test/simulate/mutations.json'), 'utf8'));

function mutated(path, changes) {
  let text = readFileSync(join(root, path), 'utf8');
  for (const { from, to } of changes) {
    if (text.split(from).length !== 2)
      throw new Refusal(`the text to replace must occur exactly once in ${path}: ${from}`);
    text = text.replace(from, () => to);
  }
  return text;
}

/** Bundles the simulator into a new folder. Returns the paths of the program and of the Lua scripts. */
async function bundle(changes) {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-simulate-'));
  // The launcher runs before the packages are installed, so this import cannot be at the top of the file.
  const { build } = await import('esbuild');
  const [program, scripts] = [join(folder, 'main.mjs'), join(folder, 'lua')];
  symlinkSync(modules, join(folder, 'node_modules'));
  cpSync(join(root, 'lua'), scripts, { recursive: true });
  const files = new Map(
    [...new Set(changes.map(({ file }) => file))].map((path) => [
      path,
      mutated(
        path,
        changes.filter(({ file }) => file === path),
      ),
    ]),
  );
  for (const [path, text] of files) if (path.endsWith('.lua')) writeFileSync(join(folder, path), text);
  const change = {
    name: 'mutation',
    setup(builder) {
      builder.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = files.get(relative(root, path));
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      });
    },
  };
  await build({
    entryPoints: [join(root, 'test/simulate/main.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'error',
    plugins: [change],
  });
  return { folder, program, scripts };
}

/** Runs the simulator. Returns its exit code, which is 1 if a seed fails. `options` are those of `spawn`. */
export async function runSimulator(args, options) {
  const at = args.indexOf('--mutation');
  const name = at < 0 ? undefined : args[at + 1];
  const mutations = at < 0 ? [] : readMutations();
  const mutation = mutations.find((each) => each.name === name);
  if (at >= 0 && mutation === undefined)
    throw new Refusal(`--mutation must be one of these:\n${mutations.map((each) => each.name).join('\n')}`);
  const focus = mutation?.focus === undefined || args.includes('--focus') ? [] : ['--focus', mutation.focus];
  const rest = [...focus, ...(at < 0 ? args : args.toSpliced(at, 2))];
  const { folder, program, scripts } = await bundle(mutation?.changes ?? []);
  try {
    return await run(
      process.execPath,
      [...settings, '--enable-source-maps', program, '--scripts', scripts, ...rest],
      options,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
