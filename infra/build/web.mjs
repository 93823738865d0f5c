/**
 * Bundles the web application in `src/web/client` for the fronts. File names contain a hash. Each file also gets
 * compressed forms and a content tag.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { root } from './checkout.mjs';
import { writeDocuments } from './docs.mjs';
import { writeEmoji } from './emoji.mjs';

const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

/** Compresses every file of a finished folder and computes its content tag. */
function prepare(folder) {
  const names = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const entry of names) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (path.endsWith('.map')) continue;
    const bytes = readFileSync(path);
    writeFileSync(`${path}.tag`, createHash('sha256').update(bytes).digest('base64url').slice(0, 22));
    if (bytes.length < 512) continue;
    const params = { [constants.BROTLI_PARAM_QUALITY]: bytes.length > 500_000 ? 6 : 10 };
    writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** Replaces Redoc's logo with an embedded picture, because Redoc would load the logo from another host. */
const ownMark = {
  name: 'own mark',
  setup({ onLoad }) {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="14"><text y="11" font-family="sans-serif" font-size="12" font-weight="600" fill="gray">Redoc</text></svg>';
    onLoad({ filter: /redoc\.standalone\.js$/ }, ({ path }) => ({
      loader: 'js',
      contents: readFileSync(path, 'utf8').replace(
        /https:\/\/cdn\.redoc\.ly\/redoc\/logo-mini[\w-]*\.svg/g,
        `data:image/svg+xml,${encodeURIComponent(svg)}`,
      ),
    }));
  },
};

/** The options of every bundle for browsers. */
const forBrowsers = {
  bundle: true,
  platform: 'browser',
  target: ['es2022'],
  minify: true,
  legalComments: 'none',
  logLevel: 'error',
};

/** Bundles one page and everything that it loads. Fronts serve the page under the path `at`. */
async function bundlePage({ esbuild, source, entry, page, target, at }) {
  const { metafile } = await esbuild.build({
    entryPoints: [join(source, entry)],
    outdir: join(target, 'assets'),
    ...forBrowsers,
    splitting: true,
    format: 'esm',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    plugins: [ownMark],
    metafile: true,
  });
  const made = Object.entries(metafile.outputs);
  const [script, { cssBundle }] = made.find(([, { entryPoint }]) => entryPoint?.endsWith(entry));
  const text = readFileSync(join(source, page), 'utf8')
    .replace('main.js', `${at}/assets/${basename(script)}`)
    .replace('main.css', `${at}/assets/${basename(cssBundle)}`);
  writeFileSync(join(target, 'page.html'), text);
  return text;
}

/** Bundles the script that runs before all others, and writes its file name into the page. */
async function bundleEarly({ esbuild, source, target }) {
  const { metafile } = await esbuild.build({
    ...forBrowsers,
    entryPoints: [join(source, 'early.ts')],
    outdir: join(target, 'assets'),
    format: 'iife',
    entryNames: '[name]-[hash]',
    metafile: true,
  });
  const [script] = Object.keys(metafile.outputs);
  const page = join(target, 'page.html');
  writeFileSync(page, readFileSync(page, 'utf8').replace('early.js', `/app/assets/${basename(script)}`));
}

/**
 * Builds the folder `target`. If the folder `former` was built from the same sources, copies it instead, because
 * bundling and compressing take seconds.
 */
export async function bundleClient({ esbuild, source, target, former, fingerprint, modules }) {
  if (read(join(former, '.fingerprint')) === fingerprint) {
    cpSync(former, target, { recursive: true });
    return;
  }
  mkdirSync(target, { recursive: true });
  const build = { esbuild, source };
  await bundlePage({
    ...build,
    entry: 'main.tsx',
    page: 'page.html',
    target,
    at: '/app',
  });
  await bundleEarly({ ...build, target });
  // The file name `highlighter.js` has no hash, because a trusted-types policy of the application contains this name.
  await esbuild.build({
    ...forBrowsers,
    entryPoints: [join(source, 'code', 'worker.ts')],
    outfile: join(target, 'highlighter.js'),
    format: 'iife',
  });
  // The operators' page is a separate bundle, so users do not load it, and operators do not load the application.
  await bundlePage({
    ...build,
    entry: 'ops/main.tsx',
    page: 'ops/page.html',
    target: join(target, 'ops'),
    at: '/ops',
  });
  copyFileSync(join(source, 'still', 'icon.svg'), join(target, 'ops', 'icon.svg'));
  for (const name of readdirSync(join(source, 'still')))
    copyFileSync(join(source, 'still', name), join(target, name));
  const post = join(target, 'post');
  // The page of a post is not served as a file, because the front inserts the post. `prepare` computes tags only for
  // served files.
  const postPage = await bundlePage({
    ...build,
    entry: 'post/main.ts',
    page: 'post/page.html',
    target: post,
    at: '/app/post',
  });
  rmSync(join(post, 'page.html'));
  const docs = join(target, 'docs');
  const template = (entry) =>
    bundlePage({ ...build, entry: `docs/${entry}.ts`, page: 'docs/page.html', target: docs, at: '/docs' });
  const templates = { guide: await template('main'), reference: await template('reference') };
  writeDocuments(root, docs, templates);
  rmSync(join(docs, 'page.html'));
  writeEmoji(modules, target);
  prepare(target);
  writeFileSync(join(post, 'template.html'), postPage);
  writeFileSync(join(target, '.fingerprint'), fingerprint);
}
