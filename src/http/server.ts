/** Listens on a port, creates an exchange for each request, and shuts down without dropping requests. */
import { ApiError, errorEnvelope } from '../errors.js';
import { ruleLimits } from '../rules/limits.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import { systemTime, type Time } from '../time.js';
import { BodyRoom, bodyRoomBytes } from './body.js';
import type { Engine, ListenSocket, RouteHandler, TemplatedApp } from './engine.js';
import { Exchange } from './exchange.js';
import type { AccessListener, Admit, ExchangeContext, RequestListener } from './exchange_context.js';
import type { SignedBodies } from './head.js';
import { HeldReplies } from './held_replies.js';
import { httpLimits as limits } from './limits.js';

export interface ListenOptions {
  readonly engine: Engine;
  readonly host: string;
  readonly port: number;
  /** If true, other processes on this machine can listen on the same port if they set this option too. */
  readonly shared: boolean;
  readonly handler: RequestHandler;
  readonly admit?: Admit;
  /** Returns the client address for the limit on request bodies. By default the address of the connection. */
  readonly clientAddress?: ExchangeContext['clientAddress'];
  readonly bodiesBytesMax?: number;
  /** Returns the maximum size of a body whose length exceeds `usual` or is unknown. By default, returns `usual`. */
  readonly bodyBound?: ExchangeContext['bodyBound'];
  readonly signed?: SignedBodies | undefined;
  /**
   * Called with handlers' unexpected errors, and when a handler replies twice or never. Gets only the request's id in
   * the access log, because the path may contain a token.
   */
  readonly onFault: (error: unknown, request?: string) => void;
  readonly access?: AccessListener | undefined;
  readonly meter?: RequestListener | undefined;
  /**
   * How long there must be no requests before `close` closes idle connections, in ms. By default
   * `limits.connection_quiet_ms`.
   */
  readonly quietMs?: number;
  readonly time?: Time;
}

export interface HttpServer {
  readonly port: number;
  openRequests(): number;
  /**
   * Ends each connection after its next reply, so that a load balancer keeps no connection to this server. Still
   * accepts new connections.
   */
  leave(): void;
  /**
   * Stops accepting connections, ends each connection with its next reply, and waits up to `msMax` for open requests.
   * Resolves to the number of requests that are still open.
   */
  drain(msMax: number): Promise<number>;
  /**
   * Drains for up to `ruleLimits.shutdown_ms_max`. Afterwards, answers requests on open connections until none arrives
   * for a moment, and then closes all connections.
   */
  close(): Promise<void>;
}

function refuseVerb(request: ApiRequest): void {
  const error = new ApiError('method_not_allowed');
  request.reply(error.code, errorEnvelope(error));
}

/**
 * Adds the routes. After a request with an unknown method, the connection must end, because the body of the request
 * could be parsed as another request. The older engine closes such a connection itself. With the current engine, our
 * reply closes it.
 */
function route(app: TemplatedApp, context: ExchangeContext, handler: RequestHandler): void {
  const as =
    (method: string): RouteHandler =>
    (response, request) =>
      new Exchange(context, handler, method, response, request).begin();
  // Reads the `Accept` headers only for pages, because no other answer depends on them.
  const page =
    (method: string): RouteHandler =>
    (response, request) => {
      const exchange = new Exchange(context, handler, method, response, request);
      exchange.acceptedTypes = request.getHeader('accept');
      exchange.acceptEncoding = request.getHeader('accept-encoding');
      exchange.acceptLanguage = request.getHeader('accept-language');
      exchange.begin();
    };
  for (const path of [
    '/',
    '/app',
    '/app/*',
    '/ops',
    '/ops/*',
    '/docs',
    '/docs/*',
    '/openapi.json',
    '/post/*',
  ]) {
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
    const { time } = this.context;
    this.context.closing = true;
    if (this.socket) {
      // Lets the event loop accept the waiting connections first, because closing the socket would reset them.
      await new Promise<void>((resolve) => time.soon(resolve));
      if (this.socket) this.engine.closeListenSocket(this.socket);
      this.socket = undefined;
    }
    if (this.context.open > 0) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          time.cancel(timer);
          this.waiting.delete(wake);
          resolve();
        };
        const timer = time.after(msMax, wake);
        this.waiting.add(wake);
      });
    }
    return this.context.open;
  }

  close(): Promise<void> {
    this.closed ??= this.drain(ruleLimits.shutdown_ms_max)
      .then(() => this.linger())
      .then(() => {
        this.app.close();
      });
    return this.closed;
  }

  /**
   * Keeps answering on open connections, and ends each one with its next answer. If the server closed a connection at
   * the moment when a request arrives, the client would get a reset instead of an answer.
   */
  private async linger(): Promise<void> {
    const { time } = this.context;
    const end = time.monotonic() + limits.connection_linger_ms_max;
    for (let before = -1; this.context.begun !== before && time.monotonic() < end; ) {
      before = this.context.begun;
      await time.sleep(this.quietMs);
    }
    if (this.context.open > 0) await this.drain(Math.max(0, end - time.monotonic()));
  }
}

/** Starts to listen. Rejects if another process uses the port and does not share it. */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const app = options.engine.app();
  const context: ExchangeContext = {
    time: options.time ?? systemTime,
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
    heldReplies: new HeldReplies(),
    streamBytes: 0,
    closing: false,
    idle: () => undefined,
  };
  route(app, context, options.handler);
  return new Server(options, app, context, await bind(app, options));
}
