/**
 * Builds `dist/` from a checkout. `dist/` contains three things: the program bundled into few files for a fast start,
 * the program with one file per module for tests and the bench, and the bench itself. At first this script imports only
 * Node's own modules, because the compiler may not be installed.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { alone, dist, modules, Refusal, readIfThere, root, run, say } from './checkout.mjs';
import { writeHandlerLists } from './handlers.mjs';

const source = join(root, 'src');
export const main = join(dist, 'main.js');
const benchSource = join(root, 'bench');
// The built bench. It is separate from `dist/loadtest`, the part of the program that `petrel bench` uses.
const benchDist = join(dist, 'measure');
/** The files of the bench programs. Each key is the name that the launcher uses for the program. */
export const benchPrograms = {
  measure: join(benchDist, 'run.js'),
  compare: join(benchDist, 'compare.js'),
};

/** Returns every file below a folder, sorted, so that the result does not depend on the file system. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** Returns a hash of file contents. Ignores file times, because checkouts and container images change them. */
function fingerprint(files) {
  const sum = createHash('sha256').update(readIfThere(join(root, 'package-lock.json')) ?? '');
  for (const file of [fileURLToPath(import.meta.url), ...files])
    sum.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  return sum.digest('hex');
}

function findCompiler() {
  try {
    return createRequire(import.meta.url).resolve('esbuild');
  } catch {
    return undefined;
  }
}

const isScript = (file) => file.endsWith('.ts') && !file.endsWith('.d.ts');

async function transpile(compiler, files, target, options) {
  const { build, stop } = await import(pathToFileURL(compiler).href).then(
    (module) => module.default ?? module,
  );
  await build({
    entryPoints: files.filter(isScript),
    outdir: target,
    format: 'esm',
    platform: 'node',
    target: 'node20.11',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'error',
    ...options,
  }).catch(() => {
    throw new Refusal('the build failed: see the errors above');
  });
  // Ends the compiler, which is a separate process and would otherwise keep running.
  await stop();
}

/**
 * The packages that are bundled. Each has hundreds of small files, and a process would spend most of its start on
 * reading them.
 */
const bundled = [
  'bullmq',
  'commander',
  'ioredis',
  'jose',
  'msgpackr',
  'pg',
  'prom-client',
  'redis-parser',
  'undici',
  'zod',
];
/** Optional compiled add-ons of the bundled packages. */
const optional = ['msgpackr-extract', 'pg-native'];

/** Bundles the program and the packages in `bundled` into few files. Other packages stay in node_modules. */
function bundle(compiler, target) {
  const packageOf = (path) =>
    path
      .split('/')
      .slice(0, path.startsWith('@') ? 2 : 1)
      .join('/');
  const program = {
    name: 'program',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[^./]/ }, ({ kind, path, importer }) => {
        if (kind === 'entry-point') return undefined;
        const stays = importer.startsWith(`${source}/`)
          ? !bundled.includes(packageOf(path))
          : optional.includes(path);
        return stays ? { path, external: true } : undefined;
      });
      // For modules that use import.meta.url: replaces it with the path that the module would have without bundling.
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const place = JSON.stringify(`./${relative(source, path).replace(/ts$/, 'js')}`);
        const own = `new URL(${place}, import.meta.url).href`;
        return { loader: 'ts', contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', own) };
      });
    },
  };
  return transpile(compiler, [join(source, 'main.ts')], target, {
    bundle: true,
    // Dynamic imports become separate files, which are loaded on demand.
    splitting: true,
    chunkNames: 'main-[hash]',
    outbase: source,
    plugins: [program],
    // The bundle is an ES module. The banner defines `require` for the CommonJS code in it.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
    },
  });
}

/** The browser code of the web application, which is bundled separately. */
const client = join(source, 'web', 'client');
/** The build scripts and documents that the pages are built from. The browser code is not included. */
const pageSources = () => [
  ...['web.mjs', 'docs.mjs', 'emoji.mjs']
    .map((name) => join(root, 'infra', 'build', name))
    .filter(existsSync),
  ...[join(root, 'infra'), join(root, 'bench')]
    .filter(existsSync)
    .flatMap(filesBelow)
    .filter((file) => file.endsWith('.md')),
];
const isClient = (file) => file.startsWith(client + sep);

async function compileClient(compiler, files, target) {
  if (files.length === 0) return;
  const { bundleClient } = await import('./web.mjs');
  const esbuild = await import(pathToFileURL(compiler).href).then((module) => module.default ?? module);
  const [to, former] = [target, dist].map((folder) => join(folder, 'web', 'client'));
  const made = {
    esbuild,
    source: client,
    target: to,
    former,
    fingerprint: fingerprint([...pageSources(), ...files]),
    modules,
  };
  await bundleClient(made).catch((error) => {
    throw new Refusal(`the web application was not built: ${error.message}`);
  });
  await esbuild.stop();
}

async function compile(compiler, all, target) {
  const files = all.filter((file) => !isClient(file));
  await transpile(compiler, files, target, { bundle: false, outbase: source });
  const document = join(target, 'docs', 'openapi_file.js');
  if (existsSync(document) && (await run(process.execPath, [document])) !== 0)
    throw new Refusal('the OpenAPI document could not be built: see the errors above');
  const pages = all.filter(isClient);
  if (pages.length > 0) await compileClient(compiler, pages, target);
  await bundle(compiler, target);
  // Copies the files that the program reads at run time, for instance SQL migrations and pages.
  for (const file of files.filter((file) => !file.endsWith('.ts'))) {
    const copy = join(target, relative(source, file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
  }
}

/**
 * Builds the bench beside the program. Imports of `../../src/…`, at any depth, become `../../…`. Other imports stay
 * unchanged.
 */
function compileBench(compiler, files, target) {
  const imports = {
    name: 'imports',
    setup: ({ onResolve }) =>
      onResolve({ filter: /^/ }, ({ kind, path }) =>
        kind === 'entry-point'
          ? undefined
          : { path: path.replace(/^((?:\.\.\/)+)src\//, '$1'), external: true },
      ),
  };
  return transpile(compiler, files, target, { bundle: true, outbase: benchSource, plugins: [imports] });
}

/**
 * Updates a build if needed. Builds into a temporary folder, which is renamed when the build is complete. If two
 * launches build at the same time, the launch that finishes last discards its own build, because a process may already
 * be loading files from the first build.
 */
async function ensureBuilt({ from, to, make, program }) {
  const compiler = findCompiler();
  if (!compiler || !existsSync(from)) {
    if (existsSync(program)) return;
    throw new Refusal('there is no build, and no compiler to make one: run npm ci with development packages');
  }
  const files = [...filesBelow(from), ...pageSources()];
  const wanted = fingerprint(files);
  const isBuilt = () => readIfThere(join(to, '.fingerprint')) === wanted;
  if (isBuilt()) return;
  const started = Date.now();
  const aside = join(root, `.launch-build-${process.pid}`);
  try {
    rmSync(aside, { recursive: true, force: true });
    await make(compiler, filesBelow(from), aside);
    writeFileSync(join(aside, '.fingerprint'), wanted);
    await alone(join(root, '.launch-build.lock'), () => {
      if (isBuilt()) return;
      const old = `${aside}-old`;
      if (existsSync(to)) renameSync(to, old);
      renameSync(aside, to);
      rmSync(old, { recursive: true, force: true });
    });
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  say(`Built in ${Date.now() - started} ms`);
}

export function ensureBuild() {
  writeHandlerLists();
  return ensureBuilt({ from: source, to: dist, make: compile, program: main });
}

/**
 * Builds the bench into dist/ if needed. A new build of the program removes the bench, so the bench is never older than
 * the program.
 */
export const ensureBench = () =>
  ensureBuilt({
    from: benchSource,
    to: benchDist,
    make: compileBench,
    program: benchPrograms.measure,
  });
