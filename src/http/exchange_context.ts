/** What all exchanges of one server share. */

import { limits } from '../limits.js';
import type { ApiRequest } from '../server/request.js';
import type { BodyRoom } from './body.js';
import { isUpload, type SignedBodies } from './head.js';
import type { Turns } from './turns.js';

/** Hears of every request when it is over. */
export interface AccessListener {
  /** A name for a request, which goes into its answer. */
  name(request: ApiRequest): string;
  /** `status` is 0 when the client went before the answer. */
  over(request: ApiRequest, name: string, status: number, ms: number): void;
}

/** Counts every request when it is over; `call` is a name of the documents. */
export interface RequestListener {
  /** For how many requests the time of the next one stands; 0 when it is not taken. */
  weight(): number;
  /** `ms` says something where `weight` is above 0. */
  over(call: string, status: number, ms: number, weight: number): void;
}

/**
 * Looks at the head of a request before any of its body is taken. True for a caller with a good token, false for a call that needs
 * none. Throws or rejects with the answer to any other.
 */
export type Admit = (request: ApiRequest) => boolean | Promise<boolean>;

export interface ExchangeContext {
  readonly bodies: BodyRoom;
  readonly turns: Turns;
  /** See `ListenOptions.admit`. */
  readonly admit: Admit | undefined;
  /** The address that the bodies of a request are counted by. */
  readonly clientAddress: (request: ApiRequest) => string;
  /** What a body of more than the usual bytes, or of unknown length, may hold. */
  readonly bodyBound: (verb: string, path: string, usual: number) => number;
  /** Called with what a handler threw and should not have; never with anything of the request but the name that the access log
   * gave it. */
  readonly onFault: (error: unknown, request?: string) => void;
  readonly access: AccessListener | undefined;
  readonly meter: RequestListener | undefined;
  readonly signed: SignedBodies | undefined;
  /** Requests whose reply has not been handed to the kernel or, if small, to the engine. */
  open: number;
  /** Requests so far. */
  begun: number;
  /** Set while the server shuts down: replies then end their connection. */
  closing: boolean;
  /** Called when `open` falls to 0 while closing. */
  idle: () => void;
}

/** What the body of a call may hold, in bytes. */
export function bytesMaxOf(
  {
    method,
    path,
    contentType,
  }: { readonly method: string; readonly path: string; readonly contentType: string },
  declaredBytes: number,
  { bodyBound, signed }: ExchangeContext,
): number {
  if (signed?.path === path) return signed.bytesMax;
  const usual = isUpload(contentType) ? limits.upload_bytes_max : limits.body_bytes_max;
  return declaredBytes > usual ? bodyBound(method, path, usual) : usual;
}
