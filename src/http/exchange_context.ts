/** The state that all exchanges of a server share. */

import { callLimits } from '../server/limits.js';
import type { ApiRequest } from '../server/request.js';
import type { Time } from '../time.js';
import type { BodyRoom } from './body.js';
import { isUpload, type SignedBodies } from './head.js';
import type { HeldReplies } from './held_replies.js';
import { httpLimits as limits } from './limits.js';

export interface AccessListener {
  name(request: ApiRequest): string;
  /** Called when a request has ended. `status` is 0 if the client disconnected before the answer. */
  over(request: ApiRequest, name: string, status: number, ms: number): void;
}

/** Counts finished requests. `call` is the name of a method, or the path of an endpoint or page. */
export interface RequestListener {
  /**
   * Returns the weight of the next request. Only a sample of all requests is measured. The weight is the number of
   * requests that a measured request represents, or 0 if the request is not measured.
   */
  weight(): number;
  /** Called when a request has ended. `ms` is its duration, which is valid only if `weight` is above 0. */
  over(call: string, status: number, ms: number, weight: number): void;
}

/**
 * Decides from the request head whether to accept a body. Returns true for a caller with a valid token, and false for a
 * call that needs no token. Otherwise throws or rejects with the error to answer.
 */
export type Admit = (request: ApiRequest) => boolean | Promise<boolean>;

export interface ExchangeContext {
  readonly time: Time;
  readonly bodies: BodyRoom;
  readonly admit: Admit | undefined;
  readonly clientAddress: (request: ApiRequest) => string;
  /** Returns the maximum size in bytes of a body whose length exceeds `usual` or is unknown. */
  readonly bodyBound: (verb: string, path: string, usual: number) => number;
  /** Called with handlers' unexpected errors. `request` is the request's id in the access log. */
  readonly onFault: (error: unknown, request?: string) => void;
  readonly access: AccessListener | undefined;
  readonly meter: RequestListener | undefined;
  readonly signed: SignedBodies | undefined;
  /**
   * The number of requests whose reply the kernel has not accepted yet. A small reply counts only until the engine has
   * it.
   */
  open: number;
  begun: number;
  readonly heldReplies: HeldReplies;
  /** How many bytes wait for slow clients of event streams. */
  streamBytes: number;
  /** True during shutdown. Each reply then ends its connection. */
  closing: boolean;
  idle: () => void;
}

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
  const usual = isUpload(contentType) ? limits.upload_bytes_max : callLimits.body_bytes_max;
  return declaredBytes > usual ? bodyBound(method, path, usual) : usual;
}
