/** Reads settings from files. A settings file has several settings, and a secret file has one secret. */
import { readFileSync } from 'node:fs';

type Variables = Record<string, string | undefined>;

/**
 * The settings that are secrets, or URLs that may contain one. `NAME_FILE` is the path of a file that contains the
 * value of NAME.
 */
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
  'WEBHOOK_SIGNING_KEYS',
  'FILES_S3_KEY_ID',
  'FILES_S3_SECRET',
  'OIDC_CLIENT_SECRET',
] as const;

/** Petrel's environment variables that are not settings. */
const otherVariables = new Set(['PETREL_CONFIG', 'PETREL_BENCH_TOKEN']);

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

/**
 * Returns the setting that a misspelt name probably means. Ignores the prefix `PETREL_`, upper and lower case, and one
 * or two wrong letters. Returns undefined for a correct name and for a name that resembles no setting.
 */
export function likelySetting(name: string, names: readonly string[]): string | undefined {
  const known = [...names, ...secretSettings.map((each) => `${each}_FILE`)];
  if (known.includes(name) || otherVariables.has(name) || name.length > 64) return undefined;
  const bare = name.toUpperCase().replace(/^PETREL_/, '');
  if (known.includes(bare)) return bare;
  // Short names must match exactly, because they resemble each other.
  const max = bare.length < 6 ? 0 : bare.length < 9 ? 1 : 2;
  const near = known.map((each) => ({ each, by: distance(bare, each) })).sort((a, b) => a.by - b.by)[0];
  return near !== undefined && near.by <= max ? near.each : undefined;
}

export class ConfigFileError extends Error {}

function read(path: string, from: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFileError(`${from} names a file that cannot be read (${code ?? 'unknown'}): ${path}`);
  }
}

/** Parses `NAME=value` lines. Skips blank lines and lines that begin with #. Removes quotes around a value. */
function parse(text: string, path: string, known: ReadonlySet<string>): Variables {
  const found: Variables = {};
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const [, name = '', value = ''] = /^(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)$/.exec(trimmed) ?? [];
    // Throws for an unknown name, because otherwise nobody would notice that the setting is missing. The error does not
    // quote the line, which may contain a secret.
    if (!known.has(name)) {
      const meant = likelySetting(name, [...known]);
      const hint = meant === undefined ? '' : `: did you mean ${meant}?`;
      throw new ConfigFileError(`line ${i + 1} of ${path} is not a setting${hint}`);
    }
    found[name] = /^"(.*)"$/.exec(value)?.[1] ?? /^'(.*)'$/.exec(value)?.[1] ?? value;
  }
  return found;
}

/**
 * Returns the environment with the settings from `PETREL_CONFIG` and the secrets from the `…_FILE` variables. The
 * environment overrides the settings file. Throws a ConfigFileError for an unreadable file, an unknown setting, or a
 * secret that is given twice.
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
