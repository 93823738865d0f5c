/** A proxy that puts faults into the answers of a service. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface Exchange {
  readonly method: string;
  readonly type: string;
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: faults look into answers of every shape
  readonly body: any;
}

/** Changes an answer of the service. Returns the answer that the client gets. */
export type Fault = (exchange: Exchange) => { readonly status: number; readonly body: unknown };

export interface AnsweringServer {
  readonly url: string;
  close(): void;
}

async function listen(server: ReturnType<typeof createServer>): Promise<AnsweringServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Forwards all requests to the service. `fault` may change each JSON answer. */
export function startFaultyProxy(service: string, fault: Fault): Promise<AnsweringServer> {
  return listen(
    createServer(async (incoming, outgoing) => {
      const sent = await buffer(incoming);
      const { method, headers } = incoming;
      const forward = request(new URL(incoming.url ?? '/', service), { method, headers }, async (answer) => {
        const bytes = await buffer(answer);
        const { statusCode = 502, headers: given } = answer;
        if (given['content-type'] !== 'application/json')
          return outgoing.writeHead(statusCode, given).end(bytes);
        const { status, body } = fault({
          method: /^\/bot[^/]*\/(\w+)/.exec(incoming.url ?? '')?.[1] ?? '',
          type: headers['content-type'] ?? '',
          status: statusCode,
          body: JSON.parse(bytes.toString()),
        });
        const text = Buffer.from(JSON.stringify(body));
        outgoing.writeHead(status, { ...given, 'content-length': text.length }).end(text);
      });
      forward.on('error', () => outgoing.destroy());
      forward.end(sent);
    }),
  );
}

/**
 * Starts a server that answers with the result of `answer`. The methods getMe and getWebhookInfo get a normal answer,
 * because each run begins with them.
 */
export function startAnsweringServer(
  status: number,
  answer: (path: string) => string,
): Promise<AnsweringServer> {
  const known = { ok: true, result: { id: 1, first_name: 'Constant', url: '' } };
  return listen(
    createServer((incoming, outgoing) => {
      const isKnown = /\/(getMe|getWebhookInfo)$/.test(incoming.url ?? '');
      incoming.resume().on('end', () => {
        outgoing.writeHead(isKnown ? 200 : status, { 'content-type': 'application/json' });
        outgoing.end(isKnown ? JSON.stringify(known) : answer(incoming.url ?? ''));
      });
    }),
  );
}
