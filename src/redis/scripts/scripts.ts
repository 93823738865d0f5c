/**
 * Calls scripts by name with typed keys and arguments. Handles lost connections, redirections and partition recovery.
 */

import { fileURLToPath } from 'node:url';
import { ApiError } from '../../errors.js';
import { Counts, type Distribution, Distributions } from '../../obs/distribution.js';
import { type Random, systemRandom } from '../../random.js';
import { systemTime, type Time } from '../../time.js';
import type { Redirected, RedisConnection, RedisServers } from '../connection.js';
import type { MemoryWatch } from '../memory.js';
import { createPauses, type Pauses } from '../pauses.js';
import { partitionsWith } from '../present.js';
import { unavailable } from '../waiting.js';
import { CombinedCalls } from './combined_calls.js';
import { readScripts, type Script } from './contract.js';
import { type CallShape, type CallValues, shapeOf, singleArgs, type Values } from './script_args.js';
import {
  AskingCommand,
  isReplyError,
  isUnknownScript,
  runScript,
  type ScriptArg,
  ScriptCommand,
} from './script_command.js';
import { decodeReply, type Reply } from './script_reply.js';
import type { ScriptName, Scripts } from './scripts.gen.js';
import { UnsettledRequests } from './unsettled_requests.js';

type Result<N extends ScriptName> = Exclude<Scripts[N]['result'], { status: 'stale_run' | 'journal_full' }>;

/** The interface of a runner for its callers. */
export type ScriptRunner = Pick<
  Runner,
  'call' | 'partitionsWith' | 'runIdOf' | 'isFull' | 'times' | 'troubles'
>;

export interface RunnerOptions {
  readonly connection: RedisServers;
  /**
   * Recovers a partition after Redis may have lost data. Raises the partition's incarnation for the Redis server that
   * has this run id (architecture, Journal).
   */
  readonly recover: (partition: number, runId: string) => Promise<void>;
  /** Called after each successful call, if set. */
  readonly onCall?: ((name: string, ms: number) => void) | undefined;
  /**
   * If a call can be repeated, the runner waits for a reconnect or a slot migration until this many ms after the start
   * of the call.
   */
  readonly reconnectMsMax?: number;
  /** Records the pauses that slot migrations cause. */
  readonly pauses?: Pauses;
  /** Returns whether a server is nearly out of memory. Without this option, no server counts as nearly full. */
  readonly memory?: Pick<MemoryWatch, 'isFull'> | undefined;
  /** The scripts. The default is the scripts in lua/. */
  readonly scripts?: ReadonlyMap<string, Script>;
  readonly time?: Time;
  readonly random?: Random;
}

interface Loaded {
  readonly script: Script;
  readonly shape: CallShape;
  /** Whether the script adds data. Such a script is rejected while a server is nearly full. */
  readonly grows: boolean;
  /**
   * Whether the script has an argument `token`, from which it creates a fill ticket: the permission to load a missing
   * record from Postgres.
   */
  readonly tickets: boolean;
  /** The latency of the script's calls. */
  readonly times: Distribution;
}

/** A script's reply, the server that sent it, and the run id of that server. */
interface Answered {
  readonly node: RedisConnection;
  readonly runId: string;
  readonly reply: Reply;
}

/**
 * The outcome of an attempt: a reply, a redirection, 'lost' if the outcome is unknown, or 'moving' if the slot is being
 * migrated.
 */
type Outcome = Answered | Redirected | 'lost' | 'moving';

/** A call whose first attempt gave no usable reply. */
interface Retried extends CallValues {
  readonly loaded: Loaded;
  readonly partition: number;
  /** The deadline of retries, in ms of the monotonic clock. */
  readonly deadline: number;
  /** Whether an attempt without a reply may have been applied, or may still be applied. */
  unsure: boolean;
  /**
   * `recovered` counts attempts that found the partition closed. `redirected` counts redirections in a row. `moves`
   * counts attempts during a slot migration.
   */
  recovered: number;
  redirected: number;
  moves: number;
}

/**
 * Matches the errors of a migrating slot, whose keys are split between two servers. TRYAGAIN comes before the script
 * runs. The other error comes while the script runs, if a derived key has moved or the server is still importing the
 * slot. A part of the script may then have run.
 */
const isMoving = /^TRYAGAIN|non local key/;
/** The first pause before a retry during a slot migration. Each further pause is twice as long. */
const movingPauseMs = 10;
const movingPauseMsMax = 100;

/** How many times a call may recover its partition. The call fails if it finds the partition closed once more. */
const recoveriesMax = 3;

/**
 * How many times a call may be redirected. While a slot moves, two servers may redirect calls to each other for a short
 * time.
 */
const redirectionsMax = 8;

/** How long to wait before retrying a call with an unknown outcome. */
const lostPauseMs = 5;

const luaRoot = fileURLToPath(new URL('../../../lua', import.meta.url));

let shipped: ReadonlyMap<string, Script> | undefined;

/** Returns the scripts in lua/. Each process reads them only once. */
export function readShippedScripts(): ReadonlyMap<string, Script> {
  shipped ??= readScripts(luaRoot);
  return shipped;
}

const prepare = (script: Script, times: Distributions): Loaded => ({
  script,
  shape: shapeOf(script),
  grows: script.flags.length === 0,
  tickets: [...script.errors.values()].flat().some(({ name }) => name === 'ticket' || name === 'tickets'),
  times: times.of(script.name),
});

/** If a script raised the error, adds the file and line in lua/ to the message. */
function located(script: Script, message: string): Error {
  const line = /user_script:(\d+)/.exec(message)?.[1];
  const place = line ? script.origin[Number(line) - 1] : undefined;
  // Leaves out `cause`: the client's error contains the command's arguments, which must not be logged.
  return new Error(`${script.name}${place ? ` (lua/${place})` : ''}: ${message}`);
}

const full = () => new ApiError('too_many_requests', { retry_after: 1 });

/** Converts a Redis error to the caller's error. */
function refusal(node: RedisConnection, script: Script, { message }: Error): Error {
  if (/^-?OOM|maxmemory/.test(message)) return full();
  // Reads the run id again, because a demoted server may return with another history.
  if (message.startsWith('READONLY')) void node.reread();
  const isPassing = /^(LOADING|CLUSTERDOWN|MASTERDOWN|READONLY|BUSY|NOREPLICAS|MISCONF)|cluster is down/.test(
    message,
  );
  return isPassing ? unavailable() : located(script, message);
}

/**
 * Sends a script by its hash. If Redis does not have the script yet, sends its source. If `asking` is true, sends
 * ASKING first.
 */
function ask({ to, asking }: Redirected, script: Script, args: ScriptArg[]): Promise<unknown> {
  return runScript(
    (command) => {
      // Ignores an error of ASKING itself, because the script's reply reports the same problem.
      if (asking) to.send(new AskingCommand()).catch(() => undefined);
      return to.send(command);
    },
    script.source,
    args,
  );
}

/**
 * Runs the scripts in lua/. The first attempt of a call keeps no state. If that attempt gives no usable reply, retries
 * the call until it succeeds, may not be repeated, or has taken too long.
 */
export class Runner {
  /** The latencies of calls that succeeded at the first attempt, keyed by script. All other calls are only counted. */
  readonly times = new Distributions();
  readonly troubles = new Counts();
  readonly #options: RunnerOptions;
  readonly #time: Time;
  readonly #random: Random;
  readonly #pauses: Pauses;
  readonly #combined: CombinedCalls;
  readonly #unsettled: UnsettledRequests;
  readonly #scripts: ReadonlyMap<string, Loaded>;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#unsettled = new UnsettledRequests(this.#time);
    this.#random = options.random ?? systemRandom;
    this.#combined = new CombinedCalls(this.#random);
    this.#pauses = options.pauses ?? createPauses(undefined, this.#time);
    const scripts = [...(options.scripts ?? readShippedScripts())];
    this.#scripts = new Map(scripts.map(([name, script]) => [name, prepare(script, this.times)]));
  }

  /**
   * Runs a script in one round trip. A repeatable script is retried after a lost connection. Any other call with an
   * unknown outcome fails with `unavailable`. On a cluster, a call that was rejected because its slot moved is sent to
   * the new server. During a slot migration, repeatable scripts are retried until they run. Errors: `unavailable` while
   * Redis is unreachable, `too_many_requests` while the journal or Redis' memory is full.
   */
  call<N extends ScriptName>(
    name: N,
    partition: number,
    keys: Scripts[N]['keys'],
    args: Scripts[N]['args'],
  ): Promise<Result<N>>;
  /**
   * Calls a script. A call that succeeds at once creates only one additional promise. Only a call whose first attempt
   * fails takes a slower path.
   */
  call(name: string, partition: number, keys: Values, args: Values): Promise<Reply> {
    const loaded = this.#scripts.get(name);
    if (!loaded) return Promise.reject(new Error(`no script ${name}`));
    const began = this.#time.monotonic();
    const { connection, memory, onCall } = this.#options;
    const node = connection.at(partition);
    const runId = node === null ? null : node.runId();
    const call = { keys, args, request: this.#unsettled.take(keys.request) };
    if (node === null || runId === null) {
      this.troubles.add(name, 'away');
      return this.#retry(this.#retried(loaded, partition, call, began), () => 'lost');
    }
    if (loaded.grows && memory?.isFull(node)) {
      this.troubles.add(name, 'full');
      return Promise.reject(full());
    }
    return this.#send(node, runId, loaded, partition, call).then(
      (raw) => {
        const reply = decodeReply(loaded.script, raw);
        const ms = this.#time.monotonic() - began;
        loaded.times.observe(ms);
        onCall?.(name, ms);
        this.#pauses.ran(partition);
        if (reply.status !== 'stale_run' && reply.status !== 'journal_full') return reply;
        this.troubles.add(name, reply.status);
        const retried = this.#retried(loaded, partition, call, began);
        return this.#retry(retried, () => ({ node, runId, reply }));
      },
      (error) => {
        const retried = this.#retried(loaded, partition, call, began);
        if (isUnknownScript(error))
          return this.#retry(retried, () => this.#attempt(retried, { to: node, asking: false }));
        this.troubles.add(name, isReplyError(error) ? 'refused' : 'lost');
        return this.#retry(retried, () => this.#failed(node, retried, error));
      },
    );
  }

  /** Finds partitions with pending work. See `present.ts`. */
  partitionsWith(
    count: number,
    keysOf: (partition: number) => readonly string[],
  ): Promise<readonly number[]> {
    return partitionsWith(this.#options.connection, count, keysOf);
  }

  /** Returns the run id of the partition's server, or null while the server is unavailable. */
  runIdOf(partition: number): string | null {
    return this.#options.connection.at(partition)?.runId() ?? null;
  }

  /**
   * Returns whether the partition's server is nearly out of memory. Scripts that add data are then rejected, and reads
   * cache nothing.
   */
  isFull(partition: number): boolean {
    const node = this.#options.connection.at(partition);
    return node !== null && this.#options.memory?.isFull(node) === true;
  }

  /**
   * Makes the first attempt of a call. If the script has a combined form, combines the call with other calls of this
   * event loop turn.
   */
  #send(
    node: RedisConnection,
    runId: string,
    loaded: Loaded,
    partition: number,
    call: CallValues,
  ): Promise<unknown> {
    const form = loaded.script.combined;
    if (form === null || call.request !== undefined)
      return node.send(new ScriptCommand('evalsha', singleArgs(loaded.shape, runId, call)));
    const shared = form.anyPartition && !this.#options.connection.clustered ? -1 : partition;
    return this.#combined.send(node, runId, loaded.shape, form, shared, call);
  }

  #retried(loaded: Loaded, partition: number, call: CallValues, began: number): Retried {
    const deadline = began + (this.#options.reconnectMsMax ?? 5_000);
    return { ...call, loaded, partition, deadline, unsure: false, recovered: 0, redirected: 0, moves: 0 };
  }

  /**
   * Retries a call after its first attempt. If the call fails but one of its attempts may still be applied, remembers
   * the call's request id.
   */
  async #retry(call: Retried, first: () => Outcome | Promise<Outcome>): Promise<Reply> {
    try {
      const reply = await this.#persist(call, await first());
      if (reply.status === 'ok') call.unsure = false;
      return reply;
    } finally {
      const own = call.keys.request as string | undefined;
      if (own !== undefined && call.unsure && call.loaded.script.combined !== null)
        this.#unsettled.keep(own, call.request ?? own);
    }
  }

  /** Repeats attempts until there is a reply for the caller. Throws if the call fails. */
  async #persist(call: Retried, first: Outcome): Promise<Reply> {
    for (let outcome = first; ; ) {
      if (typeof outcome === 'object' && 'reply' in outcome && outcome.reply.status !== 'stale_run') {
        if (outcome.reply.status === 'journal_full') throw full();
        this.#pauses.ran(call.partition);
        return outcome.reply;
      }
      outcome = await this.#attempt(call, await this.#beforeRetry(call, outcome));
    }
  }

  /**
   * Makes one more attempt, with a new token for fill tickets (permissions to load missing records). With the token of
   * an earlier attempt, the script could create a ticket again that a write has removed.
   */
  async #attempt(call: Retried, server: Redirected | null): Promise<Outcome> {
    const runId = server?.to.runId() ?? null;
    const { loaded } = call;
    if (server === null || runId === null) return 'lost';
    const args = loaded.tickets ? { ...call.args, token: this.#random.uuid() } : call.args;
    try {
      const raw = await ask(server, loaded.script, singleArgs(loaded.shape, runId, { ...call, args }));
      return { node: server.to, runId, reply: decodeReply(loaded.script, raw) };
    } catch (error) {
      return this.#failed(server.to, call, error);
    }
  }

  /** Classifies a failed attempt. Throws the errors that the caller must get. */
  #failed(node: RedisConnection, call: Retried, error: unknown): Outcome {
    // An error that is not a Redis reply means that the connection was closed or timed out.
    if (!isReplyError(error)) {
      call.unsure = true;
      return 'lost';
    }
    const redirected = this.#options.connection.redirect(node, error.message);
    if (redirected !== null) return redirected;
    if (isMoving.test(error.message)) return 'moving';
    throw refusal(node, call.loaded.script, error);
  }

  /**
   * Waits until the call may be repeated. Returns the server for the next attempt, or null if that server is unknown.
   * Throws if the call must not be repeated.
   */
  async #beforeRetry(call: Retried, outcome: Outcome): Promise<Redirected | null> {
    const left = call.deadline - this.#time.monotonic();
    if (typeof outcome === 'object' && 'to' in outcome) {
      await this.#follow(call, outcome, left);
      return outcome;
    }
    if (outcome === 'lost') await this.#reconnect(call, left);
    else if (outcome === 'moving') await this.#waitForMove(call, left);
    else await this.#reopen(call, outcome);
    const to = this.#options.connection.at(call.partition);
    return to && { to, asking: false };
  }

  /** Waits until the server to which the call was redirected is usable. */
  async #follow(call: Retried, { to }: Redirected, left: number): Promise<void> {
    if (++call.redirected > redirectionsMax || left <= 0)
      throw unavailable(`no Redis server accepted ${call.loaded.script.name}`);
    if (call.redirected > 2) await this.#time.sleep(lostPauseMs * call.redirected);
    await to.ready(left);
  }

  /** After a lost connection, waits until the partition's server is usable. */
  async #reconnect({ loaded: { script }, partition }: Retried, left: number): Promise<void> {
    if (!script.repeatable || left <= 0) throw unavailable(`the outcome of ${script.name} is unknown`);
    // Waits one turn of the event loop, so that the close event of a broken connection can arrive. Until then, the
    // connection looks open.
    await this.#time.sleep(lostPauseMs);
    await this.#options.connection.ready(left, partition);
  }

  /** Waits during a slot migration. */
  async #waitForMove(call: Retried, left: number): Promise<void> {
    const { loaded, partition } = call;
    this.#pauses.began(partition);
    if (!loaded.script.repeatable || left <= 0) {
      this.#pauses.refused(partition);
      throw unavailable(`the slot of partition ${partition} is being moved`);
    }
    const pause = Math.min(movingPauseMsMax, movingPauseMs * 2 ** Math.min(call.moves++, 10));
    await this.#time.sleep(Math.min(left, pause * (0.5 + this.#random.number() / 2)));
    call.redirected = 0;
  }

  /** Recovers a partition that a script found closed. */
  async #reopen(call: Retried, { node, runId }: Answered): Promise<void> {
    if (++call.recovered > recoveriesMax) throw unavailable(`partition ${call.partition} stays closed`);
    await node.reread();
    // If the server's run id has changed, does not recover the partition, because another server may already have
    // opened it.
    if (node.runId() === runId) await this.#options.recover(call.partition, runId);
  }
}
