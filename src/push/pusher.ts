/**
 * Sends push notifications when they are due. Skips people with an open browser window. For all other people, sends an
 * encrypted push message to each of their browsers. Counts failures and does not retry them.
 */

import { receiverOf, type Sender } from '../delivery/outbound/send.js';
import { isDelivered, type Outcome } from '../delivery/outcome.js';
import type { Addressee } from '../store/chats/push.js';
import { directChat, isDirect, sharedChat } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import { storeLimits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { headersOf, seal } from './encrypt.js';
import { pushLimits as limits } from './limits.js';
import { notificationOf } from './notification.js';
import type { Vapid } from './vapid.js';

export interface PusherOptions {
  readonly store: Pick<Store, 'push' | 'presence' | 'history' | 'bots'>;
  readonly sender: Pick<Sender, 'send'>;
  readonly vapid: Vapid;
  readonly delayMs: number;
  readonly time?: Time;
  readonly held?: () => boolean;
  readonly onError: (error: unknown) => void;
}

export interface PushStats {
  /** How many push messages a push service accepted. */
  sent: number;
  /** How many subscriptions no longer exist according to the push service. */
  gone: number;
  failed: number;
  /** How many notifications were skipped because the person had a browser window open. */
  present: number;
  /** How many notifications were dropped because too many for the same person were in flight. */
  dropped: number;
}

const take_interval_ms = 250;
/**
 * The longest pause while no notification is due, in ms. A long pause misses nothing, because each message is recorded
 * `delayMs` before its notification is due.
 */
const idle_interval_ms_max = 4_000;

/** A notification to one person about one chat, with an entry for each of the person's browsers. */
type Job = readonly [Addressee, ...Addressee[]];

const chatOf = ({ chat_id, user_id }: Addressee) =>
  chat_id > 0 ? directChat(chat_id, user_id) : sharedChat(chat_id);

function jobsOf(rows: readonly Addressee[]): Job[] {
  const jobs = new Map<string, [Addressee, ...Addressee[]]>();
  for (const row of rows) {
    const name = `${row.user_id} ${row.chat_id}`;
    const known = jobs.get(name);
    if (known) known.push(row);
    else jobs.set(name, [row]);
  }
  return [...jobs.values()];
}

/** Returns whether the subscription has ended: the push service answered 404 or 410 (RFC 8030 §7.3). */
const isGone = (outcome: Outcome): boolean =>
  outcome.kind === 'answered' && (outcome.status === 404 || outcome.status === 410);

/** Returns whether a failure is temporary and has nothing to do with the subscription. The subscription then stays. */
const isPassing = (outcome: Outcome): boolean =>
  outcome.kind === 'answered' ? outcome.status === 429 : outcome.reason === 'busy';

/**
 * Sends in rounds. A round fetches the due notifications, starts to send them, and schedules the next round. Messages
 * of earlier rounds may still be in flight, at most `push_in_flight_max` in total and `push_person_in_flight_max` to
 * one person.
 */
export class Pusher {
  readonly #options: PusherOptions;
  readonly #time: Time;
  readonly #stats: PushStats = { sent: 0, gone: 0, failed: 0, present: 0, dropped: 0 };
  readonly #inFlight = new Set<Promise<void>>();
  readonly #busy = new Map<number, number>();
  readonly #idleMs: number;
  #lookAt = 0;
  #stopping = false;
  #timer: Timer | undefined;
  #turning: Promise<void> = Promise.resolve();

  constructor(options: PusherOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#idleMs = Math.max(take_interval_ms, Math.min(idle_interval_ms_max, options.delayMs));
  }

  get stats(): Readonly<PushStats> {
    return this.#stats;
  }

  start(): void {
    if (this.#stopping) return;
    const ms = Math.max(take_interval_ms, this.#lookAt - this.#time.monotonic());
    this.#timer = this.#time.after(ms, () => {
      this.#turning = this.#turn()
        .catch(this.#options.onError)
        .finally(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#time.cancel(this.#timer);
    await this.#turning;
    await Promise.all(this.#inFlight);
  }

  async #isDue(): Promise<boolean> {
    const ms = (await this.#options.store.push.untilDue()) ?? this.#idleMs;
    if (ms > 0) this.#lookAt = this.#time.monotonic() + Math.min(ms, this.#idleMs);
    return ms <= 0;
  }

  async #turn(): Promise<void> {
    const { store, held } = this.#options;
    while (!this.#stopping && !held?.() && this.#time.monotonic() >= this.#lookAt && (await this.#isDue())) {
      const free = limits.push_in_flight_max - this.#inFlight.size;
      if (free <= 0) return;
      const due = await store.push.take(free);
      if (due.length === 0) return;
      const rows = await store.push.addressees(due);
      const present = await store.presence.among([...new Set(rows.map(({ user_id }) => user_id))]);
      // Many people may get a notification of the same group message, so each message is loaded only once.
      const messages = new Map<string, Promise<StoredMessage | null>>();
      const jobs = jobsOf(rows);
      const absent = jobs.filter(([{ user_id }]) => !present.has(user_id));
      this.#stats.present += jobs.length - absent.length;
      await store.push.notified(absent.map(([first]) => first));
      for (const job of absent) {
        const [first] = job;
        const name = `${first.chat_id > 0 ? first.user_id : 0} ${first.chat_id} ${first.message_id}`;
        const message = messages.get(name) ?? this.#read(first);
        messages.set(name, message);
        this.#notify(job, message);
      }
    }
  }

  /** Loads the message as it is now. It may have been edited or deleted since it was recorded. */
  async #read(first: Addressee): Promise<StoredMessage | null> {
    const { history } = this.#options.store;
    const [found] = (await history.list(chatOf(first), first.message_id + 1, 1)) ?? [];
    return found?.id === first.message_id ? found : null;
  }

  #notify(job: Job, message: Promise<StoredMessage | null>): void {
    const { user_id: user } = job[0];
    const open = this.#busy.get(user) ?? 0;
    if (open >= limits.push_person_in_flight_max) {
      this.#stats.dropped++;
      return;
    }
    this.#busy.set(user, open + 1);
    const work = this.#pushAll(job, message)
      .catch(this.#options.onError)
      .finally(() => {
        this.#inFlight.delete(work);
        const left = (this.#busy.get(user) ?? 1) - 1;
        if (left === 0) this.#busy.delete(user);
        else this.#busy.set(user, left);
      });
    this.#inFlight.add(work);
  }

  async #pushAll(job: Job, message: Promise<StoredMessage | null>): Promise<void> {
    const { store, onError } = this.#options;
    const [first] = job;
    const found = await message;
    if (found === null || this.#time.now() - found.record.date * 1_000 > storeLimits.push_age_ms_max) return;
    const chat = chatOf(first);
    const bot = isDirect(chat) ? await store.bots.profile(chat.id, first.language_code) : null;
    const payload = notificationOf(chat, found, bot);
    if (payload === null) return;
    await Promise.all(job.map((to) => this.#push(to, payload).catch(onError)));
  }

  async #push(to: Addressee, payload: unknown): Promise<void> {
    const { store, sender, vapid } = this.#options;
    const receiver = receiverOf(to.endpoint);
    const authorization = await vapid.authorization(receiver.target.origin);
    const headers = headersOf(to.chat_id, authorization, to.auth);
    const outcome = await sender.send(receiver, headers, seal(payload, to));
    if (isDelivered(outcome)) this.#stats.sent++;
    else if (isGone(outcome)) this.#stats.gone++;
    else this.#stats.failed++;
    if (isGone(outcome)) await store.push.gone(to.id);
    else if (!isPassing(outcome)) await store.push.outcome(to.id, !isDelivered(outcome));
  }
}
