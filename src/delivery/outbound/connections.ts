/** The connections to one receiver: kept while they are of use, bounded in number, given out in turn. */
import { Client, type Dispatcher } from 'undici';
import { limits } from '../../limits.js';
import type { Answer } from './answer.js';
import type { Dialled } from './dial.js';

export type Request = Pick<Dispatcher.DispatchOptions, 'path' | 'headers' | 'body'>;

export interface ConnectionsOptions {
  readonly origin: string;
  readonly max: number;
  /** opens one connection; throws a DeliveryFault */
  readonly open: () => Promise<Dialled['socket']>;
  /** Whether this process has more to do than it can. */
  readonly busy: () => boolean;
}

/**
 * One undici client a connection, so that it is known which one an answer comes on: an answer that is given up ends its
 * connection and no other is opened in its place, which undici's own pool would do. The connection used last is used next,
 * so that what is not needed falls idle and is closed.
 *
 * Only few are opened at a time: a handshake costs more than a hundred requests, and hundreds at once would hold up the process
 * for longer than a lease. Past the first few a busy process opens none, since it could not use them faster, unless somebody has
 * waited for long: then it is the receiver that takes its time. Who waits takes what becomes free first, be it new or used.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Set<Client>();
  readonly #free: Client[] = [];
  readonly #waiting = new Map<Answer, Request>();
  #opening = 0;
  #patience: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Sends a request as soon as a connection is free, unless the deadline of its answer passes before. */
  send(request: Request, answer: Answer): void {
    const client = this.#free.pop() ?? (this.#mayOpen(answer) ? this.#make() : undefined);
    if (client === undefined) {
      this.#waiting.set(answer, request);
      answer.onEnd = () => this.#waiting.delete(answer);
      this.#bePatient();
    } else this.#start(client, request, answer);
  }

  /** Ends all connections; what is under way or waits fails. */
  async destroy(): Promise<void> {
    const ended = [...this.#all].map((client) => client.destroy());
    this.#all.clear();
    clearTimeout(this.#patience);
    for (const answer of [...this.#waiting.keys()]) answer.onResponseError(undefined, new Error('closed'));
    await Promise.all(ended);
  }

  #mayOpen(first: Answer): boolean {
    const few = limits.webhook_receiver_dials_max;
    if (this.#all.size >= this.#options.max || this.#opening >= few) return false;
    if (this.#all.size < few || !this.#options.busy()) return true;
    return this.#opening === 0 && first.ageMs >= limits.webhook_patience_ms;
  }

  /** Looks again at who waits: it may be that nothing becomes free. */
  #bePatient(): void {
    this.#patience ??= setTimeout(() => {
      this.#patience = undefined;
      for (let more = this.#waiting.size > 0; more; ) more = this.#next(undefined);
      if (this.#waiting.size > 0) this.#bePatient();
    }, limits.webhook_patience_ms).unref();
  }

  #make(): Client {
    const opened = () => {
      this.#opening -= 1;
      queueMicrotask(() => this.#next(undefined));
    };
    const client = new Client(this.#options.origin, {
      // Called as soon as the client has its first request.
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
      // The deadline of an attempt is one for all its phases, see Answer.
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
      // The client is in the middle of telling the end of the answer.
      queueMicrotask(() => this.#next(complete ? client : undefined));
    };
    client.dispatch({ method: 'POST', ...request }, answer);
  }

  /** Starts the first that waits. False when nobody waits, or no connection may be opened for it. */
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
