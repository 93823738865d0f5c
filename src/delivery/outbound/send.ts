/** Sends updates to receivers over a limited number of reused connections. */
import { createHash } from 'node:crypto';
import { systemTime, type Time, type Timer } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import { watchLoop } from '../loop.js';
import type { Outcome } from '../outcome.js';
import { Answer } from './answer.js';
import { Connections } from './connections.js';
import { dial } from './dial.js';
import { DeliveryFault, tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import { TlsSessions } from './sessions.js';
import type { Headers } from './sign.js';
import { readTarget, type Target } from './target.js';
import { type Trust, trustIn } from './trust.js';

/**
 * Where to send a bot's updates. The object is built once per webhook. Receivers with the same `key` share connections.
 */
export interface Receiver {
  readonly key: string;
  readonly target: Target;
  readonly certificate: string | undefined;
}

export function receiverOf(url: string, certificate?: string): Receiver {
  const target = readTarget(url);
  const anchor = certificate === undefined ? '' : createHash('sha256').update(certificate).digest('base64');
  return { key: `${target.origin} ${anchor}`, target, certificate };
}

export interface SenderOptions {
  readonly guard: Guard;
  readonly deadlineMs?: number;
  readonly connectMs?: number;
  readonly connectionsMax?: number;
  readonly receiverConnectionsMax?: number;
  readonly poolIdleMs?: number;
  /** How long a TLS session may be resumed. */
  readonly sessionMs?: number;
  readonly time?: Time;
}

const defaults = {
  deadlineMs: limits.webhook_deadline_ms,
  connectMs: limits.webhook_connect_ms_max,
  connectionsMax: limits.webhook_connections_max,
  receiverConnectionsMax: limits.webhook_receiver_connections_max,
  poolIdleMs: limits.webhook_pool_idle_ms,
  sessionMs: limits.webhook_session_ms,
  time: systemTime,
};

interface Kept {
  readonly pool: Connections;
  inFlight: number;
  connections: number;
  usedMs: number;
  address: string;
}

export class Sender {
  readonly #options: Required<SenderOptions>;
  readonly #kept = new Map<string, Kept>();
  /** The requests in flight, keyed by the signal that aborts them. */
  readonly #underWay = new WeakMap<AbortSignal, Set<Answer>>();
  readonly #busy: () => boolean;
  readonly #sweep: Timer;
  readonly #time: Time;
  readonly #sessions: TlsSessions;
  #connections = 0;
  #inFlight = 0;

  constructor(options: SenderOptions) {
    this.#options = { ...defaults, ...options };
    const { poolIdleMs, sessionMs, time } = this.#options;
    this.#time = time;
    this.#sessions = new TlsSessions(time, sessionMs);
    this.#busy = watchLoop(time);
    this.#sweep = time
      .every(poolIdleMs / 2, () => {
        const before = time.monotonic() - poolIdleMs;
        for (const [key, kept] of this.#kept)
          if (kept.inFlight === 0 && kept.usedMs < before) this.#drop(key, kept);
      })
      .unref();
  }

  /**
   * Sends a body once and waits for the answer. Follows no redirect. Never throws. The deadline is 60 s for everything,
   * including DNS lookup and handshake. If the receiver already has the maximum number of connections, the request
   * waits in order within the same 60 s. The caller limits the requests per bot. `maySend` is called once a connection
   * is open, directly before the request is written. If `maySend` returns false, the request fails and is not written.
   */
  send(
    receiver: Receiver,
    headers: Headers,
    body: Buffer,
    signal?: AbortSignal,
    maySend: () => boolean = () => true,
  ): Promise<Outcome> {
    const kept = this.#kept.get(receiver.key) ?? this.#keep(receiver);
    this.#kept.delete(receiver.key);
    this.#kept.set(receiver.key, kept);
    kept.inFlight += 1;
    this.#inFlight += 1;
    const { path, authorization } = receiver.target;
    const answers = signal && this.#answersOf(signal);
    return new Promise<Outcome>((resolve) => {
      const answer = new Answer(
        this.#time,
        this.#options.deadlineMs,
        () => kept.address,
        maySend,
        (outcome) => {
          kept.inFlight -= 1;
          this.#inFlight -= 1;
          kept.usedMs = this.#time.monotonic();
          answers?.delete(answer);
          resolve(outcome);
        },
      );
      const all = authorization === undefined ? headers : { ...headers, Authorization: authorization };
      answers?.add(answer);
      kept.pool.send({ path, headers: all, body }, answer);
      if (signal?.aborted) answer.giveUp();
    });
  }

  stats(): { readonly connections: number; readonly receivers: number; readonly inFlight: number } {
    return { connections: this.#connections, receivers: this.#kept.size, inFlight: this.#inFlight };
  }

  async close(): Promise<void> {
    this.#time.cancel(this.#sweep);
    const pools = [...this.#kept.values()].map(({ pool }) => pool);
    this.#kept.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #drop(key: string, { pool }: Kept): void {
    this.#kept.delete(key);
    void pool.destroy();
  }

  /** Closes the connections to the receiver that has been idle longest. Returns false if no receiver is idle. */
  #dropIdle(): boolean {
    for (const [key, kept] of this.#kept) {
      if (kept.inFlight > 0 || kept.connections === 0) continue;
      this.#drop(key, kept);
      return true;
    }
    return false;
  }

  #keep({ key, target, certificate }: Receiver): Kept {
    const { guard, time, connectMs, connectionsMax, receiverConnectionsMax } = this.#options;
    let trust: Trust | undefined;
    const count = (change: 1 | -1) => {
      this.#connections += change;
      kept.connections += change;
    };
    const open = async () => {
      if (this.#connections >= connectionsMax && !this.#dropIdle())
        throw new DeliveryFault('busy', 'Too many connections are open');
      count(1);
      try {
        trust ??= trustIn(certificate);
        const sessions = this.#sessions;
        const { socket, address } = await dial({ key, sessions, target, trust, guard, time, connectMs });
        kept.address = address;
        return socket.once('close', () => count(-1));
      } catch (error) {
        count(-1);
        throw tlsFault(error);
      }
    };
    const { origin } = target;
    const pool = new Connections({ origin, max: receiverConnectionsMax, open, busy: this.#busy, time });
    const kept: Kept = { pool, inFlight: 0, connections: 0, usedMs: 0, address: '' };
    return kept;
  }

  /** Returns the set of in-flight requests that this signal aborts. Adds only one listener per signal. */
  #answersOf(signal: AbortSignal): Set<Answer> {
    const known = this.#underWay.get(signal);
    if (known) return known;
    const made = new Set<Answer>();
    this.#underWay.set(signal, made);
    signal.addEventListener('abort', () => {
      for (const answer of [...made]) answer.giveUp();
    });
    return made;
  }
}
