/**
 * An HTTP balancer that sends each request to the next front, even if the requests come on one connection.
 */
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Balancer {
  readonly url: string;
  readonly counts: readonly number[];
  close(): Promise<void>;
}

export async function startBalancer(fronts: ReadonlyArray<{ readonly url: string }>): Promise<Balancer> {
  // Closes an idle connection before the front does. Otherwise the balancer might send a request just when the front
  // closes the connection.
  const agent = new Agent({ keepAlive: true, timeout: 4_000 });
  const counts = fronts.map(() => 0);
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const index = next++ % fronts.length;
    counts[index] = (counts[index] ?? 0) + 1;
    const url = new URL(incoming.url ?? '/', fronts[index]?.url);
    const forward = request(url, { method: incoming.method, headers: incoming.headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forward.destroy());
    incoming.pipe(forward);
  });
  // Never closes idle connections, because a client may send its next request on the same connection after a long
  // pause.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent.destroy();
      }),
  };
}
