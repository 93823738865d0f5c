/** Collects the results of one bot's deliveries until the next step reports them to Redis. */
import type { Delivery, Step } from '../store/webhooks/deliveries.js';

type Results = Pick<Step, 'acked' | 'repeated' | 'failed' | 'error' | 'gone'>;

const united = (ids: readonly string[], more: readonly string[] = []): string[] =>
  more.length === 0 ? [...ids] : [...new Set([...ids, ...more])].sort((a, b) => Number(a) - Number(b));

export class Report {
  #acked: Array<Step['acked'][number]> = [];
  /** Whether Redis may already know some of the acknowledgements in `#acked`. */
  #repeated = false;
  #failed = new Map<string, Step['failed'][number] & { readonly ids: string[] }>();
  #error = '';
  #gone: Step['gone'] = '';
  /** Whether the receiver's last answer was a 410, no matter whether this 410 is already recorded in Redis. */
  #saidGone = false;
  #ackedSince = 0;

  get acked(): number {
    return this.#acked.length;
  }

  /** The monotonic time of the oldest unreported acknowledgement. */
  get ackedSince(): number {
    return this.#ackedSince;
  }

  get urgent(): boolean {
    return this.#failed.size > 0;
  }

  /** `now` is the monotonic time. */
  ack(delivery: Delivery, parked: boolean, now: number): void {
    if (this.#acked.length === 0) this.#ackedSince = now;
    this.#acked.push({ delivery, parked });
  }

  park(chat: string, delayMs: number, tries: number, ids: readonly string[]): void {
    // Keeps the update ids of the chat's earlier failure if this failure is not reported to Redis yet. The buffer no
    // longer contains these updates, so they are parked only if this report names them.
    this.#failed.set(chat, { chat, delayMs, tries, ids: united(ids, this.#failed.get(chat)?.ids) });
  }

  error(message: string, status: number | undefined): void {
    this.#error = message;
    if (status === undefined) return;
    this.#saidGone = status === 410;
    this.#gone = this.#saidGone ? 'set' : 'clear';
  }

  /**
   * Records that the receiver answered with a status other than 410. `known` says that Redis has recorded an earlier
   * 410.
   */
  notGone(known: boolean): void {
    if (!known && !this.#saidGone) return;
    this.#gone = 'clear';
    this.#saidGone = false;
  }

  /**
   * Adds an update to the updates that this report parks. Returns false if the report does not park the update's chat.
   */
  parkWith({ chat, id }: Delivery): boolean {
    const parking = this.#failed.get(chat);
    parking?.ids.push(id);
    return parking !== undefined;
  }

  has(chat: string): boolean {
    return this.#failed.has(chat) || this.#acked.some(({ delivery }) => delivery.chat === chat);
  }

  /** Removes the updates with ids up to `last` from the updates to park, because the queue has dropped them. */
  drop(last: number): void {
    for (const [chat, each] of this.#failed) {
      const ids = each.ids.filter((id) => Number(id) > last);
      if (ids.length === 0) this.#failed.delete(chat);
      // Resets the number of failed attempts, because the attempts were for a dropped update. The first remaining
      // update has not failed yet.
      else if (ids.length < each.ids.length) this.#failed.set(chat, { ...each, ids, tries: 0 });
    }
  }

  take(): Results {
    const results = {
      acked: this.#acked,
      repeated: this.#repeated,
      failed: [...this.#failed.values()],
      error: this.#error,
      gone: this.#gone,
    };
    this.#acked = [];
    this.#repeated = false;
    this.#failed = new Map();
    this.#error = '';
    this.#gone = '';
    return results;
  }

  putBack(results: Results): void {
    this.#acked = [...results.acked, ...this.#acked];
    this.#repeated = results.acked.length > 0;
    // If a chat has failed again, keeps the delay and the number of attempts of the newer failure.
    for (const each of results.failed) {
      const since = this.#failed.get(each.chat);
      this.#failed.set(each.chat, { ...(since ?? each), ids: united(each.ids, since?.ids) });
    }
    this.#error ||= results.error;
    this.#gone ||= results.gone;
  }
}
