/**
 * One HTTP request and its single reply.
 *
 * No exception leaves this class. After an ambiguous head, a chunked body or `Connection: close`, the reply ends the
 * connection. Such a reply is sent in the next turn of the event loop and never inside the engine's parser. Even after
 * `end` with `closeConnection`, the parser would parse the next request of the same read, so that Petrel could take the
 * body of one request for another request.
 *
 * If a second request arrives while a reply is pending, the engine drops the connection and answers neither request.
 * Pipelined requests are therefore answered in order only if the handler replies at once.
 *
 * The older engine closes a connection that is idle for 10 s, and the current engine after 30 s, also inside a head or
 * body. The older engine also requires 160 KiB of a body within the 10 s. Both times are within
 * `limits.body_idle_ms_max`.
 */

import { ApiError, type ErrorName, errorEnvelope } from '../errors.js';
import { callLimits } from '../server/limits.js';
import type {
  ApiRequest,
  EventStream,
  RequestHandler,
  StreamedReply,
  StreamForm,
} from '../server/request.js';
import { BodyBuffer } from './body.js';
import type { EngineRequest, EngineResponse } from './engine.js';
import { closedStream, ReplyStream } from './event-stream.js';
import { bytesMaxOf, type ExchangeContext } from './exchange_context.js';
import { asksToClose, engineCloses, Head, isAmbiguous, isUpload, readHead } from './head.js';
import { httpLimits as limits } from './limits.js';
import {
  beginStream,
  endBodiless,
  endHead,
  endInPieces,
  eventForm,
  large_reply_bytes_min,
  peerAddress,
  statusLine,
  writeHead,
} from './reply.js';
import { type StreamOwner, StreamReply } from './stream_reply.js';

const json = 'application/json';
const noBody = Buffer.alloc(0);

type Stage = 'owed' | 'given' | 'out' | 'aborted';

export class Exchange extends Head implements ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  acceptedTypes = '';
  acceptEncoding = '';
  acceptLanguage = '';
  keyId = '';
  signature = '';
  body: Buffer = noBody;
  called = 'unknown';
  calledBy = 0;
  answerTraceparent = '';

  private readonly context: ExchangeContext;
  private readonly handler: RequestHandler;
  private readonly response: EngineResponse;
  private stage: Stage = 'owed';
  private status = 0;
  private readonly named: string;
  private readonly beganAt: number;
  private readonly weight: number;
  closes = false;
  /** Whether the engine's callback is running. The socket is then already corked. */
  private corked = true;
  private address: string | undefined;
  private abortListener: (() => void) | undefined;
  private stream: ReplyStream | undefined;
  private download: StreamReply | undefined;
  private incoming: BodyBuffer | undefined;
  private releaseReply: (() => void) | undefined;
  /** Whether `admit` is still deciding about the body. */
  private admitting = false;
  /** Whether the engine reads no more of the body until `admit` has decided. */
  private paused = false;
  /** Whether the whole body arrived while `admit` was deciding. */
  private complete = false;

  constructor(
    context: ExchangeContext,
    handler: RequestHandler,
    method: string,
    response: EngineResponse,
    request: EngineRequest,
  ) {
    super();
    this.context = context;
    this.handler = handler;
    this.response = response;
    this.method = method;
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
    context.open++;
    context.begun++;
    readHead(request, this);
    this.named = context.access ? context.access.name(this) : '';
    this.weight = context.meter ? context.meter.weight() : 0;
    this.beganAt = context.access || this.weight > 0 ? context.time.monotonic() : 0;
    if (context.signed?.path === this.path) {
      this.keyId = request.getHeader(context.signed.keyId);
      this.signature = request.getHeader(context.signed.signature);
    }
  }

  get aborted(): boolean {
    return this.stage === 'aborted';
  }

  /** The client's address. It is '' if this property is read for the first time after the request has ended. */
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

  /**
   * Replies with a stream of known length. Refuses the call if the request body was chunked: the connection must end
   * after such a request, and the engine cannot end a connection after a stream.
   */
  replyStream(reply: StreamedReply): void {
    const body = this.method === 'HEAD' ? null : reply.body;
    if (body === null) reply.body?.destroy();
    if (this.transferEncodings > 0) {
      body?.destroy();
      this.refuse('bad_request');
    } else if (!this.claim()) body?.destroy();
    else if (body === null) this.sendHead(reply);
    else
      this.download = new StreamReply(
        this.context.time,
        this.response,
        body,
        reply.length,
        this.ownerOf(reply),
      );
  }

  openStream(form: StreamForm = eventForm): EventStream {
    if (this.method === 'HEAD') {
      this.give(200, form.contentType, '', undefined);
      return closedStream;
    }
    if (!this.claim()) return closedStream;
    this.status = 200;
    if (this.corked) beginStream(this.response, form);
    else this.response.cork(() => beginStream(this.response, form));
    this.stream = new ReplyStream(this.context, this.response, form, () => this.finish());
    return this.stream;
  }

  /**
   * Starts to handle the request inside the engine's callback. The engine needs a reply or a listener before the
   * callback returns. Never throws.
   */
  begin(): void {
    this.accept();
    this.corked = false;
    if (this.stage === 'owed' || this.stage === 'given') this.response.onAborted(() => this.abort());
  }

  private accept(): void {
    if (asksToClose(this.connection)) this.closes = true;
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
    const bytesMax = bytesMaxOf(this, chunked ? Number.POSITIVE_INFINITY : declaredBytes, this.context);
    // After the refusal, the engine skips the rest of the body, for at most 10 s. If the connection were reset instead,
    // the client would not get the answer.
    if (declaredBytes > bytesMax) this.refuse('too_large');
    else {
      const { bodies, clientAddress } = this.context;
      const incoming = new BodyBuffer(
        bytesMax,
        bodies,
        () => clientAddress(this),
        this.isCopied(declaredBytes),
      );
      this.incoming = incoming;
      if (this.admit(incoming))
        this.response.onData((chunk, isLast) => this.receive(incoming, chunk, isLast));
    }
  }

  /**
   * Decides from the request head whether to accept the body. Returns false if the body was refused. Until the
   * decision, the body counts against the limits for callers without a valid token.
   */
  private admit(incoming: BodyBuffer): boolean {
    try {
      const known = this.context.admit?.(this) ?? true;
      if (!(known instanceof Promise)) {
        if (known) incoming.recognise();
        return true;
      }
      this.admitting = true;
      // Pauses the body until the token has been looked up. Otherwise a fast client could use up the memory for bodies
      // of callers without a valid token. Does not pause once the whole body has arrived: resuming starts a timeout of
      // ten seconds in the engine, which only the end of a body cancels.
      this.context.time.soon(() => {
        if (this.stage !== 'owed' || !this.admitting || this.complete) return;
        this.paused = true;
        this.response.pause();
      });
      known.then(
        (found) => this.admitted(incoming, found),
        (error: unknown) => {
          this.admitting = false;
          this.resume();
          // Ignores an error of the lookup if the request was already refused, because its body became too large
          // meanwhile.
          if (this.stage === 'owed' || !(error instanceof ApiError)) this.fail(error);
        },
      );
      return true;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }

  /**
   * Returns whether the body's memory can be reused after the call. Only the memory of large parameters can be reused.
   * Uploads and pictures keep their memory, because their handlers may still use the body.
   */
  private isCopied(bytes: number): boolean {
    const { body_bytes_max: usual, large_body_bytes_min: large } = callLimits;
    if (!(bytes >= large && bytes <= usual) || isUpload(this.contentType)) return false;
    return (
      this.context.signed?.path !== this.path &&
      this.context.bodyBound(this.method, this.path, usual) === usual
    );
  }

  private admitted(incoming: BodyBuffer, known: boolean): void {
    this.admitting = false;
    if (this.stage !== 'owed') return;
    if (known) incoming.recognise();
    this.resume();
    if (!this.complete) return;
    this.body = incoming.take();
    this.run();
  }

  private resume(): void {
    if (this.paused && this.stage === 'owed') this.response.resume();
    this.paused = false;
  }

  private receive(incoming: BodyBuffer, chunk: ArrayBuffer, isLast: boolean): void {
    if (this.stage !== 'owed') return;
    const added = incoming.add(chunk, isLast);
    if (added === 'no_room') this.refuse('too_many_requests', 1);
    else if (added === 'too_large') {
      // If a chunked body is too large, skips the rest of it and refuses the call when the body ends. Refuses a far
      // larger body immediately.
      if (isLast || incoming.receivedBytes > incoming.bytesMax + limits.upload_bytes_max)
        this.refuse('too_large');
    } else if (isLast && this.admitting) this.complete = true;
    else if (isLast) {
      this.body = incoming.take();
      this.corked = true;
      this.run();
      this.corked = false;
    }
  }

  private run(): void {
    try {
      const ending = this.handler(this);
      if (ending === undefined) this.settle();
      else
        ending.then(
          () => this.settle(),
          (error: unknown) => this.fail(error),
        );
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

  private refuse(kind: ErrorName, retryAfter?: number): void {
    const error = new ApiError(kind, retryAfter === undefined ? {} : { retry_after: retryAfter });
    this.reply(error.code, errorEnvelope(error), retryAfter);
  }

  private report(error: unknown): void {
    try {
      this.context.onFault(error, this.named === '' ? undefined : this.named);
    } catch {
      // Ignores an error in the error reporter itself, because this error would otherwise end the process.
    }
  }

  private guard(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.report(error);
    }
  }

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
    this.status = status;
    if (this.corked && !this.closes) this.transmit(status, contentType, body, retryAfter);
    else if (!this.closes) this.response.cork(() => this.transmit(status, contentType, body, retryAfter));
    else {
      this.context.time.soon(() => {
        if (this.stage !== 'given') return;
        this.response.cork(() => this.transmit(status, contentType, body, retryAfter));
      });
    }
  }

  private ownerOf(reply: StreamedReply): StreamOwner {
    return {
      head: () => {
        this.status = reply.status;
        writeHead(this.response, reply, this.closes || this.context.closing);
      },
      done: () => this.finish(),
      failed: (error) => {
        this.report(error);
        this.stage = 'owed';
        this.refuse('unavailable', 1);
      },
      broken: (error) => this.report(error),
    };
  }

  /** A reply that ends its connection is sent in the next turn of the event loop. */
  private sendHead(reply: StreamedReply): void {
    this.status = reply.status;
    this.context.time.soon(() => {
      if (this.stage !== 'given') return;
      this.response.cork(() => endBodiless(this.response, reply, this.closes || this.context.closing));
      this.finish();
    });
  }

  private transmit(
    status: number,
    contentType: string,
    body: string | Buffer,
    retryAfter: number | undefined,
  ): void {
    const { response } = this;
    const closes = this.closes || this.context.closing;
    try {
      if (status !== 200) response.writeStatus(statusLine(status));
      response.writeHeader('Content-Type', contentType);
      // Forbids caching, because answers are private or soon outdated. Replies that may be cached are sent as streams
      // with headers of their own.
      response.writeHeader('Cache-Control', 'no-store');
      if (this.named !== '') response.writeHeader('X-Request-Id', this.named);
      if (this.answerTraceparent !== '') response.writeHeader('traceparent', this.answerTraceparent);
      if (retryAfter !== undefined) response.writeHeader('Retry-After', String(retryAfter));
      if (this.method === 'HEAD') endHead(response, Buffer.byteLength(body), closes);
      else if (body.length >= large_reply_bytes_min) {
        this.sendLarge(typeof body === 'string' ? Buffer.from(body) : body, closes);
        return;
      } else response.end(body, closes);
      this.finish();
    } catch (error) {
      // Closes the connection, because it is unknown how much of the reply the engine sent before it failed.
      this.report(error);
      response.close();
      this.abort();
    }
  }

  /** Sends a large reply and counts its bytes until the client has read it. */
  private sendLarge(body: Buffer, closes: boolean): void {
    const { response, context } = this;
    if (this.closes && !engineCloses(this.connection)) {
      this.sendLast(body);
      return;
    }
    if (closes) response.writeHeader('Connection', 'close');
    if (endInPieces(response, body, () => this.finish())) {
      this.finish();
      return;
    }
    const held = { bytes: body.length, drop: () => context.time.soon(() => this.drop()) };
    const { caller } = this;
    context.heldReplies.add(caller, held);
    this.releaseReply = () => context.heldReplies.remove(caller, held);
  }

  /**
   * Sends a large reply after a chunked body. The engine must end the connection together with this reply. It therefore
   * buffers the whole reply and does not report when the client has read it. The bytes of this reply count for a fixed
   * time, and the reply cannot be dropped. If the bytes exceed a limit, closes the connection instead.
   */
  private sendLast(body: Buffer): void {
    const { caller, context, response } = this;
    const release = context.heldReplies.hold(caller, body.length);
    if (release === null) {
      response.close();
      return;
    }
    context.time.after(limits.held_reply_ms, release).unref();
    response.end(body, true);
    this.finish();
  }

  /** The calling bot or person, or the address of a caller without an account. */
  private get caller(): number | string {
    return this.calledBy || this.remoteAddress;
  }

  private drop(): void {
    if (this.stage === 'given') this.response.close();
  }

  private finish(): void {
    this.stage = 'out';
    this.leave();
  }

  private abort(): void {
    if (this.stage === 'out' || this.stage === 'aborted') return;
    const listener = this.stage === 'owed' || this.stream !== undefined ? this.abortListener : undefined;
    this.stage = 'aborted';
    this.stream?.abandon();
    this.download?.abandon();
    this.leave();
    if (listener) this.guard(listener);
  }

  private leave(): void {
    const { context } = this;
    this.releaseReply?.();
    // After an abort, the handler may still be running and use the body, so its memory is not reused.
    this.incoming?.release(this.stage === 'out');
    const { access, meter } = context;
    const status = this.stage === 'aborted' && this.stream === undefined ? 0 : this.status;
    const ms = this.beganAt > 0 ? context.time.monotonic() - this.beganAt : 0;
    access?.over(this, this.named, status, ms);
    meter?.over(this.called, status, ms, this.weight);
    if (--context.open === 0 && context.closing) context.idle();
  }
}
