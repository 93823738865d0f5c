/** Settings from files: a file of settings beside the environment, and single secrets from files of their own. */
import { readFileSync } from 'node:fs';

type Variables = Record<string, string | undefined>;

/** Settings that hold a secret, or an address that may hold one. `NAME_FILE` names a file whose content is the value of each. */
export const secretSettings = [
  'REDIS_URL',
  'REDIS_CLUSTER',
  'DATABASE_URL',
  'DATABASE_REPLICA_URLS',
  'DATABASE_SHARDS',
  'ADMIN_TOKEN',
  'TOKEN_PEPPER',
  'TOKEN_KEYS',
  'VAPID_PRIVATE_KEY',
  'FILES_S3_KEY_ID',
  'FILES_S3_SECRET',
] as const;

/** Variables of ours that are no settings. */
const otherVariables = new Set(['PETREL_CONFIG', 'PETREL_BENCH_TOKEN']);

/** How many letters must be added, removed or replaced to come from one text to the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}

/** The setting that a name may mean: with `PETREL_` in front, in other letters, or with one or two letters wrong. Undefined for a
 * setting, and for what resembles none. */
export function likelySetting(name: string, names: readonly string[]): string | undefined {
  const known = [...names, ...secretSettings.map((each) => `${each}_FILE`)];
  if (known.includes(name) || otherVariables.has(name) || name.length > 64) return undefined;
  const bare = name.toUpperCase().replace(/^PETREL_/, '');
  if (known.includes(bare)) return bare;
  // Short names resemble too much.
  const max = bare.length < 6 ? 0 : bare.length < 9 ? 1 : 2;
  const near = known.map((each) => ({ each, by: distance(bare, each) })).sort((a, b) => a.by - b.by)[0];
  return near !== undefined && near.by <= max ? near.each : undefined;
}

/** A file of settings, or of a secret, that cannot be used. */
export class ConfigFileError extends Error {}

function read(path: string, from: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFileError(`${from} names a file that cannot be read (${code ?? 'unknown'}): ${path}`);
  }
}

/** `NAME=value` lines; blank ones and those that begin with # are passed over, quotes around a value are taken off. */
function parse(text: string, path: string, known: ReadonlySet<string>): Variables {
  const found: Variables = {};
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const [, name = '', value = ''] = /^(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)$/.exec(trimmed) ?? [];
    // A misspelt name would be a setting that nobody knows is missing. The line may hold a secret, so it is not shown.
    if (!known.has(name)) {
      const meant = likelySetting(name, [...known]);
      const hint = meant === undefined ? '' : `: ${meant} may be meant`;
      throw new ConfigFileError(`line ${i + 1} of ${path} is no setting${hint}`);
    }
    found[name] = /^"(.*)"$/.exec(value)?.[1] ?? /^'(.*)'$/.exec(value)?.[1] ?? value;
  }
  return found;
}

/**
 * The environment with what `PETREL_CONFIG` and the variables `…_FILE` add: a variable of the environment goes before a line of
 * the file. Errors: ConfigFileError for a file that cannot be read, a line that is no setting, and a secret that is given twice.
 */
export function withFiles(env: Variables, names: readonly string[]): Variables {
  const known = new Set([...names, ...secretSettings.map((name) => `${name}_FILE`)]);
  const path = env.PETREL_CONFIG;
  const fromFile = path ? parse(read(path, 'PETREL_CONFIG'), path, known) : {};
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  const all: Variables = { ...fromFile, ...set };
  for (const name of secretSettings) {
    const secret = all[`${name}_FILE`];
    if (!secret) continue;
    if (set[name] || (fromFile[name] && fromFile[`${name}_FILE`]))
      throw new ConfigFileError(`${name} and ${name}_FILE exclude each other`);
    all[name] = read(secret, `${name}_FILE`).trim();
  }
  return all;
}
