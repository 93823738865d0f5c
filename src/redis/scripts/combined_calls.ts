/**
 * Combines script calls. Calls with the same script and partition in one turn of the event loop are sent as one run of
 * the script's combined form. Redis then needs to read the partition's counters, create the script's functions and
 * parse a command only once per run, not once per call. Combining delays no call, because all commands of a turn are
 * written at its end anyway. Outside a cluster, a run of some scripts has calls of several partitions.
 */
import { ReplyError } from 'ioredis';
import type { Random } from '../../random.js';
import type { RedisConnection } from '../connection.js';
import { redisLimits as limits } from '../limits.js';
import type { CombinedForm } from './contract.js';
import { type CallShape, type CallValues, combinedArgs, singleArgs } from './script_args.js';
import { runScript, ScriptCommand } from './script_command.js';

interface PendingCall {
  readonly values: CallValues;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The part of a request's Redis key that comes before the request id. */
const mark = ':req:';

/**
 * Returns whether only this process may repeat the request with this key. A request id contains a dot if other
 * processes may repeat the request.
 */
const isOfProcess = (key: string): boolean => !key.includes('.', key.indexOf(mark) + mark.length);

/**
 * The size of one call or of a combined run. `weight` is the number of calls, or of list values in calls with a list.
 * `bytes` is the size of the arguments.
 */
interface Size {
  weight: number;
  bytes: number;
}

/** The calls of one combined run, and their total size. */
interface PendingRun extends Size {
  readonly node: RedisConnection;
  readonly runId: string;
  readonly shape: CallShape;
  readonly form: CombinedForm;
  readonly calls: [PendingCall, ...PendingCall[]];
}

/** Returns the size of a call. A list argument counts as one call per value. */
function sizeOf({ argNames, listArg }: CallShape, { args }: CallValues): Size {
  const listed = listArg === undefined ? [] : (args[listArg] as ReadonlyArray<string | Buffer>);
  let bytes = 0;
  for (const value of listed) bytes += value.length;
  for (const name of argNames) bytes += (args[name] as string | Buffer | undefined)?.length ?? 0;
  return { weight: Math.max(1, listed.length), bytes };
}

/** In an error message, replaces a line number of the combined form with the original file and line. */
const raised = ({ origin }: CombinedForm, { message }: Error): Error =>
  new ReplyError(message.replace(/user_script:(\d+)/g, (_, line) => `lua/${origin[Number(line) - 1]}`));

/** Returns whether another call fits into a combined run. */
const hasRoom = (run: PendingRun, node: RedisConnection, runId: string, { weight, bytes }: Size): boolean =>
  run.node === node &&
  run.runId === runId &&
  run.weight + weight <= run.form.callsMax &&
  run.bytes + bytes <= limits.combined_calls_bytes_max;

/** Calls of a run are numbered from 10, so that every number has two digits. */
const placeMin = 10;

/**
 * Gives the calls of a combined run one common Redis key for their answers (lua/lib/request.lua). Calls that other
 * processes may repeat, and calls without a request id, keep their own keys. `name` is unique for each run. It must not
 * be a request id, because a call that is refused and repeated would then find the answers of its first run.
 */
function shareKey(name: string, calls: readonly CallValues[]): void {
  for (const [i, call] of calls.entries()) {
    const own = call.keys.request as string | undefined;
    if (own === undefined || !isOfProcess(own)) continue;
    call.request = `${own.slice(0, own.indexOf(mark) + mark.length)}${name}:${placeMin + i}`;
  }
}

/** Sends the calls of a run. If the run has only one call, sends it in the single form. */
async function sendCalls({ node, runId, shape, form, calls }: PendingRun, name: () => string): Promise<void> {
  const [first, ...others] = calls;
  try {
    if (others.length === 0) {
      first.resolve(await node.send(new ScriptCommand('evalsha', singleArgs(shape, runId, first.values))));
      return;
    }
    const send = node.send.bind(node);
    const values: [CallValues, ...CallValues[]] = [first.values, ...others.map((each) => each.values)];
    shareKey(name(), values);
    const answers = await runScript(send, form.source, combinedArgs(shape, form, runId, values));
    for (let i = 0; i < calls.length; i++) {
      const { resolve, reject } = calls[i] as PendingCall;
      const answer = (answers as unknown[])[i];
      if (answer instanceof Error) reject(raised(form, answer));
      else resolve(answer);
    }
  } catch (error) {
    for (const { reject } of calls) reject(error);
  }
}

/** Collects the calls of one event loop turn into combined runs. */
export class CombinedCalls {
  readonly #name: string;
  #named = 0;

  /**
   * The runs that are not sent yet, keyed by script and partition. Runs with calls of several partitions have the key
   * -1.
   */
  readonly #pending = new Map<CallShape, Map<number, PendingRun>>();

  constructor(random: Pick<Random, 'bytes'>) {
    this.#name = random.bytes(9).toString('base64url');
  }

  readonly #nextName = (): string => `${this.#name}${(++this.#named).toString(36)}`;

  /**
   * Adds a call to the combined run of its script and partition. If `partition` is -1, the run may have calls of
   * several partitions. Resolves with the reply to the call. If the run's calls share a request key, sets the field
   * `request` of `values`. A retry of the call must use the same `request`.
   */
  send(
    node: RedisConnection,
    runId: string,
    shape: CallShape,
    form: CombinedForm,
    partition: number,
    values: CallValues,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = { values, resolve, reject };
      const runs = this.#runsOf(shape);
      const size = sizeOf(shape, values);
      const present = runs.get(partition);
      if (present !== undefined && hasRoom(present, node, runId, size)) {
        present.calls.push(call);
        present.weight += size.weight;
        present.bytes += size.bytes;
        return;
      }
      if (present !== undefined) void sendCalls(present, this.#nextName);
      const run: PendingRun = { node, runId, shape, form, calls: [call], ...size };
      runs.set(partition, run);
      node.atTurnEnd(() => {
        if (runs.get(partition) !== run) return;
        runs.delete(partition);
        void sendCalls(run, this.#nextName);
      });
    });
  }

  #runsOf(shape: CallShape): Map<number, PendingRun> {
    const present = this.#pending.get(shape);
    if (present !== undefined) return present;
    const runs = new Map<number, PendingRun>();
    this.#pending.set(shape, runs);
    return runs;
  }
}
