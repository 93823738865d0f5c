/**
 * Lets the large calls of one caller run one at a time: what they compute, between any two things that they wait for, would otherwise
 * gather into long turns of the event loop, for which everybody waits. What waits is bounded by the bodies that a server takes.
 */
export class Turns {
  /** Waiting large calls, by callers that have one in progress. */
  private readonly callers = new Map<number | string, Array<() => void>>();

  /** Begins `call` at once, or when those before it have ended. `call` must neither throw nor reject. */
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
    // Whoever is there already comes before the next one.
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
