/**
 * Parses Lua scripts and builds the source sent to Redis. The header of a script is its contract. lua/README.md
 * documents the format.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
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
  /**
   * `one` is a single key, `derived` is a prefix that the body completes, and `list` is any number of keys after all
   * other keys
   */
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
  /** The path below lua/ without the extension, for instance 'messages/send_to_user'. */
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly string[];
  /**
   * Whether a repeated run of the same call changes nothing. Such a call can be retried when its outcome is unknown.
   */
  readonly repeatable: boolean;
  /** The files in lib/ that the script uses. */
  readonly shared: readonly string[];
  readonly keys: readonly KeySpec[];
  readonly args: readonly ArgSpec[];
  readonly ok: readonly ValueSpec[];
  readonly errors: ReadonlyMap<string, readonly ValueSpec[]>;
  /** The source sent to Redis. */
  readonly source: string;
  readonly sha: string;
  /** The file and line of origin of each line of `source`. */
  readonly origin: readonly string[];
}

const argsMax = 9;

/** Reports a script with an invalid header or body. The message names the file. */
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

/** Replaces `LIMITS.name` with its value, so that only the files of limits contain the numbers. */
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
const argForms: Record<string, ArgSpec['form']> = { arg: 'one', args: 'list' };

type Header = ReturnType<typeof readHeader>;

/** Parses the header of a script or of a shared file. */
function readHeader(file: Parsed) {
  const { path } = file;
  const header = {
    summary: '',
    flags: [] as string[],
    repeatable: false,
    keys: [] as KeySpec[],
    args: [] as ArgSpec[],
    ok: [] as ValueSpec[],
    errors: new Map<string, ValueSpec[]>(),
  };
  for (const [tag, words] of file.tags) {
    const [first = '', second = '', third] = words;
    const [keyForm, argForm] = [keyForms[tag], argForms[tag]];
    if (keyForm)
      header.keys.push({ name: first, pattern: second, type: oneOf(path, third, keyTypes), form: keyForm });
    else if (argForm) header.args.push({ name: first, type: oneOf(path, second, valueTypes), form: argForm });
    else if (tag === 'summary') header.summary = words.join(' ');
    else if (tag === 'flag') header.flags.push(oneOf(path, first, ['allow-oom', 'no-writes']));
    else if (tag === 'repeatable') header.repeatable = true;
    else if (tag === 'ok') header.ok.push({ name: first, type: oneOf(path, second, valueTypes) });
    else if (tag === 'err') header.errors.set(first, pairs(path, words.slice(1)));
    else if (tag !== 'why') throw new ContractError(`${path}: unknown tag @${tag}`);
  }
  if (!header.summary) throw new ContractError(`${path}: no @summary`);
  return header;
}

function checkLists(path: string, { keys, args }: Header): void {
  if (args.length > argsMax) throw new ContractError(`${path}: more than ${argsMax} arguments`);
  for (const specs of [keys, args]) {
    const at = specs.findIndex(({ form }) => form === 'list');
    if (at >= 0 && at !== specs.length - 1) throw new ContractError(`${path}: a list comes last`);
  }
}

/** Returns the pattern by which a body mentions a key of this form. */
const mentionOf = ({ name, form }: KeySpec): RegExp =>
  form === 'one'
    ? new RegExp(`\\b${name}_key\\b(?!\\()`)
    : form === 'derived'
      ? new RegExp(`\\b${name}_(prefix\\b|key\\()`)
      : new RegExp(`\\b${name}_keys\\b`);

interface Line {
  readonly text: string;
  /** The file and line of origin. */
  readonly from: string;
}

const linesOf = (file: Parsed): Line[] =>
  file.body.map((text, i) => ({ text, from: `${file.path}:${file.bodyStart + i}` }));

/** Returns the text of lines without their comments. */
const codeOf = (lines: readonly Line[]): string =>
  lines.map(({ text }) => text.replace(/--.*/, '')).join('\n');

const withoutTexts = (code: string): string => code.replace(/'[^']*'/g, '');

const mentions = (text: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);

/** Describes a file in lib/. Its header contains declarations. A script inherits the declarations that it uses. */
interface SharedFile {
  readonly name: string;
  readonly header: Header;
}

/** Describes a function or constant of a shared file. */
interface Part {
  readonly file: SharedFile;
  readonly lines: Line[];
}

/** Parses the functions and constants of the files in lib/, by name. */
function readShared(root: string): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>();
  const folder = join(root, 'lib');
  for (const entry of existsSync(folder) ? readdirSync(folder).sort() : []) {
    const parsed = parseFile(root, join('lib', entry));
    const file = { name: entry.replace(/\.lua$/, ''), header: readHeader(parsed) };
    let part: Part | undefined;
    for (const line of linesOf(parsed)) {
      const names = /^local (?:function )?([\w, ]+?) ?[(=]/.exec(line.text)?.[1]?.split(', ') ?? [];
      if (names.length > 0) part = { file, lines: [] };
      for (const name of names) {
        if (parts.has(name)) throw new ContractError(`${line.from}: ${name} is declared twice in lib/`);
        parts.set(name, part as Part);
      }
      if (!/^\s*(--|$)/.test(line.text)) part?.lines.push(line);
    }
  }
  return parts;
}

/**
 * Returns the shared parts that a body uses, each after the parts that it uses itself. Only these parts are sent to
 * Redis. Redis recreates every function of a script at each call, which often costs more than running the script.
 */
function usedParts(shared: ReadonlyMap<string, Part>, body: readonly Line[]): Part[] {
  const used: Part[] = [];
  const seen = new Set<Part>();
  const visit = (lines: readonly Line[]) => {
    for (const [name] of withoutTexts(codeOf(lines)).matchAll(/(?<![.\w])[A-Za-z_]\w*/g)) {
      const part = shared.get(name);
      if (part === undefined || seen.has(part)) continue;
      seen.add(part);
      visit(part.lines);
      used.push(part);
    }
  };
  visit(body);
  return used;
}

/**
 * Adds the declarations that a script inherits from the files of its shared parts: the keys and arguments that its body
 * mentions, and the errors that the body or the parts return. The script's own declaration of a name takes precedence.
 */
function inherit(own: Header, parts: readonly Part[], code: string): Header {
  const keys = new Map<string, KeySpec>();
  const args = new Map<string, ArgSpec>();
  const errors = new Map<string, ValueSpec[]>();
  for (const file of new Set(parts.map((part) => part.file))) {
    const functions = codeOf(parts.filter((part) => part.file === file).flatMap(({ lines }) => lines));
    for (const key of file.header.keys) if (mentionOf(key).test(code)) keys.set(key.name, key);
    for (const arg of file.header.args) if (mentions(withoutTexts(code), arg.name)) args.set(arg.name, arg);
    for (const [name, fields] of file.header.errors)
      if (code.includes(`refuse('${name}'`) || functions.includes(`'${name}'`)) errors.set(name, fields);
  }
  for (const { name } of own.keys) keys.delete(name);
  for (const { name } of own.args) args.delete(name);
  return {
    ...own,
    keys: [...keys.values(), ...own.keys],
    args: [...args.values(), ...own.args],
    errors: new Map([...errors, ...own.errors]),
  };
}

/** Returns the Lua code that copies a list. It uses a loop, because Lua's `unpack` is limited to about 8,000 values. */
const listFrom = (name: string, from: 'KEYS' | 'ARGV', before: number): string =>
  `local ${name}={} for i=${before + 1},#${from} do ${name}[i-${before}]=${from}[i] end`;

/**
 * Returns the Lua code that declares a local variable for every key and argument, so that the body never uses
 * positions.
 */
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

/** Parses one script and the shared functions that it uses. `root` is the folder lua/. */
export function readScript(root: string, path: string, shared = readShared(root)): Script {
  const file = parseFile(root, path);
  const body = linesOf(file);
  const parts = usedParts(shared, body);
  const header = inherit(readHeader(file), parts, codeOf(body));
  checkLists(path, header);
  const first = (text: string): Line => ({ text, from: `${path}:1` });
  const lines = [
    first(`#!lua${header.flags.length > 0 ? ` flags=${header.flags.join(',')}` : ''}`),
    first(prelude(header.keys, header.args, codeOf(body))),
    ...parts.flatMap((part) => part.lines),
    ...body,
  ];
  const origin = lines.map(({ from }) => from);
  const source = lines.map(({ text }) => text).join('\n');
  checkStatuses(path, source, header.errors);
  const sha = createHash('sha1').update(source).digest('hex');
  const { flags, keys } = header;
  return {
    ...header,
    shared: [...new Set(parts.map((part) => part.file.name))],
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

/** Parses every script below `root`, by name. */
export function readScripts(root: string): ReadonlyMap<string, Script> {
  const shared = readShared(root);
  return new Map(
    luaFiles(root)
      .map((path) => readScript(root, path, shared))
      .map((script) => [script.name, script]),
  );
}
