/** Defines a request and its single reply as the rest of the program sees them. Implemented in `http/`. */
import type { Readable } from 'node:stream';

export interface ApiRequest {
  readonly method: string;
  /**
   * The percent-encoded path without the query, as the client sent it. Never log it, because it may contain a token.
   */
  readonly path: string;
  /** The query as the client sent it, without the question mark. '' if absent. */
  readonly query: string;
  readonly contentType: string;
  readonly authorization: string;
  readonly lastEventId: string;
  readonly idempotencyKey: string;
  /** The header `Prefer`, or '' when absent. */
  readonly prefer: string;
  /** The header `traceparent` of W3C Trace Context, or '' if absent. */
  readonly traceparent: string;
  /** The header `Cookie`, or '' if absent. */
  readonly cookie: string;
  /** The header `User-Agent`, or '' if absent. Any client can set it. */
  readonly userAgent: string;
  /** The header `X-Service-Coalesce`, or '' if absent. */
  readonly coalesce: string;
  /** The header `X-Service-Consumer`, or '' if absent. */
  readonly consumer: string;
  /** The header `X-Service-Consumer-Timeout`, or '' if absent. */
  readonly consumerTimeout: string;
  /** The header `X-Forwarded-For`, or '' if absent. Any client can set it. */
  readonly forwardedFor: string;
  /** The header `X-Request-Id`, or '' if absent. Any client can set it. */
  readonly requestId: string;
  /**
   * Whether a node that is shutting down (`leaving`) should refuse this request. The load balancer then sends it to
   * another node.
   */
  readonly handover: boolean;
  readonly host: string;
  /** The `Accept` header, or '' when absent. Set only for pages. */
  readonly acceptedTypes: string;
  /** The `Accept-Encoding` header, or '' when absent. Set only for pages and the OpenAPI document. */
  readonly acceptEncoding: string;
  /** The `Accept-Language` header, or '' when absent. Set only for pages. */
  readonly acceptLanguage: string;
  /** The id of the key that signed the body, or ''. Set only on paths with signed bodies. */
  readonly keyId: string;
  readonly signature: string;
  readonly range: string;
  readonly ifRange: string;
  readonly ifNoneMatch: string;
  /** The call as the access log names it: a method name or an endpoint path, never text from the request. */
  called: string;
  /** The caller's id for the access log, or 0 while it is unknown. */
  calledBy: number;
  /** The reply's header `traceparent`, or '' if the reply has no such header. */
  answerTraceparent: string;
  /** The complete body within `limits`. Empty if the request had none. */
  readonly body: Buffer;
  readonly remoteAddress: string;
  readonly aborted: boolean;
  /**
   * Calls `listener` at most once, when the client disconnects before the reply. Calls it immediately if the client has
   * already disconnected.
   */
  onAbort(listener: () => void): void;
  /** Sends a reply. `body` is JSON text. `retryAfter`, in seconds, becomes the header Retry-After. */
  reply(status: number, body: string | Buffer, retryAfter?: number): void;
  replyWith(status: number, contentType: string, body: string | Buffer): void;
  /** Sends a stream as the reply, no faster than the client reads. */
  replyStream(reply: StreamedReply): void;
  /**
   * Starts a reply of unknown length. By default, the reply is an event stream. `form` describes another kind of text.
   */
  openStream(form?: StreamForm): EventStream;
}

export interface StreamForm {
  readonly contentType: string;
  /** The headers in addition to `Cache-Control`, which is `no-store`. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /**
   * Text that clients ignore. The stream sends it in order to flush buffered data, which the HTTP engine flushes only
   * when more is written.
   */
  readonly filler: string;
}

export interface StreamedReply {
  readonly status: number;
  /** All headers except Content-Length. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly length: number;
  /**
   * The body, which has exactly `length` bytes. Null sends only the head. The body stream is destroyed at the end, even
   * after an error.
   */
  readonly body: Readable | null;
}

export interface EventStream {
  /**
   * Writes text. Returns false if more than `limits.stream_buffer_bytes_max` bytes are waiting. The caller should then
   * close the stream.
   */
  write(text: string): boolean;
  /** Whether written data still waits to be sent to the client. */
  isBlocked(): boolean;
  /** Resolves when everything is sent or the client has disconnected. */
  drained(): Promise<void>;
  close(): void;
  /** Aborts the connection, so that the client notices that the reply is incomplete. */
  break(): void;
}

/** Handles one request. Must send exactly one reply or stream. May throw or reject. */
export type RequestHandler = (request: ApiRequest) => void | Promise<void>;
