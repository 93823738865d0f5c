/**
 * Circuit breaker for one receiver: how many requests it may have in flight. While the receiver is down, one probe at
 * a time. Pure.
 */
import { limits } from '../limits.js';
import { nextTry } from './schedule.js';

export interface Breaker {
  /** The receiver is down: only one update at a time may be sent, and no new chat may be started. */
  readonly down: boolean;
  /** Failed probes in a row. */
  readonly probes: number;
  /** How many requests may be in flight now, at most `max`. */
  allowed(max: number): number;
  success(): void;
  /**
   * Records a failure. `probe`: the request was sent while the receiver was down. Other failures are ignored then,
   * because they were already in flight when the receiver went down.
   */
  failure(probe: boolean, retryAfterMs: number | undefined, random: number): void;
  /** How long to send nothing, in milliseconds from the last failed probe. */
  readonly pauseMs: number;
}

/** Continues from the state of the previous lease. `probes` above 0 means the receiver was down. */
export function createBreaker(probes: number): Breaker {
  let failures = 0;
  let failedProbes = probes;
  let down = probes > 0;
  let ramp = down ? 1 : Number.POSITIVE_INFINITY;
  let pauseMs = 0;

  function wait(retryAfterMs: number | undefined, random: number): number {
    const at = nextTry({ failures: failedProbes + 1, madeAtMs: 0, nowMs: 0, retryAfterMs }, random);
    const asked = Math.min(retryAfterMs ?? 0, limits.webhook_retry_after_ms_max);
    return at.kind === 'dead' ? 0 : Math.max(asked, Math.min(at.atMs, limits.webhook_pause_ms_max));
  }

  return {
    get down() {
      return down;
    },
    get probes() {
      return failedProbes;
    },
    get pauseMs() {
      return down ? pauseMs : 0;
    },
    allowed: (max) => (down ? 1 : Math.min(max, ramp)),
    success() {
      failures = 0;
      failedProbes = 0;
      pauseMs = 0;
      down = false;
      ramp *= 2;
    },
    failure(probe, retryAfterMs, random) {
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
