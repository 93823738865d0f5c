/**
 * Opens connections to receivers. Looks up the host, checks its addresses, connects to an allowed address, and verifies
 * the certificate.
 */
import { isIP } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Time } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import { connectionFault, DeliveryFault, tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import type { Target } from './target.js';
import type { Trust } from './trust.js';

export interface Dialled {
  readonly socket: TLSSocket;
  readonly address: string;
}

/** `connectMs` limits all phases of one connection together. */
export interface Dial {
  readonly target: Target;
  readonly trust: Trust;
  readonly guard: Guard;
  readonly time: Time;
  readonly connectMs?: number;
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
      // Ignores later errors of the destroyed socket, because an unhandled error would end the process.
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
 * Connects to a checked address. Passes the address instead of the host name, so that the host is not looked up again.
 */
function begin(address: string, { port, host }: Target, { secureContext, checkHost }: Trust): TLSSocket {
  const socket = connectTls({
    host: address,
    port,
    secureContext,
    // Sets this explicitly, because an environment variable could change the default.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_, certificate) => checkHost(host, certificate),
    // An address must not be sent as server name (RFC 6066 §3).
    servername: isIP(host) === 0 ? host : '',
  });
  return socket.setNoDelay(true);
}

/**
 * Opens one connection. Looks up the host and checks its addresses for every connection, because they may have changed.
 * If one address does not answer, tries the next. Never resumes a TLS session, because a resumed session is not
 * verified. Throws a DeliveryFault.
 */
export async function dial({
  target,
  trust,
  guard,
  time,
  connectMs = limits.webhook_connect_ms_max,
}: Dial): Promise<Dialled> {
  const endMs = time.monotonic() + connectMs;
  const leftMs = () => endMs - time.monotonic();
  const addresses = (await guard.addressesOf(target)).slice(0, limits.webhook_dials_max);
  let fault: unknown = timedOut();
  for (const [index, address] of addresses.entries()) {
    const last = index === addresses.length - 1;
    const waitMs = last ? leftMs() : Math.min(leftMs(), limits.webhook_dial_ms_max);
    if (waitMs <= 0) break;
    const socket = begin(address, target, trust);
    try {
      await waitFor(time, socket, 'connect', waitMs, tcpFault);
    } catch (error) {
      fault = error;
      continue;
    }
    await waitFor(time, socket, 'secureConnect', leftMs(), tlsFault);
    return { socket, address };
  }
  throw fault;
}
