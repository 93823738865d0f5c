/** One Redis connection, configured for the hot path. It also tracks the server's replication history. */
import type { Command, Redis } from 'ioredis';
import { setClock } from '../clock.js';
import { limits } from '../limits.js';
import { ScriptCommand } from './scripts/script_command.js';
import { openClient, type RedisServer } from './target.js';
import { createWaiting } from './waiting.js';

/** The Redis servers of an installation: a single server, or the masters of a cluster. */
export interface RedisServers {
  readonly clustered: boolean;
  /** The server that carries a partition; null while unknown. */
  at(partition: number): RedisConnection | null;
  /** The servers that carry partitions. */
  nodes(): readonly RedisConnection[];
  /** Interprets the error of a call that did not run because its keys are on another server. Returns null for any other error. */
  redirect(from: RedisConnection, refusal: string): Redirected | null;
  /**
   * Resolves once a partition's server is usable; without `partition`, once all servers are. Rejects with `unavailable`
   * after `msMax`.
   */
  ready(msMax: number, partition?: number): Promise<void>;
  /** Whether any server is usable. */
  reachable(): boolean;
  close(): Promise<void>;
}

/** The server that a call must be sent to instead. `asking`: only this call, because its slot is being migrated. */
export interface Redirected {
  readonly to: RedisConnection;
  readonly asking: boolean;
}

/** The connection to one server. Outside a cluster, that server carries every partition. */
export interface RedisConnection extends RedisServers {
  /** with Sentinels, the host is the master's name */
  readonly url: string;
  readonly client: Redis;
  /**
   * Identifies the replication history of the connected server; null while disconnected or unresponsive. It is read on
   * each new connection before any script is sent, so that scripts detect a restarted server.
   */
  runId(): string | null;
  /** Rereads the id, which may have changed without a reconnect. */
  reread(): Promise<void>;
  /** Sends a command. Commands of one event loop turn share one socket write. */
  send(command: Command): Promise<unknown>;
}

export interface ConnectOptions {
  readonly url: RedisServer;
  readonly name: string;
  readonly onError?: (error: Error) => void;
  /** Called when the server becomes usable and when it stops being usable. */
  readonly onChange?: () => void;
  /** Checks each server before it is used. On false or an error the client reconnects. */
  readonly admit?: ((connection: RedisConnection) => Promise<boolean>) | undefined;
}

/** Milliseconds to wait before reconnect attempt `n`: exponential, about a second at most, with jitter. */
export function reconnectDelay(attempt: number): number {
  return Math.min(1_000, 20 * 2 ** Math.min(attempt, 6)) * (0.75 + Math.random() / 2);
}

/** How often to check whether the server still answers. */
const watchMs = 250;

/** Opens a connection. Commands fail at once while it is down: callers decide whether to wait. */
export function connectRedis({
  url: server,
  name,
  onError,
  onChange,
  admit,
}: ConnectOptions): RedisConnection {
  const url = typeof server === 'string' ? server : server.url;
  const client = openClient(server, {
    connectionName: `petrel-${name}`,
    protocol: 2,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    keepAlive: 10_000,
    retryStrategy: reconnectDelay,
    disableClientInfo: true,
  });
  let runId: string | null = null;
  /** The id that `admit` accepted on this connection, and the check in progress. */
  let admitted: string | null = null;
  let admitting: Promise<boolean> | undefined;
  let closes = 0;
  let silent = false;
  let held = false;
  let clockReadAt = 0;
  const waiting = createWaiting();
  client.on('error', (error: Error) => onError?.(error));
  client.on('close', () => {
    const was = runId;
    runId = null;
    admitted = null;
    admitting = undefined;
    closes++;
    setSilent(false);
    if (was !== null) onChange?.();
  });

  /**
   * Builds the id from run id and replication id, because together they change whenever writes may have been lost: the
   * run id survives a demotion and promotion, the replication id does not. The replication id also changes when the
   * first replica attaches, so `reread` exists.
   */
  async function readId(): Promise<void> {
    const was = runId;
    try {
      const asked = readClock();
      const info = await client.info('server', 'replication');
      await asked;
      const [run] = /(?<=^run_id:)\w+/m.exec(info) ?? [];
      const [replication] = /(?<=^master_replid:)\w+/m.exec(info) ?? [];
      const found = run && replication ? `${run}.${replication}` : null;
      // With Sentinels, disconnect from a server that is not the master. The client then asks the Sentinels again.
      const isUsable = typeof server === 'string' || /^role:master/m.test(info);
      if (isUsable && (await isAdmitted(found))) runId = found;
      else {
        runId = null;
        client.disconnect(true);
      }
    } catch {
      // After a lost connection, the next one reads the id again. Drop a connection that stays open but does not
      // answer.
      if (client.status === 'ready') client.disconnect(true);
      return;
    }
    waiting.wake();
    if ((was === null) !== (runId === null)) onChange?.();
  }

  /** Throws if the connection was lost during the check. */
  async function isAdmitted(found: string | null): Promise<boolean> {
    if (admit === undefined || found === null || found === admitted) return true;
    const before = closes;
    const asked = admitting ?? admit(self);
    admitting = asked;
    const may = await asked.finally(() => {
      if (admitting === asked) admitting = undefined;
    });
    if (closes !== before) throw new Error('the connection was lost');
    if (may) admitted = found;
    return may;
  }

  /** Reads the server's clock. Repeated at intervals, because clocks drift, and soon after a slow reply. */
  async function readClock(): Promise<void> {
    const sent = performance.now();
    clockReadAt = sent;
    // Ignore a failed reading: the next one follows soon.
    const time = (await client.time().catch(() => null)) as [string, string] | null;
    if (time !== null && !setClock(time, sent, performance.now()))
      clockReadAt = performance.now() - limits.clock_read_ms + limits.clock_reread_ms;
  }

  client.on('ready', readId);

  /** Corks the socket until the end of the event loop turn, because one write is cheaper than many. */
  function holdWrites(): void {
    const { stream } = client;
    if (held || !stream) return;
    held = true;
    stream.cork();
    setImmediate(() => {
      held = false;
      stream.uncork();
    });
  }

  function setSilent(value: boolean): void {
    if (silent === value) return;
    silent = value;
    // Keep the commands queued, so that late answers match them. Their callers are told that the outcome is unknown.
    if (silent) {
      for (const { command } of client.commandQueue.toArray())
        if (command instanceof ScriptCommand) command.reject(new Error('Redis is silent'));
    } else waiting.wake();
    if (runId !== null) onChange?.();
  }

  /**
   * Detects an unresponsive server: one that owes answers but sends no byte. A server that is slow but still sends data
   * is not affected, however old a command is. After redis_silence_ms without data the server counts as unreachable:
   * waiting callers get an error, and no calls are sent until data arrives. After redis_command_timeout_ms the
   * connection is closed. Silence is measured in timer ticks rather than time: if this process itself was blocked,
   * answers may be waiting in the socket, and the late tick counts once.
   */
  let silence = { bytes: 0, ticks: 0 };
  let watch: NodeJS.Timeout | undefined;
  function checkSilence(): void {
    if (client.commandQueue.length === 0) {
      clearInterval(watch);
      watch = undefined;
    }
    const bytes = client.stream?.bytesRead ?? 0;
    const owed = client.commandQueue.length > 0 && bytes === silence.bytes;
    silence = { bytes, ticks: owed ? silence.ticks + 1 : 0 };
    setSilent(silence.ticks * watchMs >= limits.redis_silence_ms);
    if (self.runId() !== null && performance.now() - clockReadAt > limits.clock_read_ms) void readClock();
    if (silence.ticks * watchMs < limits.redis_command_timeout_ms) return;
    silence.ticks = 0;
    client.disconnect(true);
  }

  /** The timer runs only while answers are owed. */
  const sendCommand = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    watch ??= setInterval(checkSilence, watchMs).unref();
    return sendCommand(command, stream);
  };
  const self: RedisConnection = {
    clustered: false,
    url,
    client,
    at: () => self,
    nodes: () => [self],
    redirect: () => null,
    runId: () => (silent ? null : runId),
    reread: readId,
    send(command) {
      holdWrites();
      return client.sendCommand(command) as Promise<unknown>;
    },
    ready: (msMax) => waiting.until(() => self.runId() !== null, msMax),
    reachable: () => self.runId() !== null,
    async close() {
      clearInterval(watch);
      client.disconnect();
    },
  };
  return self;
}
