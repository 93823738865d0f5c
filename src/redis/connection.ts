/** One connection to Redis with the settings of the hot path, and the name of the history that it speaks to. */
import type { Command, Redis } from 'ioredis';
import { setClock } from '../clock.js';
import { limits } from '../limits.js';
import { ScriptCommand } from './scripts/script_command.js';
import { openClient, type RedisServer } from './target.js';
import { createWaiting } from './waiting.js';

/** Redis as the store sees it: one server, or the masters of a cluster. */
export interface RedisServers {
  readonly clustered: boolean;
  /** The server that carries a partition, as far as is known; null while none is. */
  at(partition: number): RedisConnection | null;
  /** The servers that carry partitions. */
  nodes(): readonly RedisConnection[];
  /** Reads the refusal of a call that did not run since its keys are elsewhere. Null for any other refusal. */
  redirect(from: RedisConnection, refusal: string): Redirected | null;
  /** Resolves once the server of a partition is usable, or without one all of them, or rejects with `unavailable` after
   * `msMax`. */
  ready(msMax: number, partition?: number): Promise<void>;
  /** Whether any server is usable. */
  reachable(): boolean;
  close(): Promise<void>;
}

/** Where a call goes next: for good, or for this once while its slot is being moved there. */
export interface Redirected {
  readonly to: RedisConnection;
  readonly asking: boolean;
}

/** One server; where it is the only one it carries every partition. */
export interface RedisConnection extends RedisServers {
  /** where Sentinels name it: with the master's name for a host */
  readonly url: string;
  readonly client: Redis;
  /** Names the history of the server behind the present connection; null while there is none, or while the server is silent. It
   * is read on each new connection before any script is sent over it, so that a script never speaks to a restarted server
   * unawares. */
  runId(): string | null;
  /** Reads it again: it may have changed while the connection stood. */
  reread(): Promise<void>;
  /** Sends a command; what is sent in one turn of the event loop leaves in one write. */
  send(command: Command): Promise<unknown>;
}

export interface ConnectOptions {
  readonly url: RedisServer;
  readonly name: string;
  readonly onError?: (error: Error) => void;
  /** Hears when the server became usable and when it no longer is. */
  readonly onChange?: () => void;
  /** Checks each server before it is used. On false or an error the client reconnects. */
  readonly admit?: ((connection: RedisConnection) => Promise<boolean>) | undefined;
}

/** Milliseconds before attempt `n` to connect again: short at first, never above a second, with jitter. */
export function reconnectDelay(attempt: number): number {
  return Math.min(1_000, 20 * 2 ** Math.min(attempt, 6)) * (0.75 + Math.random() / 2);
}

/** How often a silent server is looked for. */
const watchMs = 250;

/** Opens a connection that refuses at once while it is down: whoever calls decides whether to wait. */
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
  /** Of the present connection; and what is being asked about it. */
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

  /** A server keeps its run id when it is demoted and promoted again, but not its replication id: both together change
   * whenever writes may have been lost. The replication id also changes when a first replica attaches, hence `reread`. */
  async function readId(): Promise<void> {
    const was = runId;
    try {
      const asked = readClock();
      const info = await client.info('server', 'replication');
      await asked;
      const [run] = /(?<=^run_id:)\w+/m.exec(info) ?? [];
      const [replication] = /(?<=^master_replid:)\w+/m.exec(info) ?? [];
      const found = run && replication ? `${run}.${replication}` : null;
      // Whoever follows Sentinels asks them anew.
      const isUsable = typeof server === 'string' || /^role:master/m.test(info);
      if (isUsable && (await isAdmitted(found))) runId = found;
      else {
        runId = null;
        client.disconnect(true);
      }
    } catch {
      // The connection went again, and the next one asks anew; one that stays and does not answer is given up.
      if (client.status === 'ready') client.disconnect(true);
      return;
    }
    waiting.wake();
    if ((was === null) !== (runId === null)) onChange?.();
  }

  /** Throws where the connection was lost meanwhile. */
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

  /** Clocks drift apart: it is asked for again at intervals, and soon after a late answer. */
  async function readClock(): Promise<void> {
    const sent = performance.now();
    clockReadAt = sent;
    // The next one makes good for one that fails.
    const time = (await client.time().catch(() => null)) as [string, string] | null;
    if (time !== null && !setClock(time, sent, performance.now()))
      clockReadAt = performance.now() - limits.clock_read_ms + limits.clock_reread_ms;
  }

  client.on('ready', readId);

  /** One write costs either side less than many. */
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
    // They stay in the queue, so that late answers find their places. Whoever waits is told that the outcome is unknown.
    if (silent) {
      for (const { command } of client.commandQueue.toArray())
        if (command instanceof ScriptCommand) command.reject(new Error('Redis is silent'));
    } else waiting.wake();
    if (runId !== null) onChange?.();
  }

  /**
   * Silence is the time without a single byte from a server that owes answers; how old a command is does not matter. A server
   * that is slow under load still answers others, and keeps its callers. One that is silent for redis_silence_ms counts as
   * away until it sends something: callers are answered, and nothing more is sent to it. After redis_command_timeout_ms the
   * connection is given up as well. Silence is counted in looks: where this process itself stood still, answers may lie
   * unread in its socket, and one late look counts as one.
   */
  let silence = { bytes: 0, looks: 0 };
  let watch: NodeJS.Timeout | undefined;
  function look(): void {
    if (client.commandQueue.length === 0) {
      clearInterval(watch);
      watch = undefined;
    }
    const bytes = client.stream?.bytesRead ?? 0;
    const owed = client.commandQueue.length > 0 && bytes === silence.bytes;
    silence = { bytes, looks: owed ? silence.looks + 1 : 0 };
    setSilent(silence.looks * watchMs >= limits.redis_silence_ms);
    if (self.runId() !== null && performance.now() - clockReadAt > limits.clock_read_ms) void readClock();
    if (silence.looks * watchMs < limits.redis_command_timeout_ms) return;
    silence.looks = 0;
    client.disconnect(true);
  }

  /** Nobody looks while no answer is owed. */
  const sendCommand = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    watch ??= setInterval(look, watchMs).unref();
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
