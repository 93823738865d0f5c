/** Limits the searches of one front, so that the searches of some people do not delay those of other people. */
import type { Store } from '../store/store.js';
import { callLimits as limits } from './limits.js';
import { TimedTurns } from './timed_turns.js';

const turns = new TimedTurns({
  atOnce: limits.searches_at_once,
  waitingMax: limits.searches_waiting_max,
  ownWaitingMax: limits.searches_per_person_waiting_max,
  waitMsMax: limits.search_wait_ms_max,
});

/**
 * Counts a search against the person, and runs it when its turn comes. It waits first for the same person's earlier
 * searches, and then for one of the front's slots. Throws `too_many_requests`.
 */
export async function searching<T>(store: Store, user: number, work: () => Promise<T>): Promise<T> {
  await store.fairUse?.more({ id: user, isBot: false }, limits.search_call_weight - 1);
  return turns.run(user, work);
}

/**
 * Runs an administrator's search when its turn comes. All administrators together have one search at a time. Throws
 * `too_many_requests`.
 */
export const searchingAsAdministrator = <T>(work: () => Promise<T>): Promise<T> => turns.run(0, work);
