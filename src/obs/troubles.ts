/** What fails in the background says so once in a while, not at each attempt, and says what that means. */
import type { Logger } from './log.js';

export interface Troubles {
  /** For what is broken until somebody mends it, or until what it needs is back. */
  onError(source: string): (error: unknown) => void;
  /**
   * For what a load, a lock that ran out or a dependency that is away only puts off: `meaning` tells what that costs. What is no
   * delay by `isDelay` is an error.
   */
  onDelay(source: string, meaning: string, isDelay?: (error: unknown) => boolean): (error: unknown) => void;
}

/** A source is heard once in so many milliseconds. */
const quietMs = 5_000;

/** A caller is told little of why; the cause says more. */
const reasonOf = (error: unknown) => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
};

export function createTroubles(log: Pick<Logger, 'error' | 'warn'>, now = () => performance.now()): Troubles {
  const told = new Map<string, number>();
  const isHeard = (source: string) => {
    const at = now();
    if (at - (told.get(source) ?? Number.NEGATIVE_INFINITY) < quietMs) return false;
    told.set(source, at);
    return true;
  };
  const failed = (source: string, error: unknown) => {
    if (isHeard(source)) log.error({ source, reason: reasonOf(error) }, `${source} failed`);
  };
  return {
    onError: (source) => (error) => failed(source, error),
    onDelay:
      (source, meaning, isDelay = () => true) =>
      (error) => {
        // A delay keeps nobody from hearing of an error.
        if (!isDelay(error)) failed(source, error);
        else if (isHeard(`${source} late`)) log.warn({ source, reason: reasonOf(error) }, meaning);
      },
  };
}
