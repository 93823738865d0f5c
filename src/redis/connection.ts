/**
 * Manages one Redis connection that is optimised for frequent calls. Also detects changes of the server's replication
 * history.
 */
import type { Command, Redis } from 'ioredis';
import { type Random, systemRandom } from '../random.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { redisLimits as limits } from './limits.js';
import { ScriptCommand } from './scripts/script_command.js';
import { openClient, type RedisServer } from './target.js';
import { createWaiting } from './waiting.js';

export interface RedisServers {
  readonly clustered: boolean;
  at(partition: number): RedisConnection | null;
  nodes(): readonly RedisConnection[];
  /**
   * If the error reply `refusal` says that another server has the keys, returns that server. The refused call did not
   * run. Returns null for any other error.
   */
  redirect(from: RedisConnection, refusal: string): Redirected | null;
  /**
   * Resolves when the partition's server is usable. Without `partition`, resolves when all servers are usable. Rejects
   * with `unavailable` after `msMax`.
   */
  ready(msMax: number, partition?: number): Promise<void>;
  reachable(): boolean;
  close(): Promise<void>;
}

/**
 * The server to which the call is redirected. If `asking` is true, the slot is still being migrated, and only this call
 * goes to that server.
 */
export interface Redirected {
  readonly to: RedisConnection;
  readonly asking: boolean;
}

export interface ConnectOptions {
  readonly url: RedisServer;
  readonly name: string;
  readonly onError?: ((error: Error) => void) | undefined;
  readonly onChange?: () => void;
  /** Checks each server before it is used. If the result is false or an error, the client reconnects. */
  readonly admit?: ((connection: RedisConnection) => Promise<boolean>) | undefined;
  readonly time?: Time;
  readonly random?: Random;
}

/** Returns the wait before a reconnect. The wait grows exponentially with jitter, up to about a second. */
export function reconnectDelay(attempt: number, random: number): number {
  return Math.min(1_000, 20 * 2 ** Math.min(attempt, 6)) * (0.75 + random / 2);
}

const watchMs = 250;

/**
 * Manages the connection to one server. Outside a cluster, this server has every partition. Commands fail at once while
 * the connection is down, so that callers can decide whether to wait. A new connection loads the run id before it sends
 * any script. The server is usable from the moment `admit` accepts it until the connection closes or a script reports
 * another run id. A silent server is unusable until data arrives.
 */
export class RedisConnection implements RedisServers {
  readonly clustered = false;
  /** The URL of the server. With Sentinels, its host is the master's name. */
  readonly url: string;
  readonly client: Redis;
  readonly #options: ConnectOptions;
  readonly #time: Time;
  readonly #waiting: ReturnType<typeof createWaiting>;
  #runId: string | null = null;
  /** The run id that `admit` accepted on this connection, and the call of `admit` that is still running, if any. */
  #admitted: string | null = null;
  #admitting: Promise<boolean> | undefined;
  #closes = 0;
  #silent = false;
  /**
   * The number of bytes that had arrived at the last check, and the number of checks in a row that found unanswered
   * commands but no new data.
   */
  #silence = { bytes: 0, ticks: 0 };
  /** The timer of `#checkSilence`. It runs only while commands are unanswered. */
  #watch: Timer | undefined;
  /** True while writes are buffered until the end of the event loop turn. */
  #held = false;
  /** Functions to call at the end of the current event loop turn. */
  readonly #turnEnd: Array<() => void> = [];
  #clockReadAt = 0;

  constructor(options: ConnectOptions) {
    const { url, name, onError, time = systemTime, random = systemRandom } = options;
    this.#options = options;
    this.#time = time;
    this.#waiting = createWaiting(time);
    this.url = typeof url === 'string' ? url : url.url;
    const client = openClient(url, {
      connectionName: `petrel-${name}`,
      protocol: 2,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 2_000,
      keepAlive: 10_000,
      retryStrategy: (attempt) => reconnectDelay(attempt, random.number()),
      disableClientInfo: true,
    });
    this.client = client;
    client.on('error', (error: Error) => onError?.(error));
    client.on('close', () => this.#onClose());
    client.on('ready', () => this.reread());
    const sendCommand = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      this.#watch ??= time.every(watchMs, () => this.#checkSilence()).unref();
      return sendCommand(command, stream);
    };
  }

  at(): this {
    return this;
  }

  nodes(): readonly this[] {
    return [this];
  }

  redirect(): null {
    return null;
  }

  /** Returns the id of the server's replication history, or null while the server is not usable. */
  runId(): string | null {
    return this.#silent ? null : this.#runId;
  }

  reachable(): boolean {
    return this.runId() !== null;
  }

  ready(msMax: number): Promise<void> {
    return this.#waiting.until(() => this.reachable(), msMax);
  }

  /** Sends a command. All commands of one event loop turn are written to the socket in one write. */
  send(command: Command): Promise<unknown> {
    this.#holdWrites();
    return this.client.sendCommand(command) as Promise<unknown>;
  }

  /** Calls `work` at the end of the event loop turn, before the commands of this turn are written. */
  atTurnEnd(work: () => void): void {
    this.#holdWrites();
    if (this.#held) this.#turnEnd.push(work);
    else this.#time.soon(work);
  }

  async close(): Promise<void> {
    this.#time.cancel(this.#watch);
    this.client.disconnect();
  }

  /**
   * Loads the run id, which may change without a reconnect. The value consists of the server's run id and its
   * replication id. At least one of these two ids changes whenever writes may have been lost. If a server is demoted
   * and promoted again, only the replication id changes. The replication id also changes when the first replica
   * attaches.
   */
  async reread(): Promise<void> {
    const { url, onChange } = this.#options;
    const { client } = this;
    const was = this.#runId;
    try {
      const asked = this.#readClock();
      const info = await client.info('server', 'replication');
      await asked;
      const [run] = /(?<=^run_id:)\w+/m.exec(info) ?? [];
      const [replication] = /(?<=^master_replid:)\w+/m.exec(info) ?? [];
      const found = run && replication ? `${run}.${replication}` : null;
      // With Sentinels, disconnects if the server is not the master. The client then asks the Sentinels for the master
      // again.
      const isUsable = typeof url === 'string' || /^role:master/m.test(info);
      if (isUsable && (await this.#isAdmitted(found))) this.#runId = found;
      else {
        this.#runId = null;
        client.disconnect(true);
      }
    } catch {
      // Closes a connection that is open but gets no answers. The next connection loads the run id again.
      if (client.status === 'ready') client.disconnect(true);
      return;
    }
    this.#waiting.wake();
    if ((was === null) !== (this.#runId === null)) onChange?.();
  }

  #onClose(): void {
    const was = this.#runId;
    this.#runId = null;
    this.#admitted = null;
    this.#admitting = undefined;
    this.#closes++;
    this.#setSilent(false);
    if (was !== null) this.#options.onChange?.();
  }

  async #isAdmitted(found: string | null): Promise<boolean> {
    const { admit } = this.#options;
    if (admit === undefined || found === null || found === this.#admitted) return true;
    const before = this.#closes;
    const asked = this.#admitting ?? admit(this);
    this.#admitting = asked;
    const may = await asked.finally(() => {
      if (this.#admitting === asked) this.#admitting = undefined;
    });
    if (this.#closes !== before) throw new Error('the connection was lost');
    if (may) this.#admitted = found;
    return may;
  }

  /** Reads the server's clock at intervals, because clocks drift. After a slow reply, reads the clock again soon. */
  async #readClock(): Promise<void> {
    const sent = this.#time.monotonic();
    this.#clockReadAt = sent;
    // Ignores the error if the clock cannot be read, because the clock is read again soon.
    const time = (await this.client.time().catch(() => null)) as [string, string] | null;
    if (time !== null && !this.#time.follow(time, sent, this.#time.monotonic()))
      this.#clockReadAt = this.#time.monotonic() - limits.clock_read_ms + limits.clock_reread_ms;
  }

  /** Buffers writes until the end of the event loop turn, because one large write is cheaper than many small writes. */
  #holdWrites(): void {
    const { stream } = this.client;
    if (this.#held || !stream) return;
    this.#held = true;
    stream.cork();
    this.#time.soon(() => {
      for (const work of this.#turnEnd.splice(0)) work();
      this.#held = false;
      stream.uncork();
    });
  }

  #setSilent(value: boolean): void {
    if (this.#silent === value) return;
    this.#silent = value;
    // Rejects the pending calls, with an error that says that their outcome is unknown. Their commands stay in the
    // client's queue, so that a late reply is not taken for the reply to a newer command.
    if (value) {
      for (const { command } of this.client.commandQueue.toArray())
        if (command instanceof ScriptCommand) command.reject(new Error('Redis is silent'));
    } else this.#waiting.wake();
    if (this.#runId !== null) this.#options.onChange?.();
  }

  /**
   * Detects a server that has unanswered commands but sends no data. Ignores a slow server that still sends data, even
   * if a command has waited long. After redis_silence_ms without data, the server counts as unreachable: waiting
   * callers get an error, and no calls are sent until data arrives. After redis_command_timeout_ms, the connection is
   * closed. Counts timer ticks instead of measuring time, because answers may be waiting in the socket after this
   * process was blocked. A late tick counts only once.
   */
  #checkSilence(): void {
    const owes = this.client.commandQueue.length > 0;
    if (!owes) {
      this.#time.cancel(this.#watch);
      this.#watch = undefined;
    }
    const bytes = this.client.stream?.bytesRead ?? 0;
    const ticks = owes && bytes === this.#silence.bytes ? this.#silence.ticks + 1 : 0;
    this.#silence = { bytes, ticks };
    this.#setSilent(ticks * watchMs >= limits.redis_silence_ms);
    if (this.reachable() && this.#time.monotonic() - this.#clockReadAt > limits.clock_read_ms)
      void this.#readClock();
    if (ticks * watchMs < limits.redis_command_timeout_ms) return;
    this.#silence.ticks = 0;
    this.client.disconnect(true);
  }
}
