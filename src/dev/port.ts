/** Checks that the fronts' port is free before anything starts. */
import { createServer } from 'node:net';
import { Refusal } from './refusal.js';

const reasons: Record<string, string> = {
  EADDRINUSE: 'is in use by another program',
  EACCES: 'may not be used by this user',
  EADDRNOTAVAIL: 'cannot be used: HOST is not an address of this machine',
  ENOTFOUND: 'cannot be used: HOST is not an address of this machine',
};

/**
 * Binds the port exclusively, so that neither another program nor one of our servers can bind it. Without exclusive
 * binding, the port could be bound even while another program listens on it. Returns a function that releases the port.
 * Throws a Refusal if the port cannot be bound.
 */
export function reservePort(host: string, port: number): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = reasons[error.code ?? ''] ?? `cannot be used (${error.message})`;
      reject(
        new Refusal(
          `port ${port} on ${host} ${reason}: set PORT to another port, or stop the program that uses this one`,
        ),
      );
    });
    server.listen({ port, host, exclusive: true }, () => {
      resolve(() => new Promise((closed) => server.close(() => closed())));
    });
  });
}
