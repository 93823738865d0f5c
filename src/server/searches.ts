/** Limits the searches of one front, so that one person's searches do not delay other people's searches. */
import type { Store } from '../store/store.js';
import { callLimits as limits } from './limits.js';
import { createTurns } from './turns.js';

const ofPerson = createTurns(limits.searches_per_person_at_once, limits.searches_per_person_waiting_max);
const ofFront = createTurns(limits.searches_at_once, limits.searches_waiting_max);

/**
 * Counts a search against the person, and runs the search when its turn comes. A search first waits for earlier
 * searches by the same person, then for one of the front's slots. Error: `too_many_requests`.
 */
export async function searching<T>(store: Store, user: number, work: () => Promise<T>): Promise<T> {
  await store.fairUse?.more({ id: user, isBot: false }, limits.search_call_weight - 1);
  return ofPerson.run(user, () => ofFront.run(0, work));
}

/** Runs an administrator's search when its turn comes. Error: `too_many_requests`. */
export const searchingAsAdministrator = <T>(work: () => Promise<T>): Promise<T> => ofFront.run(0, work);
