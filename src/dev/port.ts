/** Tells before anything starts whether the fronts will get their port. */
import { createServer } from 'node:net';
import { Refusal } from './refusal.js';

const reasons: Record<string, string> = {
  EADDRINUSE: 'is in use by another program',
  EACCES: 'may not be used by this user',
  EADDRNOTAVAIL: 'cannot be had: HOST is no address of this machine',
  ENOTFOUND: 'cannot be had: HOST is no address of this machine',
};

/**
 * Binds the port exclusively and holds it until the returned function has run, so that neither another program nor one
 * of our own servers takes it meanwhile. A shared bind would succeed although someone else listens too. Throws a Refusal.
 */
export function reservePort(host: string, port: number): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = reasons[error.code ?? ''] ?? `cannot be had (${error.message})`;
      reject(new Refusal(`port ${port} on ${host} ${reason}: set PORT to another one, or stop that program`));
    });
    server.listen({ port, host, exclusive: true }, () => {
      resolve(() => new Promise((closed) => server.close(() => closed())));
    });
  });
}
