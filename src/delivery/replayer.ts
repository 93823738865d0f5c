/**
 * Fills the queues of replays (decision 0081). Any number of processes may do this at the same time, because every step
 * can be repeated.
 */
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { HistoryReplays } from '../store/webhooks/history_replays.js';
import type { Time } from '../time.js';

const intervalMs = 1_000;
/** How often the process looks for a replay while no replay is running. */
const idleIntervalMs = 4_000;
/**
 * How long a process uses one claim on a replay, in ms: half of the time for which the claim is valid. The second half
 * is left for a slow last step.
 */
const turnMs = limits.replay_claim_ms / 2;

type Claimed = Awaited<ReturnType<HistoryReplays['claim']>>[number];

export interface ReplayerOptions {
  readonly store: Pick<Store, 'historyReplays'>;
  readonly time: Time;
  readonly onError: (error: unknown) => void;
}

export function createReplayer({ store: { historyReplays: replays }, time, onError }: ReplayerOptions) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | undefined;

  async function serve(replay: Claimed): Promise<void> {
    try {
      const end = time.monotonic() + turnMs;
      for (let more = await replays.begin(replay); more && !signal.aborted; ) {
        more = await replays.step(replay);
        if (!more || time.monotonic() + limits.replay_step_ms > end) break;
        await time.sleep(limits.replay_step_ms, { signal });
      }
      await replays.release(replay);
    } catch (error) {
      // Only reports the error, because the next claim on the replay continues the work.
      onError(error);
    }
  }

  async function run(): Promise<void> {
    let everyMs = intervalMs;
    while (!signal.aborted) {
      try {
        const claimed = await replays.claim();
        await Promise.all(claimed.map(serve));
        everyMs = claimed.length === 0 ? Math.min(idleIntervalMs, everyMs * 2) : intervalMs;
      } catch (error) {
        onError(error);
      }
      await time.sleep(time.untilNext(everyMs), { signal });
    }
  }

  return {
    start(): void {
      running ??= run();
    },
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}
