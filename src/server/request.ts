/** One HTTP request and its single reply, as the rest of the program sees them. `http/` implements it. */
import type { Readable } from 'node:stream';

/** Text fields of absent headers are ''. */
export interface ApiRequest {
  /** Upper-case HTTP verb. */
  readonly method: string;
  /** Path as sent, percent-encoded, without the query. It may hold a token: never log it raw. */
  readonly path: string;
  /** Query as sent, without the question mark; '' when absent. */
  readonly query: string;
  readonly contentType: string;
  readonly authorization: string;
  readonly lastEventId: string;
  readonly idempotencyKey: string;
  /** `X-Forwarded-For`, which any client can set; '' when absent. */
  readonly forwardedFor: string;
  /** `X-Request-Id`, which any client can set; '' when absent. */
  readonly requestId: string;
  /**
   * The load balancer wants a node that is shutting down to refuse the request (`leaving`), so that it can send it to
   * another node.
   */
  readonly handover: boolean;
  /** The `Host` header. There is exactly one. */
  readonly host: string;
  /** `Accept-Encoding`; '' when absent, and for everything but the pages of the application. */
  readonly acceptEncoding: string;
  /** Id of the key that signed the body, on paths that take signed bodies; '' when absent. */
  readonly keyId: string;
  readonly signature: string;
  readonly range: string;
  readonly ifRange: string;
  readonly ifNoneMatch: string;
  /** What the access log shows as called: a method name or endpoint path, never text from the request. */
  called: string;
  /** Id of the calling bot or person, for the access log; 0 while unknown. */
  calledBy: number;
  /** Complete, and within `limits`; empty when the request had none. */
  readonly body: Buffer;
  /** Address of the peer, for instance '127.0.0.1'. */
  readonly remoteAddress: string;
  /** True once the client has disconnected. Replies are then dropped. */
  readonly aborted: boolean;
  /** Calls `listener` at most once, when the client disconnects before the reply; immediately if it already has. */
  onAbort(listener: () => void): void;
  /** Sends the reply. `body` is JSON text; `retryAfter` (seconds) becomes the header Retry-After. */
  reply(status: number, body: string | Buffer, retryAfter?: number): void;
  /** Sends a reply that is not JSON. */
  replyWith(status: number, contentType: string, body: string | Buffer): void;
  /** Sends a reply with its own headers. The body is written no faster than the client reads. */
  replyStream(reply: StreamedReply): void;
  /** Starts a reply of unknown length: an event stream, or the text described by `form`. */
  openStream(form?: StreamForm): EventStream;
}

/** A reply whose text is written piece by piece. */
export interface StreamForm {
  readonly contentType: string;
  /** Headers besides `Cache-Control`, which is `no-store`. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** Text that readers ignore. The engine flushes buffered data only together with a write. */
  readonly filler: string;
}

export interface StreamedReply {
  readonly status: number;
  /** All headers except the length, which is sent with the body. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** Bytes of the body, at least 1. */
  readonly length: number;
  /** Yields exactly `length` bytes and is always destroyed afterwards; null sends the head alone. */
  readonly body: Readable | null;
}

export interface EventStream {
  /**
   * Writes text. False when more than `limits.stream_buffer_bytes_max` wait unsent: the caller should then close the
   * stream.
   */
  write(text: string): boolean;
  /** Resolves when everything is sent, or the client has disconnected. */
  drained(): Promise<void>;
  close(): void;
  /** Aborts the connection, so that the client notices the missing rest. */
  break(): void;
}

/** Handles one request: must send exactly one reply or stream. May throw or reject. */
export type RequestHandler = (request: ApiRequest) => void | Promise<void>;
