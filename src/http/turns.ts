/**
 * Runs the large calls of one caller one at a time. Run together, their CPU work would block the event loop for long,
 * and every other call would wait. The waiting calls are bounded by the memory budget for bodies.
 */
export class Turns {
  /** Waiting large calls, by callers that have one in progress. */
  private readonly callers = new Map<number | string, Array<() => void>>();

  /** Runs `call` now, or after the earlier calls of this caller. `call` must neither throw nor reject. */
  take(caller: number | string, call: () => Promise<void> | undefined): void {
    const waiting = this.callers.get(caller);
    if (waiting !== undefined) {
      waiting.push(() => this.begin(caller, call));
      return;
    }
    this.callers.set(caller, []);
    this.begin(caller, call);
  }

  private begin(caller: number | string, call: () => Promise<void> | undefined): void {
    const ending = call();
    // Other events run before the next large call.
    const next = () => setImmediate(() => this.next(caller));
    if (ending === undefined) next();
    else ending.then(next);
  }

  private next(caller: number | string): void {
    const begin = this.callers.get(caller)?.shift();
    if (begin === undefined) this.callers.delete(caller);
    else begin();
  }
}
