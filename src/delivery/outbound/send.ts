/** Sends updates to receivers over pooled connections, bounded in number. */
import { createHash } from 'node:crypto';
import { limits } from '../../limits.js';
import { watchLoop } from '../loop.js';
import type { Outcome } from '../outcome.js';
import { Answer } from './answer.js';
import { Connections } from './connections.js';
import { dial } from './dial.js';
import { DeliveryFault, tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import type { Headers } from './sign.js';
import { readTarget, type Target } from './target.js';
import { type Trust, trustIn } from './trust.js';

/** Where a bot's updates are sent. Built once per webhook; equal receivers share connections. */
export interface Receiver {
  readonly key: string;
  readonly target: Target;
  readonly certificate: string | undefined;
}

/** The receiver of a webhook. `certificate` is a result of `readCertificate`. */
export function receiverOf(url: string, certificate?: string): Receiver {
  const target = readTarget(url);
  const anchor = certificate === undefined ? '' : createHash('sha256').update(certificate).digest('base64');
  return { key: `${target.origin} ${anchor}`, target, certificate };
}

export interface Sender {
  /**
   * Sends a body once and waits for the answer. Follows no redirect. The deadline is 60 s in all, including DNS
   * lookup and handshake. Never throws. The caller bounds the requests per bot; requests beyond the receiver's
   * connection limit wait in order, within the same 60 s. Aborting `signal` ends the request at once and closes its
   * connection.
   */
  send(receiver: Receiver, headers: Headers, body: Buffer, signal?: AbortSignal): Promise<Outcome>;
  /** open connections, pooled receivers and requests in flight, for the metrics */
  stats(): { readonly connections: number; readonly receivers: number; readonly inFlight: number };
  /** Closes all connections. Requests in flight fail. */
  close(): Promise<void>;
}

/** Bounds default to those of `limits`; tests lower them. */
export interface SenderOptions {
  readonly guard: Guard;
  readonly deadlineMs?: number;
  readonly connectMs?: number;
  readonly connectionsMax?: number;
  readonly receiverConnectionsMax?: number;
  readonly poolIdleMs?: number;
}

interface Kept {
  readonly pool: Connections;
  inFlight: number;
  connections: number;
  usedMs: number;
  /** the last address connected to */
  address: string;
}

/** Creates the sender of one process, with connection pools for all receivers. */
export function makeSender({
  guard,
  deadlineMs = limits.webhook_deadline_ms,
  connectMs = limits.webhook_connect_ms_max,
  connectionsMax = limits.webhook_connections_max,
  receiverConnectionsMax = limits.webhook_receiver_connections_max,
  poolIdleMs = limits.webhook_pool_idle_ms,
}: SenderOptions): Sender {
  /** least recently used first */
  const kept = new Map<string, Kept>();
  /** The requests that aborting a signal ends. */
  const underWay = new WeakMap<AbortSignal, Set<Answer>>();
  const busy = watchLoop();
  let connections = 0;
  let inFlight = 0;

  function drop(key: string, { pool }: Kept): void {
    kept.delete(key);
    void pool.destroy();
  }

  /** Closes the pool of the receiver that has been idle longest. Returns false if none is idle. */
  function dropIdle(): boolean {
    for (const [key, entry] of kept) {
      if (entry.inFlight > 0 || entry.connections === 0) continue;
      drop(key, entry);
      return true;
    }
    return false;
  }

  function keep({ target, certificate }: Receiver): Kept {
    let trust: Trust | undefined;
    const open = async () => {
      if (connections >= connectionsMax && !dropIdle())
        throw new DeliveryFault('busy', 'Too many connections are open');
      connections += 1;
      entry.connections += 1;
      const gone = () => {
        connections -= 1;
        entry.connections -= 1;
      };
      try {
        trust ??= trustIn(certificate);
        const { socket, address } = await dial({ target, trust, guard, connectMs });
        entry.address = address;
        return socket.once('close', gone);
      } catch (error) {
        gone();
        throw tlsFault(error);
      }
    };
    const pool = new Connections({ origin: target.origin, max: receiverConnectionsMax, open, busy });
    const entry: Kept = { pool, inFlight: 0, connections: 0, usedMs: 0, address: '' };
    return entry;
  }

  /** Many requests share a signal, so each signal gets only one listener. */
  function answersOf(signal: AbortSignal): Set<Answer> {
    const known = underWay.get(signal);
    if (known) return known;
    const made = new Set<Answer>();
    underWay.set(signal, made);
    signal.addEventListener('abort', () => {
      for (const answer of [...made]) answer.giveUp();
    });
    return made;
  }

  const sweep = setInterval(() => {
    const before = performance.now() - poolIdleMs;
    for (const [key, entry] of kept) if (entry.inFlight === 0 && entry.usedMs < before) drop(key, entry);
  }, poolIdleMs / 2).unref();

  return {
    send(receiver, headers, body, signal) {
      const entry = kept.get(receiver.key) ?? keep(receiver);
      kept.delete(receiver.key);
      kept.set(receiver.key, entry);
      entry.inFlight += 1;
      inFlight += 1;
      const { path, authorization } = receiver.target;
      const answers = signal && answersOf(signal);
      return new Promise<Outcome>((resolve) => {
        const answer = new Answer(
          deadlineMs,
          () => entry.address,
          (outcome) => {
            entry.inFlight -= 1;
            inFlight -= 1;
            entry.usedMs = performance.now();
            answers?.delete(answer);
            resolve(outcome);
          },
        );
        const all = authorization === undefined ? headers : { ...headers, Authorization: authorization };
        answers?.add(answer);
        entry.pool.send({ path, headers: all, body }, answer);
        if (signal?.aborted) answer.giveUp();
      });
    },
    stats: () => ({ connections, receivers: kept.size, inFlight }),
    async close() {
      clearInterval(sweep);
      const entries = [...kept.values()];
      kept.clear();
      await Promise.all(entries.map(({ pool }) => pool.destroy()));
    },
  };
}
