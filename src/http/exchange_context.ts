/** What all exchanges of one server share. */
import type { BodyRoom } from './body.js';
import type { SignedBodies } from './head.js';

export interface ExchangeContext {
  readonly bodies: BodyRoom;
  /** Called with what a handler threw and should not have; never with anything of the request. */
  readonly onFault: (error: unknown) => void;
  readonly signed: SignedBodies | undefined;
  /** Requests whose reply has not been handed to the kernel or, if small, to the engine. */
  open: number;
  /** Set while the server shuts down: replies then end their connection. */
  closing: boolean;
  /** Called when `open` falls to 0 while closing. */
  idle: () => void;
}
