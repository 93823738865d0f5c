/**
 * Changes the code of the process that preloads this file (`--import`). MUTATIONS is a JSON array of a file, a regular
 * expression, and the text that replaces its first match. Files are JavaScript of the build, or scripts. Throws if
 * nothing matches.
 */
import fs from 'node:fs';
import { register, syncBuiltinESMExports } from 'node:module';

const mutations = JSON.parse(process.env.MUTATIONS ?? '[]');

function mutated(path, text) {
  let result = text;
  for (const [file, from, to] of mutations) {
    if (!path.endsWith(file)) continue;
    if (!new RegExp(from).test(result)) throw new Error(`${file} has no match of ${from}`);
    result = result.replace(new RegExp(from), () => to);
  }
  return result;
}

/** Runs in the thread of the module loader. */
export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!mutations.some(([file]) => url.endsWith(file))) return loaded;
  return { ...loaded, source: mutated(url, String(loaded.source)) };
}

const { readFileSync } = fs;
fs.readFileSync = (path, ...rest) => {
  const read = readFileSync(path, ...rest);
  return typeof read === 'string' && String(path).endsWith('.lua') ? mutated(String(path), read) : read;
};
syncBuiltinESMExports();
// The thread of the loader loads this file too.
if (!new URL(import.meta.url).search) register(`${import.meta.url}?loader`);
