/** Calls scripts by name with typed keys and arguments, and answers for what can happen to a call on its way. */

import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ReplyError } from 'ioredis';
import { ApiError } from '../../errors.js';
import { Counts, type Distribution, Distributions } from '../../obs/distribution.js';
import type { Redirected, RedisConnection, RedisServers } from '../connection.js';
import type { MemoryWatch } from '../memory.js';
import { createPauses, type Pauses } from '../pauses.js';
import { partitionsWith } from '../present.js';
import { unavailable } from '../waiting.js';
import { readScripts, type Script } from './contract.js';
import { AskingCommand, type ScriptArg, ScriptCommand } from './script_command.js';
import { decodeReply, type Reply } from './script_reply.js';
import type { ScriptName, Scripts } from './scripts.gen.js';

type Result<N extends ScriptName> = Exclude<Scripts[N]['result'], { status: 'stale_run' | 'journal_full' }>;

export interface ScriptRunner {
  /**
   * Runs a script in one round trip. A script that is repeatable by its header is sent again after a lost connection;
   * any other call whose outcome is unknown answers `unavailable`. On a cluster, a call that did not run because its
   * slot is elsewhere is sent there; while the slot is being moved, a repeatable script is sent again until it runs.
   * Errors: `unavailable` while Redis is away, `too_many_requests` while the journal or the memory is full.
   */
  call<N extends ScriptName>(
    name: N,
    partition: number,
    keys: Scripts[N]['keys'],
    args: Scripts[N]['args'],
  ): Promise<Result<N>>;
  /** See `present.ts`. */
  partitionsWith(count: number, keysOf: (partition: number) => readonly string[]): Promise<readonly number[]>;
  /** Whether the server of a partition is nearly out of memory: what grows is refused, and reads leave no copies. */
  isFull(partition: number): boolean;
  /** How long calls took that Redis answered at once, by script, and those that took the longer way or failed. */
  readonly times: Distributions;
  readonly troubles: Counts;
}

export interface RunnerOptions {
  readonly connection: RedisServers;
  /** Raises the partition's incarnation for this run id (architecture, Journal). */
  readonly recover: (partition: number, runId: string) => Promise<void>;
  /** Hears of each call that Redis answered, where somebody asks for that. */
  readonly onCall?: ((name: string, ms: number) => void) | undefined;
  /** How long a call that may be repeated waits, from its start, for a lost connection or for a slot that is being moved. */
  readonly reconnectMsMax?: number;
  /** Hears of slots that are being moved. */
  readonly pauses?: Pauses;
  /** Says which servers are nearly out of memory; none if absent. */
  readonly memory?: Pick<MemoryWatch, 'isFull'> | undefined;
}

interface Loaded {
  readonly script: Script;
  /** Takes memory: refused while a server is nearly full. */
  readonly grows: boolean;
  readonly keyNames: readonly string[];
  readonly listKey: string | undefined;
  readonly argNames: readonly string[];
  readonly listArg: string | undefined;
  /** How long its calls took. */
  readonly times: Distribution;
}

/** An answer of the script on a server, under a run id. */
interface Answered {
  readonly node: RedisConnection;
  readonly runId: string;
  readonly reply: Reply;
}

/** What came of an attempt: an answer, another server to ask, nothing that says whether it ran, or keys that are split between
 * two servers. */
type Outcome = Answered | Redirected | typeof lost | typeof moving;
const lost = 'lost';
const moving = 'moving';

/**
 * The slot is being moved and some keys are here, others there. Redis says so before a script runs (TRYAGAIN), or in the midst
 * of one whose derived keys have gone, or when a slot arrives while its script runs: such a script may have run in part.
 */
const isMoving = /^TRYAGAIN|non local key/;
/** Rest before a call on a slot that is being moved is sent again; it doubles. */
const movingPauseMs = 10;
const movingPauseMsMax = 100;

/** How often one call may find its partition closed before it gives up. */
const recoveriesMax = 3;

/** How often one call may be sent on: two servers may each believe for a moment that the other has a slot. */
const redirectionsMax = 8;

/** Rest before a call that was lost is sent again. */
const lostPauseMs = 5;

const luaRoot = fileURLToPath(new URL('../../../lua', import.meta.url));

function prepare(script: Script, times: Distributions): Loaded {
  const one = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.filter((s) => s.form !== 'list').map((s) => s.name);
  const list = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.find((s) => s.form === 'list')?.name;
  return {
    script,
    grows: script.flags.length === 0,
    keyNames: one(script.keys),
    listKey: list(script.keys),
    argNames: one(script.args),
    listArg: list(script.args),
    times: times.of(script.name),
  };
}

/** Names the place in lua/ that a fault of Redis speaks of. */
function located(script: Script, error: Error): Error {
  const line = /user_script:(\d+)/.exec(error.message)?.[1];
  const place = line ? script.origin[Number(line) - 1] : undefined;
  // Not as its cause: the client hangs a command's arguments on its errors, and those are no matter for a log.
  return new Error(`${script.name}${place ? ` (lua/${place})` : ''}: ${error.message}`);
}

function flatten(
  loaded: Loaded,
  runId: string,
  keys: Record<string, unknown>,
  args: Record<string, unknown>,
): ScriptArg[] {
  const { script, keyNames, listKey, argNames, listArg } = loaded;
  const listed = listKey === undefined ? [] : (keys[listKey] as string[]);
  const out: ScriptArg[] = [script.sha, keyNames.length + listed.length];
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

/** Makes a runner over one server or a cluster with every script below lua/. */
export function createRunner({
  connection,
  recover,
  onCall,
  reconnectMsMax = 5_000,
  pauses = createPauses(),
  memory,
}: RunnerOptions): ScriptRunner {
  const times = new Distributions();
  const troubles = new Counts();
  const scripts = new Map([...readScripts(luaRoot)].map(([name, script]) => [name, prepare(script, times)]));

  function flat(loaded: Loaded, runId: string, keys: object, args: object): ScriptArg[] {
    return flatten(loaded, runId, keys as Record<string, unknown>, args as Record<string, unknown>);
  }

  /** What a refusal of Redis itself means for the caller. */
  function refused(node: RedisConnection, script: Script, error: Error): Error {
    if (/^(OOM|-?OOM)|maxmemory/.test(error.message))
      return new ApiError('too_many_requests', { retry_after: 1 });
    // A server that was demoted may come back as another: what it is called is read again.
    if (error.message.startsWith('READONLY')) void node.reread();
    if (/^(LOADING|CLUSTERDOWN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MISCONF)/.test(error.message))
      return unavailable();
    if (/cluster is down/.test(error.message)) return unavailable();
    return located(script, error);
  }

  /** Sends a script to a server, whole where Redis does not have it yet, and first asks for a slot that is being moved. */
  async function ask(
    node: RedisConnection,
    asking: boolean,
    script: Script,
    args: ScriptArg[],
  ): Promise<unknown> {
    for (const whole of [false, true]) {
      try {
        // It is answered by whatever the script is answered by.
        if (asking) node.send(new AskingCommand()).catch(() => undefined);
        return await node.send(
          whole
            ? new ScriptCommand('eval', [script.source, ...args.slice(1)])
            : new ScriptCommand('evalsha', args),
        );
      } catch (error) {
        if (whole || !isReplyError(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      }
    }
    return lost;
  }

  /** What came of an attempt that failed. Throws what is for the caller. */
  function failed(
    node: RedisConnection,
    script: Script,
    error: unknown,
  ): Redirected | typeof lost | typeof moving {
    // Whatever is not an answer of Redis is a connection that closed, or an answer that did not come in time.
    if (!isReplyError(error)) return lost;
    const redirected = connection.redirect(node, error.message);
    if (redirected !== null) return redirected;
    if (isMoving.test(error.message)) return moving;
    throw refused(node, script, error);
  }

  /** Waits before a call on a slot that is being moved is sent again, or refuses it. */
  async function waitForMove(
    script: Script,
    partition: number,
    attempts: number,
    left: number,
  ): Promise<void> {
    pauses.began(partition);
    if (!script.repeatable || left <= 0) {
      pauses.refused(partition);
      throw unavailable(`the slot of partition ${partition} is being moved`);
    }
    const rest = Math.min(movingPauseMsMax, movingPauseMs * 2 ** Math.min(attempts, 10));
    await sleep(Math.min(left, rest * (0.5 + Math.random() / 2)));
  }

  /** One attempt after the first. */
  async function attempt(
    loaded: Loaded,
    { to: node, asking }: { readonly to: RedisConnection | null; readonly asking: boolean },
    keys: object,
    args: object,
  ): Promise<Outcome> {
    const runId = node?.runId() ?? null;
    if (node === null || runId === null) return lost;
    try {
      const raw = await ask(node, asking, loaded.script, flat(loaded, runId, keys, args));
      return { node, runId, reply: decodeReply(loaded.script, raw) };
    } catch (error) {
      return failed(node, loaded.script, error);
    }
  }

  /** Opens the partition that an answer found closed. */
  async function reopen(partition: number, { node, runId }: Answered): Promise<void> {
    await node.reread();
    // An id that was merely out of date calls for no raise.
    if (node.runId() === runId) await recover(partition, runId);
  }

  /** Goes on from an outcome that is no answer for the caller yet. */
  async function persist(
    loaded: Loaded,
    partition: number,
    keys: object,
    args: object,
    first: Outcome,
    began: number,
  ): Promise<Reply> {
    const deadline = began + reconnectMsMax;
    let outcome = first;
    for (let recovered = 0, redirected = 0, moves = 0; ; ) {
      const left = deadline - performance.now();
      let to: Redirected | null = null;
      if (outcome === lost) {
        if (!loaded.script.repeatable || left <= 0)
          throw unavailable(`Redis did not say what came of ${loaded.script.name}`);
        // A connection that broke counts as open until its close is heard of: without a rest, trying again would keep
        // this process from ever hearing it.
        await sleep(lostPauseMs);
        await connection.ready(left, partition);
      } else if (outcome === moving) {
        await waitForMove(loaded.script, partition, moves++, left);
        redirected = 0;
      } else if ('to' in outcome) {
        to = outcome;
        if (++redirected > redirectionsMax || left <= 0)
          throw unavailable(`no server of Redis took ${loaded.script.name}`);
        if (redirected > 2) await sleep(lostPauseMs * redirected);
        await to.to.ready(left);
      } else if (outcome.reply.status === 'stale_run') {
        if (++recovered > recoveriesMax) throw unavailable(`partition ${partition} stays closed`);
        await reopen(partition, outcome);
      } else if (outcome.reply.status === 'journal_full') {
        throw new ApiError('too_many_requests', { retry_after: 1 });
      } else {
        pauses.ran(partition);
        return outcome.reply;
      }
      const next = to ?? { to: connection.at(partition), asking: false };
      outcome = await attempt(loaded, next, keys, args);
    }
  }

  /** The usual call makes one promise besides the client's: only what went wrong takes the longer way. */
  function call(name: string, partition: number, keys: object, args: object): Promise<Reply> {
    const loaded = scripts.get(name);
    if (!loaded) return Promise.reject(new Error(`no script ${name}`));
    const began = performance.now();
    const node = connection.at(partition);
    const runId = node === null ? null : node.runId();
    if (node === null || runId === null) {
      troubles.add(name, 'away');
      return persist(loaded, partition, keys, args, lost, began);
    }
    if (loaded.grows && memory?.isFull(node)) {
      troubles.add(name, 'full');
      return Promise.reject(new ApiError('too_many_requests', { retry_after: 1 }));
    }
    return node.send(new ScriptCommand('evalsha', flat(loaded, runId, keys, args))).then(
      (raw) => {
        const reply = decodeReply(loaded.script, raw);
        const ms = performance.now() - began;
        loaded.times.observe(ms);
        onCall?.(name, ms);
        pauses.ran(partition);
        if (reply.status !== 'stale_run' && reply.status !== 'journal_full') return reply;
        troubles.add(name, reply.status);
        return persist(loaded, partition, keys, args, { node, runId, reply }, began);
      },
      async (error) => {
        const unknown = isReplyError(error) && error.message.startsWith('NOSCRIPT');
        if (!unknown) troubles.add(name, isReplyError(error) ? 'refused' : 'lost');
        const first = unknown
          ? await attempt(loaded, { to: node, asking: false }, keys, args)
          : failed(node, loaded.script, error);
        return persist(loaded, partition, keys, args, first, began);
      },
    );
  }

  function isFull(partition: number): boolean {
    const node = connection.at(partition);
    return node !== null && memory?.isFull(node) === true;
  }

  return {
    call: call as ScriptRunner['call'],
    partitionsWith: (count, keysOf) => partitionsWith(connection, count, keysOf),
    isFull,
    times,
    troubles,
  };
}
