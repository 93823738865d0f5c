/** How many updates may be open to one receiver: all it allows, or while it is down a single one now and then. Pure. */
import { limits } from '../limits.js';
import { nextTry } from './schedule.js';

export interface Breaker {
  /** Nothing but one update at a time is to go out, and no new chat is to be begun. */
  readonly down: boolean;
  /** Failed probes in a row. */
  readonly probes: number;
  /** How many may be open now, of `max`. */
  allowed(max: number): number;
  success(): void;
  /** `probe`: it was sent while the receiver was down. What was open when the receiver went down tells nothing new. */
  failure(probe: boolean, retryAfterMs: number | undefined, random: number): void;
  /** How long nothing is to be sent, counted from the last failed probe, in milliseconds. */
  readonly pauseMs: number;
}

/** Goes on from what a former lease found: `probes` above 0 means that the receiver was down. */
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
