/**
 * Implements a circuit breaker for the requests to one receiver. Limits the number of requests in flight, and sends
 * only one request (a probe) at a time while the receiver is down. Has no side effects.
 */
import type { RetryPolicy } from '../rules/retry_policy.js';
import { deliveryLimits as limits } from './limits.js';
import { nextTry } from './schedule.js';

export type Breaker = ReturnType<typeof createBreaker>;

/**
 * Creates a breaker that continues from the state of the previous lease. `probes` is the number of failed probes. If
 * `probes` is above 0, the receiver is down. The pauses follow `policy`, up to limits.webhook_pause_ms_max.
 */
export function createBreaker(probes: number, policy: RetryPolicy | null = null) {
  let failures = 0;
  let failedProbes = probes;
  let down = probes > 0;
  let ramp = down ? 1 : Number.POSITIVE_INFINITY;
  let pauseMs = 0;

  function wait(retryAfterMs: number | undefined, random: number): number {
    const at = nextTry({ failures: failedProbes + 1, madeAtMs: 0, nowMs: 0, retryAfterMs, policy }, random);
    const asked = Math.min(retryAfterMs ?? 0, limits.webhook_retry_after_ms_max);
    return at.kind === 'dead' ? 0 : Math.max(asked, Math.min(at.atMs, limits.webhook_pause_ms_max));
  }

  return {
    /**
     * Whether the receiver is down. While it is down, only one update may be sent at a time, and no new chat may be
     * started.
     */
    get down() {
      return down;
    },
    get probes() {
      return failedProbes;
    },
    get pauseMs() {
      return down ? pauseMs : 0;
    },
    allowed: (max: number) => (down ? 1 : Math.min(max, ramp)),
    success() {
      failures = 0;
      failedProbes = 0;
      pauseMs = 0;
      down = false;
      ramp *= 2;
    },
    /**
     * Counts a failure. `probe` says that the request was sent while the receiver was down. While the receiver is down,
     * only probes count, because all other requests were sent before the receiver went down.
     */
    failure(probe: boolean, retryAfterMs: number | undefined, random: number) {
      failures++;
      if (down && !probe) return;
      if (!down && failures < limits.webhook_failures_in_a_row_max) return;
      down = true;
      ramp = 1;
      failedProbes++;
      pauseMs = wait(retryAfterMs, random);
    },
  };
}
