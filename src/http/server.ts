/** Listens on a port, turns what the engine hands over into exchanges, and ends in order. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, errorEnvelope } from '../errors.js';
import { limits } from '../limits.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import { BodyRoom, bodyRoomBytes } from './body.js';
import type { Engine, ListenSocket, RouteHandler, TemplatedApp } from './engine.js';
import { Exchange } from './exchange.js';
import type { AccessListener, Admit, ExchangeContext, RequestListener } from './exchange_context.js';
import type { SignedBodies } from './head.js';
import { Turns } from './turns.js';

export interface ListenOptions {
  readonly engine: Engine;
  /** Address to listen on, for instance '127.0.0.1'. */
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Lets other processes of this machine that ask for the same listen on this port too. */
  readonly shared: boolean;
  readonly handler: RequestHandler;
  /** Decides by the head whether a body is taken; without it every body is. */
  readonly admit?: Admit;
  /** By which the bodies of one client are bounded; the address of the peer if absent. */
  readonly clientAddress?: ExchangeContext['clientAddress'];
  /** What the bodies of all requests together may hold; see `bodyRoomBytes`. */
  readonly bodiesBytesMax?: number;
  /** What a body of more than the usual bytes, or of unknown length, may hold; the usual ones if absent. */
  readonly bodyBound?: ExchangeContext['bodyBound'];
  readonly signed?: SignedBodies | undefined;
  /** Hears what a handler threw and is no ApiError, and of handlers that reply twice or never. Nothing of the
   * request is passed, whose path may hold a token, but its name in the access log. */
  readonly onFault: (error: unknown, request?: string) => void;
  /** Nothing is told of requests if absent. */
  readonly access?: AccessListener | undefined;
  readonly meter?: RequestListener | undefined;
  /** How long no request may have come before `close` closes kept connections; `limits.connection_quiet_ms` if absent. */
  readonly quietMs?: number;
}

export interface HttpServer {
  readonly port: number;
  /** Requests and event streams that have not been answered to their end. */
  openRequests(): number;
  /** From now on each reply ends its connection, so that a balancer keeps none that is about to go. New ones are accepted. */
  leave(): void;
  /** Stops accepting connections, ends each connection with its next reply, and waits at most `msMax` for the open
   * requests. Resolves to how many are left. */
  drain(msMax: number): Promise<number>;
  /**
   * Drains for at most `limits.shutdown_ms_max`, answers on kept connections until no request has come for a moment, then
   * closes every connection, idle ones too.
   */
  close(): Promise<void>;
}

function refuseVerb(request: ApiRequest): void {
  const error = new ApiError('method_not_allowed');
  request.reply(error.code, errorEnvelope(error));
}

/** The older engine drops the connection of a verb that it does not know; here the reply ends it too, so that what follows is not
 * taken for a request. */
function route(app: TemplatedApp, context: ExchangeContext, handler: RequestHandler): void {
  const as =
    (method: string): RouteHandler =>
    (response, request) =>
      new Exchange(context, handler, method, response, request).begin();
  // The application's pages are kept in several encodings. The engine's own routing tells them apart, so that no other call pays for it.
  const page =
    (method: string): RouteHandler =>
    (response, request) => {
      const exchange = new Exchange(context, handler, method, response, request);
      exchange.acceptEncoding = request.getHeader('accept-encoding');
      exchange.begin();
    };
  for (const path of ['/app', '/app/*', '/ops', '/ops/*']) {
    app.get(path, page('GET'));
    app.head(path, page('HEAD'));
  }
  app.get('/*', as('GET'));
  app.post('/*', as('POST'));
  app.put('/*', as('PUT'));
  app.patch('/*', as('PATCH'));
  app.del('/*', as('DELETE'));
  app.head('/*', as('HEAD'));
  app.options('/*', as('OPTIONS'));
  app.any('/*', (response, request) => {
    const exchange = new Exchange(context, refuseVerb, request.getMethod().toUpperCase(), response, request);
    exchange.closes = true;
    exchange.begin();
  });
}

function bind(app: TemplatedApp, options: ListenOptions): Promise<ListenSocket> {
  const { engine, host, port, shared } = options;
  return new Promise((resolve, reject) => {
    app.listen(host, port, shared ? 0 : engine.exclusivePort, (socket) => {
      if (socket) resolve(socket);
      else
        reject(
          new Error(`cannot listen on ${host} port ${port}: it is taken or not an address of this machine`),
        );
    });
  });
}

class Server implements HttpServer {
  readonly port: number;
  private readonly engine: Engine;
  private readonly app: TemplatedApp;
  private readonly context: ExchangeContext;
  private socket: ListenSocket | undefined;
  private readonly waiting = new Set<() => void>();
  private closed: Promise<void> | undefined;
  private readonly quietMs: number;

  constructor(
    { engine, quietMs = limits.connection_quiet_ms }: ListenOptions,
    app: TemplatedApp,
    context: ExchangeContext,
    socket: ListenSocket,
  ) {
    this.quietMs = quietMs;
    this.engine = engine;
    this.app = app;
    this.context = context;
    this.socket = socket;
    this.port = engine.localPort(socket);
    context.idle = () => {
      for (const wake of this.waiting) wake();
    };
  }

  openRequests(): number {
    return this.context.open;
  }

  leave(): void {
    this.context.closing = true;
  }

  async drain(msMax: number): Promise<number> {
    this.context.closing = true;
    if (this.socket) {
      // Right after the event loop has accepted what was waiting: the kernel resets connections that are not accepted yet.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.socket) this.engine.closeListenSocket(this.socket);
      this.socket = undefined;
    }
    if (this.context.open > 0) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, msMax);
        this.waiting.add(wake);
      });
    }
    return this.context.open;
  }

  close(): Promise<void> {
    this.closed ??= this.drain(limits.shutdown_ms_max)
      .then(() => this.linger())
      .then(() => {
        this.app.close();
      });
    return this.closed;
  }

  /** A request that arrives on a connection that was just closed is reset, so those in use get an answer that ends them. */
  private async linger(): Promise<void> {
    const end = performance.now() + limits.connection_linger_ms_max;
    for (let before = -1; this.context.begun !== before && performance.now() < end; ) {
      before = this.context.begun;
      await sleep(this.quietMs);
    }
    if (this.context.open > 0) await this.drain(Math.max(0, end - performance.now()));
  }
}

/** Rejects when the port is taken, or shared by a process that did not ask for that. */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const app = options.engine.app();
  const context: ExchangeContext = {
    bodies: new BodyRoom(options.bodiesBytesMax ?? bodyRoomBytes()),
    turns: new Turns(),
    admit: options.admit,
    clientAddress: options.clientAddress ?? (({ remoteAddress }) => remoteAddress),
    bodyBound: options.bodyBound ?? ((_verb, _path, usual) => usual),
    onFault: options.onFault,
    signed: options.signed,
    access: options.access,
    meter: options.meter,
    open: 0,
    begun: 0,
    closing: false,
    idle: () => undefined,
  };
  route(app, context, options.handler);
  return new Server(options, app, context, await bind(app, options));
}
