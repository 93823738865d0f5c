/**
 * Manages the connections to one receiver. Limits their number, reuses them, and serves requests in order of arrival.
 */
import { Client, type Dispatcher } from 'undici';
import type { Time, Timer } from '../../time.js';
import { deliveryLimits as limits } from '../limits.js';
import type { Answer } from './answer.js';
import type { Dialled } from './dial.js';

export type Request = Pick<Dispatcher.DispatchOptions, 'path' | 'headers' | 'body'> & {
  /** The HTTP method. The default is POST. */
  readonly method?: 'GET';
};

export interface ConnectionsOptions {
  readonly origin: string;
  readonly max: number;
  readonly open: () => Promise<Dialled['socket']>;
  readonly busy: () => boolean;
  readonly time: Time;
}

/**
 * Uses one undici client per connection. undici's own pool hides which connection carries a request, but when a request
 * is aborted, its connection must be closed without opening another one. The most recently used connection is used
 * next, so that surplus connections become idle and are closed.
 *
 * Opens only a few connections at a time, because a handshake costs more than a hundred requests. Hundreds of
 * handshakes at once would block the process for longer than a lease. If the process is overloaded and has
 * `webhook_receiver_dials_max` connections or more, it opens another one only if a request has waited for
 * `webhook_patience_ms`. Such a long wait shows that the receiver is slow, not this process. A waiting request takes
 * the first connection that becomes available, new or reused.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Set<Client>();
  readonly #free: Client[] = [];
  readonly #waiting = new Map<Answer, Request>();
  #opening = 0;
  #patience: Timer | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Sends a request when a connection is available. Fails if there is no answer by the deadline. */
  send(request: Request, answer: Answer): void {
    const client = this.#free.pop() ?? (this.#mayOpen(answer) ? this.#make() : undefined);
    if (client === undefined) {
      this.#waiting.set(answer, request);
      answer.onEnd = () => this.#waiting.delete(answer);
      this.#bePatient();
    } else this.#start(client, request, answer);
  }

  async destroy(): Promise<void> {
    const ended = [...this.#all].map((client) => client.destroy());
    this.#all.clear();
    this.#options.time.cancel(this.#patience);
    for (const answer of [...this.#waiting.keys()]) answer.onResponseError(undefined, new Error('closed'));
    await Promise.all(ended);
  }

  #mayOpen(first: Answer): boolean {
    const few = limits.webhook_receiver_dials_max;
    if (this.#all.size >= this.#options.max || this.#opening >= few) return false;
    if (this.#all.size < few || !this.#options.busy()) return true;
    return this.#opening === 0 && first.ageMs >= limits.webhook_patience_ms;
  }

  /**
   * Tries again after a while to start the waiting requests, because a request that has waited for long may open
   * another connection.
   */
  #bePatient(): void {
    this.#patience ??= this.#options.time
      .after(limits.webhook_patience_ms, () => {
        this.#patience = undefined;
        for (let more = this.#waiting.size > 0; more; ) more = this.#next(undefined);
        if (this.#waiting.size > 0) this.#bePatient();
      })
      .unref();
  }

  #make(): Client {
    const opened = () => {
      this.#opening -= 1;
      queueMicrotask(() => this.#next(undefined));
    };
    const client = new Client(this.#options.origin, {
      // undici calls this function when the client gets its first request.
      connect: (_, done) => {
        this.#opening += 1;
        this.#options
          .open()
          .finally(opened)
          .then(
            (socket) => done(null, socket),
            (error) => done(error, null),
          );
      },
      pipelining: 1,
      keepAliveTimeout: limits.webhook_connection_idle_ms,
      keepAliveMaxTimeout: limits.webhook_connection_idle_ms_max,
      maxHeaderSize: limits.webhook_answer_head_bytes_max,
      // Turns off undici's timeouts, because `Answer` has one deadline for all phases of an attempt.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    client.on('disconnect', () => {
      const at = this.#free.indexOf(client);
      if (at >= 0) this.#drop(this.#free.splice(at, 1)[0] as Client);
    });
    this.#all.add(client);
    return client;
  }

  #drop(client: Client): void {
    this.#all.delete(client);
    void client.destroy();
  }

  #start(client: Client, request: Request, answer: Answer): void {
    answer.onEnd = (complete) => {
      if (!complete) this.#drop(client);
      // Waits for the next microtask, because undici's client is still processing the end of the answer.
      queueMicrotask(() => this.#next(complete ? client : undefined));
    };
    client.dispatch({ method: 'POST', ...request }, answer);
  }

  /**
   * Starts the first waiting request. Returns false if no request is waiting, or if the request needs a new connection
   * and none may be opened.
   */
  #next(freed: Client | undefined): boolean {
    const [first] = this.#waiting;
    if (first === undefined) {
      if (freed !== undefined && this.#all.has(freed)) this.#free.push(freed);
      return false;
    }
    const [answer, request] = first;
    if (freed === undefined && !this.#mayOpen(answer)) return false;
    this.#waiting.delete(answer);
    this.#start(freed ?? this.#make(), request, answer);
    return true;
  }
}
