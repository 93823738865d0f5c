/** Listens on a port, wraps each request in an exchange, and shuts down gracefully. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, errorEnvelope } from '../errors.js';
import { limits } from '../limits.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import { BodyRoom, bodyRoomBytes } from './body.js';
import type { Engine, ListenSocket, RouteHandler, TemplatedApp } from './engine.js';
import { Exchange } from './exchange.js';
import type { AccessListener, Admit, ExchangeContext, RequestListener } from './exchange_context.js';
import type { SignedBodies } from './head.js';

export interface ListenOptions {
  readonly engine: Engine;
  /** Address to listen on, for instance '127.0.0.1'. */
  readonly host: string;
  /** Port to listen on; 0 for a free port. */
  readonly port: number;
  /** Other processes of this machine may listen on the same port if they set this too. */
  readonly shared: boolean;
  readonly handler: RequestHandler;
  /** Decides by the head whether to accept a body. If absent, every body is accepted. */
  readonly admit?: Admit;
  /** The address that body budgets are counted by; the peer address if absent. */
  readonly clientAddress?: ExchangeContext['clientAddress'];
  /** Memory budget of all request bodies; see `bodyRoomBytes`. */
  readonly bodiesBytesMax?: number;
  /** Limit for a body larger than usual, or of unknown length; the usual limit if absent. */
  readonly bodyBound?: ExchangeContext['bodyBound'];
  readonly signed?: SignedBodies | undefined;
  /**
   * Called with unexpected errors of handlers, and when a handler replies twice or never. Gets the id from the access
   * log and nothing else of the request, because its path may hold a token.
   */
  readonly onFault: (error: unknown, request?: string) => void;
  /** If absent, requests are not logged. */
  readonly access?: AccessListener | undefined;
  readonly meter?: RequestListener | undefined;
  /** Quiet time without requests before `close` closes idle connections; `limits.connection_quiet_ms` if absent. */
  readonly quietMs?: number;
}

export interface HttpServer {
  readonly port: number;
  /** Requests and event streams that are not yet answered completely. */
  openRequests(): number;
  /**
   * From now on each reply ends its connection, so that a balancer keeps none to this server. New connections are still
   * accepted.
   */
  leave(): void;
  /**
   * Stops accepting connections, ends each connection with its next reply, and waits up to `msMax` for open requests.
   * Resolves to the number of open requests left.
   */
  drain(msMax: number): Promise<number>;
  /**
   * Drains for up to `limits.shutdown_ms_max`. Then answers on kept connections until no request came for a moment, and
   * closes every connection.
   */
  close(): Promise<void>;
}

function refuseVerb(request: ApiRequest): void {
  const error = new ApiError('method_not_allowed');
  request.reply(error.code, errorEnvelope(error));
}

/**
 * Both engines end the connection after an unknown verb: the older one by itself, here by the reply. Otherwise what
 * follows could be taken for a request.
 */
function route(app: TemplatedApp, context: ExchangeContext, handler: RequestHandler): void {
  const as =
    (method: string): RouteHandler =>
    (response, request) =>
      new Exchange(context, handler, method, response, request).begin();
  // Pages of the application exist in several encodings. A separate route reads Accept-Encoding, so that other calls
  // need not.
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
          new Error(
            `cannot listen on ${host} port ${port}: the port is in use, or the address does not belong to this machine`,
          ),
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
      // Closes right after the event loop accepted waiting connections, because the kernel resets those not yet
      // accepted.
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

  /**
   * A request that arrives on a just closed connection is reset. So connections in use get one more answer that ends
   * them.
   */
  private async linger(): Promise<void> {
    const end = performance.now() + limits.connection_linger_ms_max;
    for (let before = -1; this.context.begun !== before && performance.now() < end; ) {
      before = this.context.begun;
      await sleep(this.quietMs);
    }
    if (this.context.open > 0) await this.drain(Math.max(0, end - performance.now()));
  }
}

/** Rejects when the port is in use by a process that does not share it. */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const app = options.engine.app();
  const context: ExchangeContext = {
    bodies: new BodyRoom(options.bodiesBytesMax ?? bodyRoomBytes()),
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
