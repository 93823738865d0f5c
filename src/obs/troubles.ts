/** Logs background failures at intervals instead of at each attempt, with what they mean. */
import type { Logger } from './log.js';

export interface Troubles {
  /** Reports a failure that lasts until someone fixes it, or until a dependency is back. */
  onError(source: string): (error: unknown) => void;
  /**
   * Reports work that load, an expired lock or an unavailable dependency only delays. `meaning` says what the delay
   * costs. Errors that `isDelay` does not accept are reported as failures.
   */
  onDelay(source: string, meaning: string, isDelay?: (error: unknown) => boolean): (error: unknown) => void;
}

/** Minimum ms between two lines about one source. */
const quietMs = 5_000;

/** The message for callers says little. The cause is more precise. */
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
        // A delay must not suppress the report of a failure, so it is logged under another key.
        if (!isDelay(error)) failed(source, error);
        else if (isHeard(`${source} late`)) log.warn({ source, reason: reasonOf(error) }, meaning);
      },
  };
}
