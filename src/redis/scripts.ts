/** Calls scripts by name with typed keys and arguments, and answers for what can happen to a call on its way. */

import { fileURLToPath } from 'node:url';
import { Command, ReplyError } from 'ioredis';
import { ApiError } from '../errors.js';
import { type RedisConnection, unavailable } from './connection.js';
import { readScripts, type Script, type ValueSpec } from './contract.js';
import type { ScriptName, Scripts } from './scripts.gen.js';

type Result<N extends ScriptName> = Exclude<Scripts[N]['result'], { status: 'stale_run' | 'journal_full' }>;

export interface ScriptRunner {
  /**
   * Runs a script in one round trip. A script that carries a request id is sent again after a lost connection, since
   * applying it twice has no effect; any other call whose outcome is unknown answers `unavailable`.
   * Errors: `unavailable` while Redis is away, `too_many_requests` while the journal or the memory is full.
   */
  call<N extends ScriptName>(
    name: N,
    partition: number,
    keys: Scripts[N]['keys'],
    args: Scripts[N]['args'],
  ): Promise<Result<N>>;
  /** Calls made since the start, by script. */
  readonly counts: ReadonlyMap<string, number>;
}

export interface RunnerOptions {
  readonly connection: RedisConnection;
  /** Raises the partition's incarnation for this run id (architecture, Journal). */
  readonly recover: (partition: number, runId: string) => Promise<void>;
  /** How long a call that may be repeated waits for a lost connection. */
  readonly reconnectMsMax?: number;
}

interface Loaded {
  readonly script: Script;
  readonly keyNames: readonly string[];
  readonly listKey: string | undefined;
  readonly argNames: readonly string[];
  readonly listArg: string | undefined;
  /** Sent again after a lost connection: it carries a request id or writes nothing. */
  readonly repeatable: boolean;
}

const luaRoot = fileURLToPath(new URL('../../lua', import.meta.url));

function prepare(script: Script): Loaded {
  const one = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.filter((s) => s.form !== 'list').map((s) => s.name);
  const list = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.find((s) => s.form === 'list')?.name;
  return {
    script,
    keyNames: one(script.keys),
    listKey: list(script.keys),
    argNames: one(script.args),
    listArg: list(script.args),
    repeatable: script.flags.includes('no-writes') || script.keys.some((key) => key.name === 'request'),
  };
}

function decodeValue(type: ValueSpec['type'], raw: unknown): unknown {
  if (raw === null || raw === undefined) return null;
  switch (type) {
    case 'int':
    case 'int?':
      return Number(raw);
    case 'text':
    case 'text?':
      return String(raw);
    case 'flag':
      return Number(raw) === 1;
    case 'texts':
      return (raw as unknown[]).map(String);
    default:
      return raw;
  }
}

function decodeReply(script: Script, reply: unknown): { status: string } & Record<string, unknown> {
  const [head, ...values] = reply as [Buffer, ...unknown[]];
  const status = String(head);
  const specs = status === 'ok' ? script.ok : script.errors.get(status);
  if (!specs) throw new Error(`${script.name} answered with the undeclared status ${status}`);
  const out: { status: string } & Record<string, unknown> = { status };
  for (let i = 0; i < specs.length; i++) {
    const spec = specs[i] as ValueSpec;
    out[spec.name] = decodeValue(spec.type, values[i]);
  }
  return out;
}

/** Names the place in lua/ that a fault of Redis speaks of. */
function located(script: Script, error: Error): Error {
  const line = /user_script:(\d+)/.exec(error.message)?.[1];
  const place = line ? script.origin[Number(line) - 1] : undefined;
  return new Error(`${script.name}${place ? ` (lua/${place})` : ''}: ${error.message}`, { cause: error });
}

function flatten(
  loaded: Loaded,
  runId: string,
  keys: Record<string, unknown>,
  args: Record<string, unknown>,
): Array<string | Buffer | number> {
  const { script, keyNames, listKey, argNames, listArg } = loaded;
  const listed = listKey === undefined ? [] : (keys[listKey] as string[]);
  const out: Array<string | Buffer | number> = [script.sha, keyNames.length + listed.length];
  for (const name of keyNames) out.push(keys[name] as string);
  out.push(...listed);
  for (const name of argNames) {
    const value = name === 'run' ? runId : args[name];
    out.push(typeof value === 'boolean' ? (value ? '1' : '0') : ((value ?? '') as string | Buffer));
  }
  if (listArg !== undefined) out.push(...(args[listArg] as string[]));
  return out;
}

const isReplyError = (error: unknown): error is Error => error instanceof ReplyError;

/** Makes a runner over one connection with every script below lua/. */
export function createRunner({ connection, recover, reconnectMsMax = 5_000 }: RunnerOptions): ScriptRunner {
  const { client } = connection;
  const scripts = new Map([...readScripts(luaRoot)].map(([name, script]) => [name, prepare(script)]));
  const counts = new Map<string, number>();

  const send = (verb: string, args: Array<string | Buffer | number>): Promise<unknown> =>
    client.sendCommand(new Command(verb, args as string[], { replyEncoding: null })) as Promise<unknown>;

  async function sendScript(loaded: Loaded, flat: Array<string | Buffer | number>): Promise<unknown> {
    try {
      return await send('evalsha', flat);
    } catch (error) {
      if (!isReplyError(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return send('eval', [loaded.script.source, ...flat.slice(1)]);
    }
  }

  /** One attempt. A lost connection is told apart from an answer of Redis that refuses. */
  async function attempt(loaded: Loaded, keys: object, args: object) {
    const runId = connection.runId();
    if (runId === null) return { lost: true as const };
    const flat = flatten(loaded, runId, keys as Record<string, unknown>, args as Record<string, unknown>);
    let reply: unknown;
    try {
      reply = await sendScript(loaded, flat);
    } catch (error) {
      // Whatever is not an answer of Redis is a connection that closed, or an answer that did not come in time.
      if (!isReplyError(error)) return { lost: true as const };
      if (/^(OOM|-?OOM)|maxmemory/.test(error.message))
        throw new ApiError('too_many_requests', { retry_after: 1 });
      if (/^(LOADING|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MISCONF)/.test(error.message))
        throw unavailable();
      throw located(loaded.script, error);
    }
    return { lost: false as const, runId, reply: decodeReply(loaded.script, reply) };
  }

  async function call(name: string, partition: number, keys: object, args: object): Promise<unknown> {
    const loaded = scripts.get(name);
    if (!loaded) throw new Error(`no script ${name}`);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const deadline = performance.now() + reconnectMsMax;
    for (let recovered = 0; ; ) {
      const result = await attempt(loaded, keys, args);
      if (result.lost) {
        const left = deadline - performance.now();
        if (!loaded.repeatable || left <= 0) throw unavailable();
        await connection.ready(left);
      } else if (result.reply.status === 'stale_run' && recovered < 3) {
        recovered++;
        await recover(partition, result.runId);
      } else if (result.reply.status === 'stale_run') {
        throw unavailable();
      } else if (result.reply.status === 'journal_full') {
        throw new ApiError('too_many_requests', { retry_after: 1 });
      } else {
        return result.reply;
      }
    }
  }

  return { call: call as ScriptRunner['call'], counts };
}
