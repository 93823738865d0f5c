/** Logs background failures and their effects. A failure that repeats is logged at intervals, not at each attempt. */
import { systemTime } from '../time.js';
import type { Logger } from './log.js';

export type Troubles = ReturnType<typeof createTroubles>;

const quietMs = 5_000;

/** Adds an error's cause to its message, because the message itself is meant for callers and is less precise. */
const reasonOf = (error: unknown) => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
};

export function createTroubles(log: Pick<Logger, 'error' | 'warn'>, time = systemTime) {
  const loggedAt = new Map<string, number>();
  const shouldLog = (source: string) => {
    const at = time.monotonic();
    if (at - (loggedAt.get(source) ?? Number.NEGATIVE_INFINITY) < quietMs) return false;
    loggedAt.set(source, at);
    return true;
  };
  const failed = (source: string, error: unknown) => {
    if (shouldLog(source)) log.error({ source, reason: reasonOf(error) }, `${source} failed`);
  };
  return {
    /** Reports a failure that lasts until someone fixes it or a dependency becomes available. */
    onError:
      (source: string): ((error: unknown) => void) =>
      (error) =>
        failed(source, error),
    /**
     * Reports that work is delayed by load, by an expired lock or by an unavailable dependency. `meaning` describes the
     * effect. Errors that `isDelay` does not accept are reported as failures.
     */
    onDelay:
      (
        source: string,
        meaning: string,
        isDelay: (error: unknown) => boolean = () => true,
      ): ((error: unknown) => void) =>
      (error) => {
        // Delays and failures have separate log keys, so that the report of a delay does not suppress the report of a
        // failure.
        if (!isDelay(error)) failed(source, error);
        else if (shouldLog(`${source} late`)) log.warn({ source, reason: reasonOf(error) }, meaning);
      },
  };
}
