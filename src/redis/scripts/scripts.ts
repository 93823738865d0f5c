/** Calls scripts by name with typed keys and arguments. Handles lost connections, redirections and partition recovery. */

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
   * Runs a script in one round trip. A repeatable script is retried after a lost connection; any other call with an
   * unknown outcome fails with `unavailable`. On a cluster, a call rejected because its slot moved is sent to the new
   * server. During a slot migration, repeatable scripts are retried until they run. Errors: `unavailable` while Redis
   * is unreachable, `too_many_requests` while the journal or Redis' memory is full.
   */
  call<N extends ScriptName>(
    name: N,
    partition: number,
    keys: Scripts[N]['keys'],
    args: Scripts[N]['args'],
  ): Promise<Result<N>>;
  /** See `present.ts`. */
  partitionsWith(count: number, keysOf: (partition: number) => readonly string[]): Promise<readonly number[]>;
  /** Whether the partition's server is nearly out of memory. Scripts that add data are then rejected, and reads cache nothing. */
  isFull(partition: number): boolean;
  /** Call times by script, for calls that succeeded at the first attempt; and counts of the other calls. */
  readonly times: Distributions;
  readonly troubles: Counts;
}

export interface RunnerOptions {
  readonly connection: RedisServers;
  /** Raises the partition's incarnation for this run id (architecture, Journal). */
  readonly recover: (partition: number, runId: string) => Promise<void>;
  /** Called after each successful call, if set. */
  readonly onCall?: ((name: string, ms: number) => void) | undefined;
  /** How long a repeatable call may wait, from its start, for a reconnect or a slot migration. */
  readonly reconnectMsMax?: number;
  /** Records pauses due to slot migrations. */
  readonly pauses?: Pauses;
  /** Reports servers that are nearly out of memory; none if absent. */
  readonly memory?: Pick<MemoryWatch, 'isFull'> | undefined;
}

interface Loaded {
  readonly script: Script;
  /** The script adds data, so it is rejected while a server is nearly full. */
  readonly grows: boolean;
  readonly keyNames: readonly string[];
  readonly listKey: string | undefined;
  readonly argNames: readonly string[];
  readonly listArg: string | undefined;
  /** Latency of its calls. */
  readonly times: Distribution;
}

/** A script's reply, with the server and run id that it came from. */
interface Answered {
  readonly node: RedisConnection;
  readonly runId: string;
  readonly reply: Reply;
}

/** Outcome of an attempt: a reply, a redirection, an unknown outcome, or a slot migration in progress. */
type Outcome = Answered | Redirected | typeof lost | typeof moving;
const lost = 'lost';
const moving = 'moving';

/**
 * The slot is being migrated, so its keys are split between two servers. Redis reports that before the script runs
 * (TRYAGAIN), in the middle of it when a derived key has moved, or when the slot arrives while it runs. So the script
 * may have run in part.
 */
const isMoving = /^TRYAGAIN|non local key/;
/** First pause before a retry during a slot migration. It doubles each time. */
const movingPauseMs = 10;
const movingPauseMsMax = 100;

/** How often one call may find its partition closed before it fails. */
const recoveriesMax = 3;

/** How often one call may be redirected: two servers may each briefly believe that the other has the slot. */
const redirectionsMax = 8;

/** Pause before retrying a call with an unknown outcome. */
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

/** Adds the file and line in lua/ to an error raised by a script. */
function located(script: Script, error: Error): Error {
  const line = /user_script:(\d+)/.exec(error.message)?.[1];
  const place = line ? script.origin[Number(line) - 1] : undefined;
  // Do not set `cause`: the client's error includes the command's arguments, which must not be logged.
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

/** Creates a runner for all scripts below lua/. */
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

  /** Converts a Redis error to the caller's error. */
  function refused(node: RedisConnection, script: Script, error: Error): Error {
    if (/^(OOM|-?OOM)|maxmemory/.test(error.message))
      return new ApiError('too_many_requests', { retry_after: 1 });
    // A demoted server may return with another history, so reread its id.
    if (error.message.startsWith('READONLY')) void node.reread();
    if (/^(LOADING|CLUSTERDOWN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MISCONF)/.test(error.message))
      return unavailable();
    if (/cluster is down/.test(error.message)) return unavailable();
    return located(script, error);
  }

  /** Sends a script by its hash, or its source if Redis does not have it yet. `asking` precedes it with ASKING. */
  async function ask(
    node: RedisConnection,
    asking: boolean,
    script: Script,
    args: ScriptArg[],
  ): Promise<unknown> {
    for (const whole of [false, true]) {
      try {
        // Ignore errors of ASKING itself: the script's reply reports the same problem.
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

  /** Classifies a failed attempt. Throws errors meant for the caller. */
  function failed(
    node: RedisConnection,
    script: Script,
    error: unknown,
  ): Redirected | typeof lost | typeof moving {
    // Any error that is not a Redis reply is a closed connection or a timeout.
    if (!isReplyError(error)) return lost;
    const redirected = connection.redirect(node, error.message);
    if (redirected !== null) return redirected;
    if (isMoving.test(error.message)) return moving;
    throw refused(node, script, error);
  }

  /** Waits before a retry during a slot migration, or rejects the call. */
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
    const pause = Math.min(movingPauseMsMax, movingPauseMs * 2 ** Math.min(attempts, 10));
    await sleep(Math.min(left, pause * (0.5 + Math.random() / 2)));
  }

  /** Makes one attempt that is not the first. */
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

  /** Recovers a partition that a reply reported as closed. */
  async function reopen(partition: number, { node, runId }: Answered): Promise<void> {
    await node.reread();
    // Recover only if the id is current: an outdated id explains the closed partition.
    if (node.runId() === runId) await recover(partition, runId);
  }

  /** Retries until there is a reply for the caller, or throws. */
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
          throw unavailable(`the outcome of ${loaded.script.name} is unknown`);
        // A broken connection counts as open until its close event. Yield to the event loop, so that the event can
        // arrive.
        await sleep(lostPauseMs);
        await connection.ready(left, partition);
      } else if (outcome === moving) {
        await waitForMove(loaded.script, partition, moves++, left);
        redirected = 0;
      } else if ('to' in outcome) {
        to = outcome;
        if (++redirected > redirectionsMax || left <= 0)
          throw unavailable(`no Redis server accepted ${loaded.script.name}`);
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

  /** Fast path with a single extra promise. Only failed calls take the slower path. */
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
