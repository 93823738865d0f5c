/**
 * Changes the code of the process that preloads this file (`--import`). MUTATIONS is a JSON array. Each item has a
 * file, a regular expression, and the text that replaces the first match of the expression. The file is a script, or
 * `dist/main`, which means every part of the built program. Throws if a script has no match. For `dist/main`, the
 * caller must check that at least one part has a match.
 */
import fs from 'node:fs';
import { register, syncBuiltinESMExports } from 'node:module';

const mutations = JSON.parse(process.env.MUTATIONS ?? '[]');

const program = 'dist/main';
const names = (file, path) => (file === program ? /\/dist\/main[^/]*\.js$/.test(path) : path.endsWith(file));

function mutated(path, text) {
  let result = text;
  for (const [file, from, to] of mutations) {
    if (!names(file, path)) continue;
    if (file !== program && !new RegExp(from).test(result))
      throw new Error(`${file} has no match of ${from}`);
    result = result.replace(new RegExp(from), () => to);
  }
  return result;
}

/** Runs in the thread of the module loader. */
export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!mutations.some(([file]) => names(file, url))) return loaded;
  return { ...loaded, source: mutated(url, String(loaded.source)) };
}

const { readFileSync } = fs;
fs.readFileSync = (path, ...rest) => {
  const read = readFileSync(path, ...rest);
  return typeof read === 'string' && String(path).endsWith('.lua') ? mutated(String(path), read) : read;
};
syncBuiltinESMExports();
// Registers the loader only in the main thread, because the loader's own thread loads this file too.
if (!new URL(import.meta.url).search) register(`${import.meta.url}?loader`);
