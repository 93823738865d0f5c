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
   * `one` is a single key. `derived` is a prefix that the body completes. `list` is any number of keys, which come
   * after all other keys.
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

/** The source of one form of a script (single or combined), as it is sent to Redis. */
export interface Source {
  readonly source: string;
  readonly sha: string;
  /** For each line of `source`, the original file and line. */
  readonly origin: readonly string[];
}

/**
 * The form of a script that runs several calls on one partition in order and returns a reply for each call. A call that
 * raises an error does not affect the other calls.
 */
export interface CombinedForm extends Source {
  /** How many calls one run may contain. A list argument counts as one call per value. */
  readonly callsMax: number;
  /** Whether one run may contain calls on different partitions of the same server. */
  readonly anyPartition: boolean;
  /** The keys that all calls of a run share. These keys are passed once. */
  readonly commonKeys: readonly string[];
  readonly ownKeys: readonly string[];
}

export interface Script extends Source {
  /** The path below lua/ without the extension, for instance 'messages/send_to_user'. */
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly string[];
  /**
   * Whether a second run of the same call changes nothing. If true, the call can be retried when its outcome is
   * unknown.
   */
  readonly repeatable: boolean;
  /** The files in lib/ that the script uses. */
  readonly shared: readonly string[];
  readonly keys: readonly KeySpec[];
  readonly args: readonly ArgSpec[];
  readonly ok: readonly ValueSpec[];
  readonly errors: ReadonlyMap<string, readonly ValueSpec[]>;
  /** The form for several calls, or null if the header does not declare this form. */
  readonly combined: CombinedForm | null;
}

const argsMax = 9;

/**
 * The maximum number of calls in a combined run. Calls are numbered from 10 to 99, so that every number has two digits.
 */
const callsMax = 90;

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

/** Replaces `LIMITS.name` with the value of the limit. The numbers thus appear only in the limits files. */
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

function numberFrom(path: string, word: string): number {
  if (!/^[1-9]\d*$/.test(word)) throw new ContractError(`${path}: ${word} must be a positive number`);
  return Number(word);
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
    /** The number of calls in one run, or 0 if calls must not be combined. */
    combine: 0,
    anyPartition: false,
    after: '',
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
    else if (tag === 'combine') {
      header.combine = numberFrom(path, first);
      header.anyPartition = second !== '' && oneOf(path, second, ['any_partition']) === second;
    } else if (tag === 'after') header.after = first;
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

/** Returns the pattern that finds uses of a key in the body of a script. */
const mentionOf = ({ name, form }: KeySpec): RegExp =>
  form === 'one'
    ? new RegExp(`\\b${name}_key\\b(?!\\()`)
    : form === 'derived'
      ? new RegExp(`\\b${name}_(prefix\\b|key\\()`)
      : new RegExp(`\\b${name}_keys\\b`);

interface Line {
  readonly text: string;
  /** The file and line from which `text` comes. */
  readonly from: string;
}

const linesOf = (file: Parsed): Line[] =>
  file.body.map((text, i) => ({ text, from: `${file.path}:${file.bodyStart + i}` }));

/** Returns the text of lines without their comments. */
const codeOf = (lines: readonly Line[]): string =>
  lines.map(({ text }) => text.replace(/--.*/, '')).join('\n');

/** Returns the lines of one form. Only the combined form contains the lines `if combined … end`. */
const linesOfForm = (lines: readonly Line[], combined: boolean): Line[] =>
  lines.filter(({ text }) => combined || !/^\s*if combined\b.*\bend$/.test(text));

const withoutTexts = (code: string): string => code.replace(/'[^']*'/g, '');

const mentions = (text: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);

/**
 * A file in lib/. Its header contains declarations. A script that uses the file inherits the declarations that it
 * needs.
 */
interface SharedFile {
  readonly name: string;
  readonly header: Header;
}

/** A function or constant of a shared file. */
interface Part {
  readonly file: SharedFile;
  readonly lines: Line[];
}

/** Parses the functions and constants of the files in lib/. The keys are their names. */
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
 * Returns the shared parts that a body uses. Each part comes after the parts that it depends on. Unused parts are not
 * sent to Redis, because Redis creates every function of a script again at each call. This often costs more than
 * running the script.
 */
function usedParts(shared: ReadonlyMap<string, Part>, body: readonly Line[], combined = false): Part[] {
  const used: Part[] = [];
  const seen = new Set<Part>();
  const visit = (lines: readonly Line[]) => {
    for (const [name] of withoutTexts(codeOf(lines)).matchAll(/(?<![.\w])[A-Za-z_]\w*/g)) {
      const part = shared.get(name);
      if (part === undefined || seen.has(part)) continue;
      seen.add(part);
      const lines = linesOfForm(part.lines, combined);
      visit(lines);
      used.push({ file: part.file, lines });
    }
  };
  visit(body);
  return used;
}

/**
 * Adds the declarations that a script inherits from the shared files that it uses: the keys and arguments that the
 * script's body mentions, and the errors that the body or the shared parts return. If the script declares the same name
 * itself, its own declaration takes precedence.
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

function keyVariable({ name, form }: KeySpec, at: string, body: string): string {
  if (form === 'one') return `local ${name}_key=${at}`;
  const prefix = `local ${name}_prefix=${at}`;
  return mentions(body, `${name}_key`)
    ? `${prefix} local function ${name}_key(id) return ${name}_prefix..id end`
    : prefix;
}

const argVariable = ({ name, type }: ArgSpec, at: string): string =>
  `local ${name}=${at}${type === 'flag' ? "=='1'" : ''}`;

const replies = "local function ok(...) return {'ok',...} end local function refuse(...) return {...} end";

/**
 * Returns the Lua code that declares a local variable for every key and argument, so that the body uses names instead
 * of positions.
 */
function prelude({ keys, args }: Header, body: string): string {
  return [
    ...keys.map((key, i) =>
      key.form === 'list'
        ? listFrom(`${key.name}_keys`, 'KEYS', i)
        : keyVariable(key, `KEYS[${i + 1}]`, body),
    ),
    ...args.map((arg, i) =>
      arg.form === 'list' ? listFrom(arg.name, 'ARGV', i) : argVariable(arg, `ARGV[${i + 1}]`),
    ),
    replies,
  ].join(' ');
}

const withHash = (lines: readonly Line[]): Source => {
  const source = lines.map(({ text }) => text).join('\n');
  const origin = lines.map(({ from }) => from);
  return { source, sha: createHash('sha1').update(source).digest('hex'), origin };
};

const firstLine = (flags: readonly string[]): string =>
  `#!lua${flags.length > 0 ? ` flags=${flags.join(',')}` : ''}`;

/**
 * Returns whether all calls on a partition pass the same value for a key. Callers pass only the prefix of a derived
 * key, so the part that the script appends is ignored.
 */
const isCommon = ({ pattern, form }: KeySpec): boolean =>
  !(form === 'derived' ? pattern.replace(/<\w+>$/, '') : pattern).includes('<');

/**
 * Builds the combined form of a script, which runs several calls. Its keys are the common keys, then the other keys of
 * each call. Its arguments are `run`, and for each call the number of its arguments followed by these arguments. The
 * script's body becomes a function, which is called once for each call.
 */
function combinedForm(
  path: string,
  header: Header,
  shared: ReadonlyMap<string, Part>,
  body: readonly Line[],
) {
  const { keys, args, flags, repeatable, combine, anyPartition } = header;
  if (combine === 0) return null;
  if (keys.some(({ form }) => form === 'list')) throw new ContractError(`${path}: @combine excludes @keys`);
  if (!repeatable && !keys.some(({ name }) => name === 'request'))
    throw new ContractError(`${path}: @combine needs a request id or @repeatable`);
  if (combine > callsMax) throw new ContractError(`${path}: @combine allows at most ${callsMax} calls`);
  const shares = (key: KeySpec) => !anyPartition && isCommon(key);
  const [common, own] = [keys.filter(shares), keys.filter((key) => !shares(key))];
  const code = codeOf(body);
  const after = [...new Set(usedParts(shared, body, true).map(({ file }) => file.header.after))].filter(
    Boolean,
  );
  const at = (text: string): Line => ({ text, from: `${path}:1` });
  const ends = after.map((name) => at(`${name}()`));
  const given = args.filter(({ name }) => name !== 'run');
  const top = [
    'local combined=true local run=ARGV[1]',
    ...common.map((key, i) => keyVariable(key, `KEYS[${i + 1}]`, code)),
    replies,
  ];
  const variables = [
    ...own.map((key, i) => keyVariable(key, `KEYS[key_at+${i + 1}]`, code)),
    ...given.map((arg, i) =>
      arg.form === 'list'
        ? `local ${arg.name}={} for i=${i + 1},arg_count do ${arg.name}[i-${i}]=ARGV[arg_at+i] end`
        : argVariable(arg, `ARGV[arg_at+${i + 1}]`),
    ),
  ];
  const form = withHash([
    at(firstLine(flags)),
    at(top.join(' ')),
    ...usedParts(shared, [...body, ...ends], true).flatMap(({ lines }) => lines),
    at(`local function run_call(key_at,arg_at,arg_count) ${variables.join(' ')}`),
    ...linesOfForm(body, true),
    at('end'),
    at(`local answers,key_at,arg_at={},${common.length},1`),
    at('while arg_at<#ARGV do local arg_count=tonumber(ARGV[arg_at+1])'),
    at('local fine,answer=pcall(run_call,key_at,arg_at+1,arg_count)'),
    at('answers[#answers+1]=fine and answer or {err=tostring(answer)}'),
    at(`key_at,arg_at=key_at+${own.length},arg_at+1+arg_count end`),
    ...ends,
    at('return answers'),
  ]);
  const names = (specs: readonly KeySpec[]) => specs.map(({ name }) => name);
  return { ...form, callsMax: combine, anyPartition, commonKeys: names(common), ownKeys: names(own) };
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
  const parts = usedParts(shared, linesOfForm(body, false));
  const header = inherit(readHeader(file), parts, codeOf(body));
  checkLists(path, header);
  const first = (text: string): Line => ({ text, from: `${path}:1` });
  const lines = [...parts.flatMap((part) => part.lines), ...linesOfForm(body, false)];
  const isSingle = mentions(codeOf(lines), 'combined') ? 'local combined=false ' : '';
  const form = withHash([
    first(firstLine(header.flags)),
    first(isSingle + prelude(header, codeOf(body))),
    ...lines,
  ]);
  checkStatuses(path, form.source, header.errors);
  const { flags, keys } = header;
  const { combine: _, anyPartition: __, after: ___, ...declared } = header;
  return {
    ...declared,
    shared: [...new Set(parts.map((part) => part.file.name))],
    repeatable:
      header.repeatable || flags.includes('no-writes') || keys.some((key) => key.name === 'request'),
    name: path
      .replace(/\.lua$/, '')
      .split(sep)
      .join('/'),
    ...form,
    combined: combinedForm(path, header, shared, body),
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

/** Parses every script below `root`. The keys are the names of the scripts. */
export function readScripts(root: string): ReadonlyMap<string, Script> {
  const shared = readShared(root);
  return new Map(
    luaFiles(root)
      .map((path) => readScript(root, path, shared))
      .map((script) => [script.name, script]),
  );
}
