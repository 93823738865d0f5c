/**
 * Opens connections to receivers: looks up the host, checks its addresses, connects to an allowed address, and verifies
 * the certificate.
 */
import { isIP } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Time } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import { connectionFault, DeliveryFault, tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import type { TlsSessions } from './sessions.js';
import type { Target } from './target.js';
import type { Trust } from './trust.js';

export interface Dialled {
  readonly socket: TLSSocket;
  readonly address: string;
}

/** The options of one connection attempt. `connectMs` limits all phases of the attempt together. */
export interface Dial {
  /** Connections with equal keys have the same host, port and trust, and may resume the same TLS sessions. */
  readonly key: string;
  /** The cache of TLS sessions. Without a cache, every handshake is a full handshake. */
  readonly sessions?: TlsSessions | undefined;
  readonly target: Target;
  readonly trust: Trust;
  readonly guard: Guard;
  readonly time: Time;
  readonly connectMs?: number;
  /** Called with `resolved` when the addresses are known, and with `connected` when the TCP connection is open. */
  readonly reached?: (step: 'resolved' | 'connected') => void;
}

const timedOut = () => new DeliveryFault('connect', 'Connection timed out');

function waitFor(
  time: Time,
  socket: TLSSocket,
  event: 'connect' | 'secureConnect',
  waitMs: number,
  faultOf: (error: unknown) => DeliveryFault,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      time.cancel(timer);
      socket.off('error', failed).off('close', closed).off(event, ready);
    };
    const failed = (error: unknown) => {
      done();
      // Ignores later errors of the destroyed socket, because an unhandled error event would end the process.
      socket.on('error', () => {});
      socket.destroy();
      reject(faultOf(error));
    };
    const closed = () => failed(undefined);
    const ready = () => {
      done();
      resolve();
    };
    const timer = time.after(Math.max(0, waitMs), () => failed(timedOut()));
    socket.on('error', failed).on('close', closed).on(event, ready);
  });
}

const tcpFault = (error: unknown) => connectionFault(error, ['connect', 'Connection failed']);

/**
 * Connects to a checked address. Passes the address to Node instead of the host name, so that the host is not looked up
 * again. Stores a TLS session only after a full handshake, because Node does not call `checkServerIdentity` for a
 * resumed session.
 */
function begin(
  address: string,
  { target: { port, host }, trust: { secureContext, checkHost }, sessions }: Dial,
  key: string,
  session: Buffer | undefined,
): TLSSocket {
  let endMs: number | undefined;
  const socket = connectTls({
    host: address,
    port,
    secureContext,
    // Sets `rejectUnauthorized` explicitly, because an environment variable could change its default.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_, certificate) => {
      endMs = sessions?.endOf(certificate.valid_to);
      return checkHost(host, certificate);
    },
    // An IP address must not be sent as the server name (RFC 6066 §3).
    servername: isIP(host) === 0 ? host : '',
    ...(session && { session }),
  });
  // Node emits the event `session` only after it has verified the certificate.
  socket.on('session', (made: Buffer) => {
    if (endMs !== undefined) sessions?.keep(key, made, endMs);
  });
  return socket.setNoDelay(true);
}

/**
 * Opens one connection. Looks up the host and checks its addresses every time, because the addresses may have changed.
 * If an address does not answer, tries the next one. Resumes an earlier TLS session with the same receiver at the same
 * address. Throws a DeliveryFault.
 */
export async function dial(options: Dial): Promise<Dialled> {
  const { target, guard, time, key: receiver, sessions, reached } = options;
  const { connectMs = limits.webhook_connect_ms_max } = options;
  const endMs = time.monotonic() + connectMs;
  const leftMs = () => endMs - time.monotonic();
  const addresses = (await guard.addressesOf(target)).slice(0, limits.webhook_dials_max);
  reached?.('resolved');
  let fault: unknown = timedOut();
  for (const [index, address] of addresses.entries()) {
    const last = index === addresses.length - 1;
    const waitMs = last ? leftMs() : Math.min(leftMs(), limits.webhook_dial_ms_max);
    if (waitMs <= 0) break;
    const key = `${receiver} ${address}`;
    const resumed = sessions?.find(key);
    const socket = begin(address, options, key, resumed);
    try {
      await waitFor(time, socket, 'connect', waitMs, tcpFault);
      reached?.('connected');
    } catch (error) {
      fault = error;
      continue;
    }
    try {
      await waitFor(time, socket, 'secureConnect', leftMs(), tlsFault);
    } catch (error) {
      if (resumed === undefined) throw error;
      // Some servers refuse a session that they do not know, although they should make a full handshake. Connects again
      // without a session.
      sessions?.drop(key);
      return dial({ ...options, sessions: undefined, connectMs: leftMs() });
    }
    return { socket, address };
  }
  throw fault;
}
