/** Collects the results of one bot's deliveries for the next step with Redis. */
import type { Delivery, Step } from '../store/webhooks/deliveries.js';

type Results = Pick<Step, 'acked' | 'failed' | 'error' | 'gone'>;

export interface Report {
  /** Number of unreported acknowledgements, and the monotonic time of the oldest. */
  readonly acked: number;
  readonly ackedSince: number;
  /** Some chat must be parked. */
  readonly urgent: boolean;
  ack(delivery: Delivery, parked: boolean): void;
  park(chat: string, delayMs: number, tries: number, ids: readonly string[]): void;
  /** Records the receiver's error, and its status if it answered. */
  error(message: string, status: number | undefined): void;
  /** Records that the receiver answered with a status other than 410. `known`: Redis had recorded a 410. */
  notGone(known: boolean): void;
  /** Adds an update to the chat if it is about to be parked. Returns false if it is not. */
  parkWith(delivery: Delivery): boolean;
  /** The report holds results for this chat that Redis does not have yet. */
  has(chat: string): boolean;
  /** Discards the chats to park, because the queue was emptied. */
  drop(): void;
  /** Returns the collected results and starts a new report. */
  take(): Results;
  /** Restores results whose step failed. */
  putBack(results: Results): void;
}

/** Merges two lists of ids, in queue order. */
const united = (ids: readonly string[], more: readonly string[] = []): string[] =>
  more.length === 0 ? [...ids] : [...new Set([...ids, ...more])].sort((a, b) => Number(a) - Number(b));

export function createReport(): Report {
  let acked: Array<Step['acked'][number]> = [];
  let failed = new Map<string, Step['failed'][number] & { readonly ids: string[] }>();
  let error = '';
  let gone: Step['gone'] = '';
  /** The last answer was a 410, reported or not. */
  let saidGone = false;
  let ackedSince = 0;
  return {
    get acked() {
      return acked.length;
    },
    get ackedSince() {
      return ackedSince;
    },
    get urgent() {
      return failed.size > 0;
    },
    ack(delivery, parked) {
      if (acked.length === 0) ackedSince = performance.now();
      acked.push({ delivery, parked });
    },
    park(chat, delayMs, tries, ids) {
      // Keep the ids of an unreported failure: no buffer holds them now, so this is the only record to park them.
      failed.set(chat, { chat, delayMs, tries, ids: united(ids, failed.get(chat)?.ids) });
    },
    error(message, status) {
      error = message;
      if (status === undefined) return;
      saidGone = status === 410;
      gone = saidGone ? 'set' : 'clear';
    },
    notGone(known) {
      if (!known && !saidGone) return;
      gone = 'clear';
      saidGone = false;
    },
    parkWith({ chat, id }) {
      const parking = failed.get(chat);
      parking?.ids.push(id);
      return parking !== undefined;
    },
    has: (chat) => failed.has(chat) || acked.some(({ delivery }) => delivery.chat === chat),
    drop() {
      failed = new Map();
    },
    take() {
      const results = { acked, failed: [...failed.values()], error, gone };
      [acked, failed, error, gone] = [[], new Map(), '', ''];
      return results;
    },
    putBack(results) {
      acked = [...results.acked, ...acked];
      // The newer failure decides the delay and the count of tries.
      for (const each of results.failed) {
        const since = failed.get(each.chat);
        failed.set(each.chat, { ...(since ?? each), ids: united(each.ids, since?.ids) });
      }
      error ||= results.error;
      gone ||= results.gone;
    },
  };
}
