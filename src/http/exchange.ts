/**
 * One request and its single reply: every request passes through here, and nothing thrown leaves it.
 *
 * A connection that has to end after this reply (an ambiguous head, a chunked body, `Connection: close`) is never
 * answered while the engine parses: until its parser returns, an engine goes on to the next request of the same read
 * even after `end` with `closeConnection`, so that what one server takes for the body of a request could be run as
 * another. Such replies wait for the next turn of the event loop; a second request that arrives while a reply is
 * pending makes the engine drop the connection, and neither is answered. Pipelined requests are therefore answered
 * in order as long as the handler replies at once, and else refused by closing.
 *
 * Time: the engines close a connection whose head is not complete after 10 s, and one whose body brings less than
 * 160 KiB in 10 s and is not complete by then, which is stricter than `limits.body_idle_ms_max`.
 */
import type { ApiRequest, EventStream, RequestHandler } from '../api/request.js';
import { ApiError, type ErrorName, errorEnvelope } from '../errors.js';
import { limits } from '../limits.js';
import type { EngineRequest, EngineResponse } from './engine.js';
import { closedStream, ReplyStream } from './event-stream.js';
import { asksToClose, type Head, isAmbiguous, readHead } from './head.js';
import { peerAddress, statusLine } from './wire.js';

/** What all exchanges of one server share. */
export interface ExchangeContext {
  /** Called with what a handler threw and should not have; never with anything of the request. */
  readonly onFault: (error: unknown) => void;
  /** Requests whose reply has not been handed to the kernel or, if small, to the engine. */
  open: number;
  /** Set while the server shuts down: replies then end their connection. */
  closing: boolean;
  /** Called when `open` falls to 0 while closing. */
  idle: () => void;
}

const json = 'application/json';
const eventStream = 'text/event-stream';
const noBody = Buffer.alloc(0);
/** Above this a reply is handed over in the pieces that the kernel takes, instead of being copied by the engine. */
const large_reply_bytes_min = 64 * 1024;

function isUpload(contentType: string): boolean {
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType);
}

/** The reply that is still owed, that was decided on, that is out, or that nobody waits for any more. */
type Stage = 'owed' | 'given' | 'out' | 'aborted';

export class Exchange implements ApiRequest, Head {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  contentType = '';
  authorization = '';
  lastEventId = '';
  idempotencyKey = '';
  contentLength = '';
  transferEncoding = '';
  host = '';
  connection = '';
  contentLengths = 0;
  transferEncodings = 0;
  hosts = 0;
  body: Buffer = noBody;

  private readonly context: ExchangeContext;
  private readonly handler: RequestHandler;
  private readonly response: EngineResponse;
  private stage: Stage = 'owed';
  private closes = false;
  /** True while the engine's own callback runs, in which it has corked the socket already. */
  private corked = true;
  private address: string | undefined;
  private abortListener: (() => void) | undefined;
  private stream: ReplyStream | undefined;
  private parts: Buffer[] | undefined;
  private receivedBytes = 0;

  /** Reads the head and takes the request up. Never throws. */
  constructor(
    context: ExchangeContext,
    handler: RequestHandler,
    method: string,
    response: EngineResponse,
    request: EngineRequest,
  ) {
    this.context = context;
    this.handler = handler;
    this.response = response;
    this.method = method;
    this.path = request.getUrl();
    this.query = request.getQuery();
    context.open++;
    readHead(request, this);
    this.begin();
    // An engine ends the process when its callback returns with neither a reply nor this listener. Nothing can abort
    // before the callback returns, so a request that is answered at once is spared the listener.
    if (this.stage !== 'out') response.onAborted(() => this.abort());
    this.corked = false;
  }

  get aborted(): boolean {
    return this.stage === 'aborted';
  }

  /** Address of the peer; '' when first asked for after the reply. */
  get remoteAddress(): string {
    if (this.address === undefined) {
      if (this.stage === 'out' || this.stage === 'aborted') return '';
      this.address = peerAddress(this.response);
    }
    return this.address;
  }

  onAbort(listener: () => void): void {
    if (this.stage === 'aborted') this.guard(listener);
    else this.abortListener = listener;
  }

  reply(status: number, body: string | Buffer, retryAfter?: number): void {
    this.give(status, json, body, retryAfter);
  }

  replyWith(status: number, contentType: string, body: string | Buffer): void {
    this.give(status, contentType, body, undefined);
  }

  /** Asked for with HEAD, the reply is the head alone and the stream is closed from the start. */
  openStream(): EventStream {
    if (this.method === 'HEAD') {
      this.give(200, eventStream, '', undefined);
      return closedStream;
    }
    if (!this.claim()) return closedStream;
    const { response } = this;
    const head = () => {
      response.writeHeader('Content-Type', eventStream);
      response.writeHeader('Cache-Control', 'no-store');
      response.writeHeader('X-Accel-Buffering', 'no');
      response.write(':\n\n');
    };
    if (this.corked) head();
    else response.cork(head);
    this.stream = new ReplyStream(response, () => this.finish());
    return this.stream;
  }

  private begin(): void {
    this.closes = asksToClose(this.connection);
    if (isAmbiguous(this)) {
      this.closes = true;
      this.refuse('bad_request');
      return;
    }
    const chunked = this.transferEncodings > 0;
    const declaredBytes = Number(this.contentLength);
    if (chunked) this.closes = true;
    else if (declaredBytes === 0) {
      this.run();
      return;
    }
    const bytesMax = isUpload(this.contentType) ? limits.upload_bytes_max : limits.body_bytes_max;
    // The engine skips what is still to come of this body, for at most 10 s, so that the client can read the answer:
    // a connection closed on unread data is reset, and the answer lost.
    if (declaredBytes > bytesMax) this.refuse('too_large');
    else this.response.onData((chunk, isLast) => this.receive(chunk, isLast, bytesMax));
  }

  private receive(chunk: ArrayBuffer, isLast: boolean, bytesMax: number): void {
    if (this.stage !== 'owed') return;
    this.receivedBytes += chunk.byteLength;
    if (this.receivedBytes > bytesMax) {
      // Only a chunked body comes here. It is skipped to its end if that is near, as with a declared length.
      this.parts = undefined;
      if (isLast || this.receivedBytes > bytesMax + limits.upload_bytes_max) this.refuse('too_large');
      return;
    }
    const copy = Buffer.from(Buffer.from(chunk));
    if (!isLast) {
      this.parts ??= [];
      this.parts.push(copy);
      return;
    }
    this.body = this.parts ? Buffer.concat([...this.parts, copy], this.receivedBytes) : copy;
    this.parts = undefined;
    this.corked = true;
    this.run();
    this.corked = false;
  }

  private run(): void {
    try {
      const ending = this.handler(this);
      if (ending === undefined) this.settle();
      else {
        ending.then(
          () => this.settle(),
          (error: unknown) => this.fail(error),
        );
      }
    } catch (error) {
      this.fail(error);
    }
  }

  private settle(): void {
    if (this.stage === 'owed') this.fail(new Error('a handler ended without a reply'));
  }

  private fail(error: unknown): void {
    const shown = error instanceof ApiError && this.stage !== 'given' && this.stage !== 'out';
    if (!shown) this.report(error);
    if (this.stage !== 'owed') return;
    const answer = shown ? error : new ApiError('internal');
    this.reply(answer.code, errorEnvelope(answer), answer.retryAfter);
  }

  private refuse(kind: ErrorName): void {
    const error = new ApiError(kind);
    this.reply(error.code, errorEnvelope(error));
  }

  private report(error: unknown): void {
    try {
      this.context.onFault(error);
    } catch {
      // A fault of the reporter has nobody left to hear of it, and must not end the process.
    }
  }

  private guard(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.report(error);
    }
  }

  /** Takes the right to answer; false when there is nobody to answer or the answer was given. */
  private claim(): boolean {
    if (this.stage === 'owed') {
      this.stage = 'given';
      return true;
    }
    if (this.stage !== 'aborted') this.report(new Error('a handler replied twice'));
    return false;
  }

  private give(
    status: number,
    contentType: string,
    body: string | Buffer,
    retryAfter: number | undefined,
  ): void {
    if (!this.claim()) return;
    if (this.corked && !this.closes) this.transmit(status, contentType, body, retryAfter);
    else if (!this.closes) this.response.cork(() => this.transmit(status, contentType, body, retryAfter));
    else {
      setImmediate(() => {
        if (this.stage !== 'given') return;
        this.response.cork(() => this.transmit(status, contentType, body, retryAfter));
      });
    }
  }

  private transmit(
    status: number,
    contentType: string,
    body: string | Buffer,
    retryAfter: number | undefined,
  ): void {
    const { response } = this;
    const closes = this.closes || this.context.closing;
    if (status !== 200) response.writeStatus(statusLine(status));
    response.writeHeader('Content-Type', contentType);
    if (retryAfter !== undefined) response.writeHeader('Retry-After', String(retryAfter));
    if (this.method === 'HEAD') response.endWithoutBody(Buffer.byteLength(body), closes);
    else if (body.length < large_reply_bytes_min || this.closes) response.end(body, closes);
    else {
      if (closes) response.writeHeader('Connection', 'close');
      this.transmitLarge(typeof body === 'string' ? Buffer.from(body) : body);
      return;
    }
    this.finish();
  }

  /** Counts as open until the kernel has the last byte, so that a shutdown does not cut it. */
  private transmitLarge(body: Buffer): void {
    const { response } = this;
    const [, complete] = response.tryEnd(body, body.length);
    if (complete) {
      this.finish();
      return;
    }
    response.onWritable((offset) => {
      const [taken, done] = response.tryEnd(body.subarray(offset), body.length);
      if (done) this.finish();
      return taken;
    });
  }

  private finish(): void {
    this.stage = 'out';
    this.leave();
  }

  private abort(): void {
    if (this.stage === 'out' || this.stage === 'aborted') return;
    const listener = this.stage === 'owed' || this.stream !== undefined ? this.abortListener : undefined;
    this.stage = 'aborted';
    this.parts = undefined;
    this.stream?.abandon();
    this.leave();
    if (listener) this.guard(listener);
  }

  private leave(): void {
    const { context } = this;
    context.open--;
    if (context.open === 0 && context.closing) context.idle();
  }
}
