/**
 * Limits how often people show actions such as typing, and how often they change drafts. Each node counts in its own
 * memory, because Redis would write the counts to the append-only file.
 */
import { fail } from '../../errors.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

/**
 * Limits how often something may happen for each account or chat: `calls` times in a burst, and after that once per
 * interval.
 */
class Rate {
  readonly #calls: number;
  readonly #intervalMs: number;
  /** For each account or chat, the monotonic time at which a full burst is available again. */
  readonly #whole = new Map<number, number>();

  constructor(calls: number, intervalMs: number) {
    this.#calls = calls;
    this.#intervalMs = intervalMs;
  }

  take(of: number, now: number): boolean {
    const whole = Math.max(this.#whole.get(of) ?? 0, now) + this.#intervalMs;
    if (whole - now > this.#calls * this.#intervalMs) return false;
    if (this.#whole.size >= limits.rate_memory_max) this.#whole.clear();
    this.#whole.set(of, whole);
    return true;
  }
}

export function createActionRates({ time }: Pick<StoreContext, 'time'>) {
  const ofPeople = new Rate(limits.actions_per_person_max, limits.action_per_person_ms);
  const inChats = new Rate(limits.actions_per_chat_max, limits.action_per_chat_ms);
  const drafts = new Rate(limits.person_draft_changes_max, limits.person_draft_change_ms);
  const take = (rate: Rate, person: number) => {
    if (!rate.take(person, time.monotonic())) fail('too_many_requests', { retry_after: 1 });
  };
  return {
    /** Counts an action of a person. Error: `too_many_requests`. */
    take: (person: number): void => take(ofPeople, person),
    /** Counts a change of a person's draft. Error: `too_many_requests`. */
    takeDraft: (person: number): void => take(drafts, person),
    /**
     * Counts an action in a chat, because each action is sent to all members with an open window. Returns false if
     * there are too many actions in the chat. Call this only for members.
     */
    hasRoom: (chat: number): boolean => inChats.take(chat, time.monotonic()),
  };
}
