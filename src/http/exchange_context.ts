/** What all exchanges of one server share. */
import type { BodyRoom } from './body.js';

export interface ExchangeContext {
  readonly bodies: BodyRoom;
  /** What a body of more than the usual bytes, or of unknown length, may hold. */
  readonly bodyBound: (verb: string, path: string, usual: number) => number;
  /** Called with what a handler threw and should not have; never with anything of the request. */
  readonly onFault: (error: unknown) => void;
  /** Requests whose reply has not been handed to the kernel or, if small, to the engine. */
  open: number;
  /** Set while the server shuts down: replies then end their connection. */
  closing: boolean;
  /** Called when `open` falls to 0 while closing. */
  idle: () => void;
}
