/** Webhook receivers: HTTPS servers on loopback that count connections and requests. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import type { Certificate } from './certificates.js';

export interface Receiver {
  readonly port: number;
  connections(): number;
  open(): number;
  requests(): number;
  close(): Promise<void>;
}

/**
 * Without a host, the server accepts connections at all local IPv4 and IPv6 addresses, because the sender may connect
 * to any of these addresses.
 */
const everywhere = { port: 0 };

function counted(server: ReturnType<typeof createTcp>) {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  return {
    connections: () => connections,
    open: () => sockets.size,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Starts an HTTPS receiver. `body` is complete when `answer` is called. */
export async function startReceiver(
  certificate: Certificate,
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void = (_, response) =>
    response.end(),
  options: { readonly servername?: (name: string) => void } = {},
): Promise<Receiver> {
  let requests = 0;
  const server = createHttps({ ...certificate, keepAlive: true }, async (request, response) => {
    requests += 1;
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    answer(request, response, Buffer.concat(chunks));
  });
  server.on('secureConnection', (socket) => options.servername?.(String(socket.servername)));
  server.on('tlsClientError', () => {});
  const counts = counted(server);
  server.listen(everywhere);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, requests: () => requests, ...counts };
}

/** Starts a plain TCP listener. The listener only counts connections, or sends something other than TLS. */
export async function startListener(talk: (socket: Socket) => void = () => {}): Promise<Receiver> {
  const server = createTcp((socket) => {
    // Without reading, the server would not notice the end of the connection.
    socket.resume();
    talk(socket);
  });
  const counts = counted(server);
  server.listen(everywhere);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, requests: () => 0, ...counts };
}
