/** Opens connections to receivers: looks up, vets, dials what was vetted, proves who answers. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { limits } from '../limits.js';
import { connectionFault, DeliveryFault, tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import type { Target } from './target.js';
import type { Trust } from './trust.js';

export interface Dialled {
  readonly socket: TLSSocket;
  /** the vetted address that was dialled */
  readonly address: string;
}

/** Where to, whom to trust, and how long it may take in all. */
export interface Dial {
  readonly target: Target;
  readonly trust: Trust;
  readonly guard: Guard;
  readonly connectMs?: number;
}

const timedOut = () => new DeliveryFault('connect', 'Connection timed out');

/** Calls `ready` once and leaves no listener of its own behind; a socket that fails or is late is destroyed. */
function settled<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  waitMs: number,
  faultOf: (error: unknown) => DeliveryFault,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      socket.off('error', failed).off('close', closed).off(event, ready);
    };
    const failed = (error: unknown) => {
      done();
      // What the socket says after it was given up is of no use, but must not be thrown.
      socket.on('error', () => {});
      socket.destroy();
      reject(faultOf(error));
    };
    const closed = () => failed(undefined);
    const ready = () => {
      done();
      resolve(socket);
    };
    const timer = setTimeout(() => failed(timedOut()), Math.max(0, waitMs));
    socket.on('error', failed).on('close', closed).on(event, ready);
  });
}

const tcpFault = (error: unknown) => connectionFault(error, ['connect', 'Connection failed']);

/** Tries the addresses in turn. Each has been vetted and is a literal, so no further look-up happens. */
async function reach(addresses: readonly string[], port: number, leftMs: () => number) {
  const tried = addresses.slice(0, limits.webhook_dials_max);
  let fault: unknown = timedOut();
  for (const [index, address] of tried.entries()) {
    const last = index === tried.length - 1;
    const waitMs = last ? leftMs() : Math.min(leftMs(), limits.webhook_dial_ms_max);
    if (waitMs <= 0) break;
    try {
      const socket = connectTcp({ host: address, port, noDelay: true });
      return { socket: await settled(socket, 'connect', waitMs, tcpFault), address };
    } catch (error) {
      fault = error;
    }
  }
  throw fault;
}

/**
 * Opens one connection. The host is resolved and vetted anew each time, so a name that has come to mean something else is
 * noticed. No TLS session is resumed: a resumed one would not be verified again. Throws a DeliveryFault.
 */
export async function dial({
  target,
  trust,
  guard,
  connectMs = limits.webhook_connect_ms_max,
}: Dial): Promise<Dialled> {
  const endMs = performance.now() + connectMs;
  const leftMs = () => endMs - performance.now();
  const addresses = await guard.addressesOf(target.host);
  const { socket, address } = await reach(addresses, target.port, leftMs);
  const secured = connectTls({
    socket,
    secureContext: trust.secureContext,
    // Said outright: an environment variable could turn the default off.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    checkServerIdentity: (_, certificate) => trust.checkHost(target.host, certificate),
    // A server name is never an address (RFC 6066 §3).
    ...(isIP(target.host) === 0 ? { servername: target.host } : {}),
  });
  return { socket: await settled(secured, 'secureConnect', leftMs(), tlsFault), address };
}
