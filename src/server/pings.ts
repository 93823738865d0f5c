/**
 * Limits one front's test requests (pings) to webhooks, so that some owners' slow receivers do not delay other owners.
 */
import { callLimits as limits } from './limits.js';
import { TimedTurns } from './timed_turns.js';

const turns = new TimedTurns({
  atOnce: limits.pings_at_once,
  waitingMax: limits.pings_waiting_max,
  ownWaitingMax: 0,
  waitMsMax: limits.ping_wait_ms_max,
});

/** Sends a ping when the owner's turn comes. Throws `too_many_requests` while another ping of the owner runs. */
export const pinging = <T>(owner: number, send: () => Promise<T>): Promise<T> => turns.run(owner, send);
