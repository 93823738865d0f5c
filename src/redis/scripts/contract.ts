/** Parses Lua scripts whose header is their contract, and builds the source sent to Redis. lua/README.md documents the format. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { limits } from '../../limits.js';

export const valueTypes = [
  'text',
  'int',
  'bytes',
  'flag',
  'bytes?',
  'int?',
  'text?',
  'texts',
  'raw',
] as const;
export type ValueType = (typeof valueTypes)[number];

export const keyTypes = ['STRING', 'HASH', 'LIST', 'SET', 'ZSET', 'STREAM', 'CHANNEL'] as const;

export interface KeySpec {
  readonly name: string;
  readonly pattern: string;
  readonly type: (typeof keyTypes)[number];
  /** one: a single key; derived: a prefix that the body completes; list: any number of keys, after all others */
  readonly form: 'one' | 'derived' | 'list';
}

export interface ValueSpec {
  readonly name: string;
  readonly type: ValueType;
}

export interface ArgSpec extends ValueSpec {
  readonly form: 'one' | 'list';
}

export interface Script {
  /** Path below lua/ without the extension, for instance 'messages/send_direct'. */
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly string[];
  /** Running the same call twice changes nothing more, so it can be retried when its outcome is unknown. */
  readonly repeatable: boolean;
  readonly includes: readonly string[];
  readonly keys: readonly KeySpec[];
  readonly args: readonly ArgSpec[];
  readonly ok: readonly ValueSpec[];
  readonly errors: ReadonlyMap<string, readonly ValueSpec[]>;
  /** The source sent to Redis. */
  readonly source: string;
  readonly sha: string;
  /** For each line of `source`, the file and line it came from. */
  readonly origin: readonly string[];
}

const argsMax = 8;

/** A script with an invalid header or body. The message names the file. */
export class ContractError extends Error {}

interface Parsed {
  readonly path: string;
  readonly tags: ReadonlyArray<readonly [tag: string, words: readonly string[]]>;
  readonly body: readonly string[];
  readonly bodyStart: number;
}

function parseFile(root: string, path: string): Parsed {
  const lines = readFileSync(join(root, path), 'utf8').split('\n');
  const end = lines.findIndex((line) => line.startsWith(']]'));
  if (lines[0] !== '--[[' || end < 0) throw new ContractError(`${path}: no header between --[[ and ]]`);
  const tags = lines
    .slice(1, end)
    .filter((line) => line.startsWith('@'))
    .map((line): [string, string[]] => {
      const [tag = '', ...words] = line.slice(1).trim().split(/\s+/);
      return [tag, words];
    });
  const bodyStart = end + 2;
  const body = lines.slice(end + 1).map((line, i) => readLine(line, `${path}:${bodyStart + i}`));
  return { path, tags, body, bodyStart };
}

/** Replaces `LIMITS.name` by its value, so that only limits.ts contains the numbers. */
function readLine(line: string, place: string): string {
  if (/\b(KEYS|ARGV)\b/.test(line)) {
    throw new ContractError(`${place}: use the names declared in the header instead of KEYS or ARGV`);
  }
  return line.replace(/\bLIMITS\.(\w+)/g, (_, name: string) => {
    if (!Object.hasOwn(limits, name)) throw new ContractError(`${place}: limits.ts has no ${name}`);
    return String(limits[name as keyof typeof limits]);
  });
}

function oneOf<T extends string>(path: string, word: string | undefined, allowed: readonly T[]): T {
  if (!allowed.includes(word as T))
    throw new ContractError(`${path}: ${word} must be one of ${allowed.join(', ')}`);
  return word as T;
}

function pairs(path: string, words: readonly string[]): ValueSpec[] {
  const out: ValueSpec[] = [];
  for (let i = 0; i < words.length; i += 2) {
    out.push({ name: words[i] as string, type: oneOf(path, words[i + 1], valueTypes) });
  }
  return out;
}

const keyForms: Record<string, KeySpec['form']> = { key: 'one', derived: 'derived', keys: 'list' };

function readHeader(file: Parsed) {
  const { path } = file;
  const header = {
    summary: '',
    flags: [] as string[],
    repeatable: false,
    includes: [] as string[],
    keys: [] as KeySpec[],
    args: [] as ArgSpec[],
    ok: [] as ValueSpec[],
    errors: new Map<string, ValueSpec[]>(),
  };
  for (const [tag, words] of file.tags) {
    const [first = '', second = '', third] = words;
    if (tag === 'summary') header.summary = words.join(' ');
    else if (tag === 'why') continue;
    else if (tag === 'flag') header.flags.push(oneOf(path, first, ['allow-oom', 'no-writes']));
    else if (tag === 'repeatable') header.repeatable = true;
    else if (tag === 'include') header.includes.push(first);
    else if (tag in keyForms) {
      const type = oneOf(path, third, keyTypes);
      header.keys.push({ name: first, pattern: second, type, form: keyForms[tag] as KeySpec['form'] });
    } else if (tag === 'arg' || tag === 'args') {
      header.args.push({
        name: first,
        type: oneOf(path, second, valueTypes),
        form: tag === 'arg' ? 'one' : 'list',
      });
    } else if (tag === 'ok') header.ok.push({ name: first, type: oneOf(path, second, valueTypes) });
    else if (tag === 'err') header.errors.set(first, pairs(path, words.slice(1)));
    else throw new ContractError(`${path}: unknown tag @${tag}`);
  }
  if (!header.summary) throw new ContractError(`${path}: no @summary`);
  if (header.args.length > argsMax) throw new ContractError(`${path}: more than ${argsMax} arguments`);
  const listLast = (specs: readonly { form: string }[]) => specs.findIndex((s) => s.form === 'list');
  for (const specs of [header.keys, header.args]) {
    const at = listLast(specs);
    if (at >= 0 && at !== specs.length - 1) throw new ContractError(`${path}: a list comes last`);
  }
  return header;
}

interface Line {
  readonly text: string;
  /** The file and line that it came from. */
  readonly from: string;
}

const linesOf = (file: Parsed): Line[] =>
  file.body.map((text, i) => ({ text, from: `${file.path}:${file.bodyStart + i}` }));

const mentions = (text: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);

/**
 * Removes shared functions that are never called. Redis recreates every function of a script at each call, which often
 * costs more than running it.
 */
function called(shared: readonly Line[], body: string): Line[] {
  const parts: Line[][] = [];
  let open = false;
  for (const line of shared) {
    if (!open) parts.push([]);
    parts.at(-1)?.push(line);
    if (/^local function /.test(line.text)) open = !/\bend$/.test(line.text);
    else if (line.text === 'end') open = false;
  }
  // Functions are defined before their callers, so scan backwards.
  let users = body;
  const kept: Line[][] = [];
  for (const part of parts.reverse()) {
    const name = /^local function (\w+)/.exec(part[0]?.text ?? '')?.[1];
    if (name !== undefined && !mentions(users, name)) continue;
    kept.push(part);
    users += part.map(({ text }) => (/^\s*--/.test(text) ? '' : `\n${text}`)).join('');
  }
  return kept.reverse().flat();
}

/** Uses a loop because Lua's `unpack` is limited to about 8,000 values. */
const listFrom = (name: string, from: 'KEYS' | 'ARGV', before: number): string =>
  `local ${name}={} for i=${before + 1},#${from} do ${name}[i-${before}]=${from}[i] end`;

/** Declares a local variable for every key and argument, so that the body never uses positions. */
function prelude(keys: readonly KeySpec[], args: readonly ArgSpec[], body: string): string {
  const parts: string[] = [];
  keys.forEach((key, i) => {
    const at = `KEYS[${i + 1}]`;
    if (key.form === 'one') parts.push(`local ${key.name}_key=${at}`);
    else if (key.form === 'derived') {
      parts.push(`local ${key.name}_prefix=${at}`);
      if (mentions(body, `${key.name}_key`))
        parts.push(`local function ${key.name}_key(id) return ${key.name}_prefix..id end`);
    } else parts.push(listFrom(`${key.name}_keys`, 'KEYS', i));
  });
  args.forEach((arg, i) => {
    const at = `ARGV[${i + 1}]`;
    if (arg.form === 'list') parts.push(listFrom(arg.name, 'ARGV', i));
    else if (arg.type === 'flag') parts.push(`local ${arg.name}=${at}=='1'`);
    else parts.push(`local ${arg.name}=${at}`);
  });
  parts.push("local function ok(...) return {'ok',...} end local function refuse(...) return {...} end");
  return parts.join(' ');
}

function checkStatuses(path: string, source: string, errors: ReadonlyMap<string, unknown>): void {
  const used = new Set([...source.matchAll(/refuse\('(\w+)'/g)].map((m) => m[1] as string));
  for (const name of used) {
    if (!errors.has(name)) throw new ContractError(`${path}: the header does not declare @err ${name}`);
  }
  for (const name of errors.keys()) {
    if (!source.includes(`'${name}'`)) throw new ContractError(`${path}: @err ${name} is never returned`);
  }
}

/** Reads one script and its includes. `root` is the folder lua/. */
export function readScript(root: string, path: string): Script {
  const file = parseFile(root, path);
  const header = readHeader(file);
  const body = file.body.join('\n');
  const shared = header.includes.flatMap((name) => linesOf(parseFile(root, join('lib', `${name}.lua`))));
  const first = (text: string): Line => ({ text, from: `${path}:1` });
  const lines = [
    first(`#!lua${header.flags.length > 0 ? ` flags=${header.flags.join(',')}` : ''}`),
    first(prelude(header.keys, header.args, body)),
    ...called(shared, body),
    ...linesOf(file),
  ];
  const origin = lines.map(({ from }) => from);
  const source = lines.map(({ text }) => text).join('\n');
  checkStatuses(path, source, header.errors);
  const sha = createHash('sha1').update(source).digest('hex');
  const { flags, keys } = header;
  return {
    ...header,
    repeatable:
      header.repeatable || flags.includes('no-writes') || keys.some((key) => key.name === 'request'),
    name: path
      .replace(/\.lua$/, '')
      .split(sep)
      .join('/'),
    source,
    sha,
    origin,
  };
}

function luaFiles(root: string, dir = root): string[] {
  return readdirSync(dir, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) return path === join(root, 'lib') ? [] : luaFiles(root, path);
      return entry.name.endsWith('.lua') ? [relative(root, path)] : [];
    })
    .sort();
}

/** Reads every script below `root`, by name. */
export function readScripts(root: string): ReadonlyMap<string, Script> {
  return new Map(
    luaFiles(root)
      .map((path) => readScript(root, path))
      .map((script) => [script.name, script]),
  );
}
