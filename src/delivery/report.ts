/** What a worker has to tell Redis of one bot in its next step. */
import type { Delivery, Step } from '../store/webhooks/deliveries.js';

type Told = Pick<Step, 'acked' | 'failed' | 'error' | 'gone'>;

export interface Report {
  /** Acknowledgements that wait to be told, and since when by the monotonic clock. */
  readonly acked: number;
  readonly ackedSince: number;
  /** A chat is to be parked. */
  readonly urgent: boolean;
  ack(delivery: Delivery, parked: boolean): void;
  park(chat: string, delayMs: number, tries: number, ids: readonly string[]): void;
  /** The receiver failed so, and with this status if it answered. */
  error(message: string, status: number | undefined): void;
  /** The receiver answered something else than 410; `known`: Redis says that it had answered nothing else. */
  notGone(known: boolean): void;
  /** The chat is to be parked: an update that came meanwhile goes with it. False when it is not. */
  parkWith(delivery: Delivery): boolean;
  /** What Redis says of the chat is older than what is to be told of it. */
  knows(chat: string): boolean;
  /** What was to be parked is in the queue no more. */
  drop(): void;
  /** What is told now; from here on a new report is gathered. */
  take(): Told;
  /** It could not be told. */
  putBack(told: Told): void;
}

/** Ids of both, in the order of the queue. */
const united = (ids: readonly string[], more: readonly string[] = []): string[] =>
  more.length === 0 ? [...ids] : [...new Set([...ids, ...more])].sort((a, b) => Number(a) - Number(b));

export function createReport(): Report {
  let acked: Array<Step['acked'][number]> = [];
  let failed = new Map<string, Step['failed'][number] & { readonly ids: string[] }>();
  let error = '';
  let gone: Step['gone'] = '';
  /** A 410 was reported, told or not, and no other answer since. */
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
      // What could not be told of it names ids that are held no more: they are parked with these or by nobody.
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
    knows: (chat) => failed.has(chat) || acked.some(({ delivery }) => delivery.chat === chat),
    drop() {
      failed = new Map();
    },
    take() {
      const told = { acked, failed: [...failed.values()], error, gone };
      [acked, failed, error, gone] = [[], new Map(), '', ''];
      return told;
    },
    putBack(told) {
      acked = [...told.acked, ...acked];
      // When a chat is tried again, and how often it was, is what became of it since.
      for (const each of told.failed) {
        const since = failed.get(each.chat);
        failed.set(each.chat, { ...(since ?? each), ids: united(each.ids, since?.ids) });
      }
      error ||= told.error;
      gone ||= told.gone;
    },
  };
}
