/** Provides webhook receivers for test rows. One HTTPS server has a separate path for each receiver. */
import type { IncomingMessage } from 'node:http';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';

/** The service may connect only to this loopback address. All other loopback addresses stay forbidden. */
export const hookAddress = '127.0.0.2';

export interface Arrival {
  readonly method: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: updates of every shape
  readonly update: any;
  /** The time at which the request arrived, in ms of the monotonic clock. */
  readonly at: number;
}

/**
 * The answer to a request: a status, `silence` for no answer, or `hang up` to close the connection without an answer.
 */
export type Reply = number | 'silence' | 'hang up';

export interface Hook {
  readonly url: string;
  readonly certificate: string;
  readonly arrivals: readonly Arrival[];
  readonly mostOpen: number;
  /** The times at which the sender closed a connection before it got an answer, in ms of the monotonic clock. */
  readonly givenUp: readonly number[];
  /** Decides how requests are answered. A test may replace this function at any time. */
  answer: (arrival: Arrival, index: number) => Reply | Promise<Reply>;
}

export interface Hooks {
  /** Opens a receiver with a new path, which answers 200 by default. */
  open(answer?: Hook['answer']): Hook;
  close(): Promise<void>;
}

type Books = { -readonly [name in keyof Hook]: Hook[name] } & { arrivals: Arrival[]; givenUp: number[] };

export async function openHooks(): Promise<Hooks> {
  const certificate = makeCertificate({ addresses: [hookAddress] });
  const all = new Map<string, Books & { open: number }>();
  const receiver = await startReceiver(certificate, async (request, response, body) => {
    const hook = all.get(request.url ?? '');
    if (!hook) {
      response.writeHead(404).end();
      return;
    }
    const arrival = {
      ...{ method: request.method, headers: request.headers, body, at: performance.now() },
      update: JSON.parse(body.toString()),
    };
    hook.arrivals.push(arrival);
    hook.mostOpen = Math.max(hook.mostOpen, ++hook.open);
    let left = false;
    const leave = () => {
      if (!left) hook.open--;
      left = true;
    };
    response.on('close', () => {
      if (!left) hook.givenUp.push(performance.now());
      leave();
    });
    const reply = await hook.answer(arrival, hook.arrivals.length - 1);
    if (reply === 'silence') return;
    leave();
    if (reply === 'hang up') request.socket.destroy();
    else response.writeHead(reply).end();
  });
  return {
    open(answer = () => 200) {
      const path = `/${all.size}`;
      const hook: Books & { open: number } = {
        ...{ url: `https://${hookAddress}:${receiver.port}${path}`, certificate: certificate.cert },
        ...{ arrivals: [], givenUp: [], mostOpen: 0, open: 0, answer },
      };
      all.set(path, hook);
      return hook;
    },
    close: () => receiver.close(),
  };
}
