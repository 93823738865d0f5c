/** What the rest of the program sees of one HTTP request and its single reply; `http/` implements it. */
import type { Readable } from 'node:stream';

export interface ApiRequest {
  /** Upper-case HTTP verb. */
  readonly method: string;
  /** As sent, percent-encoded, without the query. It may hold a token: never log it raw. */
  readonly path: string;
  /** As sent, without the question mark; '' when absent. */
  readonly query: string;
  /** '' when absent. */
  readonly contentType: string;
  /** '' when absent. */
  readonly authorization: string;
  /** '' when absent. */
  readonly lastEventId: string;
  /** '' when absent. */
  readonly idempotencyKey: string;
  /** `X-Forwarded-For`, which anybody may send; '' when absent. */
  readonly forwardedFor: string;
  /** `X-Request-Id`, which anybody may send; '' when absent. */
  readonly requestId: string;
  /** The balancer asks that a node which is leaving refuse the request undone (`leaving`), and gives it to another one. */
  readonly handover: boolean;
  /** The one `Host` of the request. */
  readonly host: string;
  /** What may encode the reply; '' when absent, and for all but the pages of the application. */
  readonly acceptEncoding: string;
  /** Which key signed the body, where the path takes signed bodies; '' when absent. */
  readonly keyId: string;
  /** '' when absent. */
  readonly signature: string;
  /** '' when absent. */
  readonly range: string;
  /** '' when absent. */
  readonly ifRange: string;
  /** '' when absent. */
  readonly ifNoneMatch: string;
  /** What is called, for the access log: a name of the documents, never anything of the request itself. */
  called: string;
  /** Id of the bot or person who calls, for the access log; 0 while it is not known. */
  calledBy: number;
  /** Id of the person or of the bot's owner; 0 if unknown before the body is read. */
  account: number;
  /** Complete and within the bounds of `limits`; empty when the request had none. */
  readonly body: Buffer;
  /** Address of the peer as text, for instance '127.0.0.1'. */
  readonly remoteAddress: string;
  /** True once the client has gone: replies are then dropped. */
  readonly aborted: boolean;
  /** Called at most once, when the client goes before the reply; at once if it has gone already. */
  onAbort(listener: () => void): void;
  /** Sends the one reply. `body` is JSON text; `retryAfter` (seconds) becomes the header of that name. */
  reply(status: number, body: string | Buffer, retryAfter?: number): void;
  /** Sends a reply that is not JSON. */
  replyWith(status: number, contentType: string, body: string | Buffer): void;
  /** Sends a reply with headers of its own, and its body no faster than the client takes it. */
  replyStream(reply: StreamedReply): void;
  /** Starts a server-sent event stream as the reply, or another text of no known length. */
  openStream(form?: StreamForm): EventStream;
}

/** A reply that is written as it comes to be. */
export interface StreamForm {
  readonly contentType: string;
  /** Others; `Cache-Control` is `no-store`. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** Text that readers pass over: an engine gets rid of what it holds only as part of a write. */
  readonly filler: string;
}

export interface StreamedReply {
  readonly status: number;
  /** All but the length, which is written with the body. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** Bytes of the body, at least 1. */
  readonly length: number;
  /** Brings exactly `length` bytes and is destroyed in every case; null answers with the head alone. */
  readonly body: Readable | null;
}

export interface EventStream {
  /** Writes text of the event-stream format. False when more than `limits.stream_buffer_bytes_max` wait unsent:
   * the caller should close the stream. */
  write(text: string): boolean;
  /** Resolves when nothing waits unsent, or the client has gone. */
  drained(): Promise<void>;
  close(): void;
  /** Ends the connection in the middle, so that the client sees that something is missing. */
  break(): void;
}

/** Handles one request: it must end in exactly one reply or stream, and may throw or reject. */
export type RequestHandler = (request: ApiRequest) => void | Promise<void>;
