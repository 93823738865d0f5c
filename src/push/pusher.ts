/**
 * Sends push notifications: takes due ones, skips people who have a window open, and sends an encrypted push to each
 * browser of the others. Best effort: each push is sent once, and failures are counted but not repeated.
 */
import { nowMs } from '../clock.js';
import { receiverOf, type Sender } from '../delivery/outbound/send.js';
import { isDelivered, type Outcome } from '../delivery/outcome.js';
import { limits } from '../limits.js';
import type { Addressee } from '../store/chats/push.js';
import { directChat, isDirect, sharedChat } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import { headersOf, seal } from './encrypt.js';
import { notificationOf } from './notification.js';
import type { Vapid } from './vapid.js';

export interface PusherOptions {
  readonly store: Pick<Store, 'push' | 'presence' | 'history' | 'bots'>;
  readonly sender: Pick<Sender, 'send'>;
  readonly vapid: Vapid;
  /** Setting PUSH_DELAY_MS. */
  readonly delayMs: number;
  /** Whether this is a drill, in which nothing is sent. */
  readonly held?: () => boolean;
  readonly onError: (error: unknown) => void;
}

export interface PushStats {
  /** pushes that a push service accepted */
  sent: number;
  /** subscriptions that the push service no longer knows */
  gone: number;
  failed: number;
  /** people who had a window open */
  present: number;
  /** dropped because too many pushes to one person were in flight */
  dropped: number;
}

export interface Pusher {
  start(): void;
  /** Waits for pushes in flight. */
  stop(): Promise<void>;
  readonly stats: Readonly<PushStats>;
  underWay(): number;
}

const take_interval_ms = 250;
/** Longest pause while nothing is due. Messages are recorded `delayMs` before they are due. */
const idle_interval_ms_max = 4_000;

/** One notification of one person about one chat: a row for each of their browsers. */
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

/** The push service reports that the subscription has ended (RFC 8030 §7.3). */
const isGone = (outcome: Outcome): boolean =>
  outcome.kind === 'answered' && (outcome.status === 404 || outcome.status === 410);

/** A temporary failure that is not the subscription's fault. The next message tries again. */
const isPassing = (outcome: Outcome): boolean =>
  outcome.kind === 'answered' ? outcome.status === 429 : outcome.reason === 'busy';

export function createPusher({
  store,
  sender,
  vapid,
  delayMs,
  held = () => false,
  onError,
}: PusherOptions): Pusher {
  const stats: PushStats = { sent: 0, gone: 0, failed: 0, present: 0, dropped: 0 };
  const underWay = new Set<Promise<void>>();
  const busy = new Map<number, number>();
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let turning: Promise<void> = Promise.resolve();

  async function push(to: Addressee, payload: unknown): Promise<void> {
    const receiver = receiverOf(to.endpoint);
    const authorization = await vapid.authorization(receiver.target.origin);
    const outcome = await sender.send(
      receiver,
      headersOf(to.chat_id, authorization, to.auth),
      seal(payload, to),
    );
    if (isDelivered(outcome)) stats.sent++;
    else if (isGone(outcome)) stats.gone++;
    else stats.failed++;
    if (isGone(outcome)) await store.push.gone(to.id);
    else if (!isPassing(outcome)) await store.push.outcome(to.id, !isDelivered(outcome));
  }

  async function tell(job: Job, message: Promise<StoredMessage | null>): Promise<void> {
    const [first] = job;
    const found = await message;
    if (found === null || nowMs() - found.record.date * 1_000 > limits.push_age_ms_max) return;
    const chat = chatOf(first);
    const bot = isDirect(chat) ? await store.bots.profile(chat.id, first.language_code) : null;
    const payload = notificationOf(chat, found, bot);
    if (payload === null) return;
    await Promise.all(job.map((to) => push(to, payload).catch(onError)));
  }

  /** The current message: it may have been edited or deleted since it was recorded. */
  async function read(first: Addressee): Promise<StoredMessage | null> {
    const [found] = (await store.history.list(chatOf(first), first.message_id + 1, 1)) ?? [];
    return found?.id === first.message_id ? found : null;
  }

  function start(job: Job, message: Promise<StoredMessage | null>): void {
    const { user_id: user } = job[0];
    const open = busy.get(user) ?? 0;
    if (open >= limits.push_person_in_flight_max) {
      stats.dropped++;
      return;
    }
    busy.set(user, open + 1);
    const work = tell(job, message)
      .catch(onError)
      .finally(() => {
        underWay.delete(work);
        const left = (busy.get(user) ?? 1) - 1;
        if (left === 0) busy.delete(user);
        else busy.set(user, left);
      });
    underWay.add(work);
  }

  const idleMs = Math.max(take_interval_ms, Math.min(idle_interval_ms_max, delayMs));
  let lookAt = 0;

  /** Whether anything is due. If not, `lookAt` is set to when something can be. */
  async function isDue(): Promise<boolean> {
    const ms = (await store.push.untilDue()) ?? idleMs;
    if (ms > 0) lookAt = performance.now() + Math.min(ms, idleMs);
    return ms <= 0;
  }

  async function turn(): Promise<void> {
    while (!stopping && !held() && performance.now() >= lookAt && (await isDue())) {
      const free = limits.push_in_flight_max - underWay.size;
      if (free <= 0) return;
      const due = await store.push.take(free);
      if (due.length === 0) return;
      const rows = await store.push.addressees(due);
      const present = await store.presence.among([...new Set(rows.map(({ user_id }) => user_id))]);
      /** Many people may be notified of the same group message, so it is read once. */
      const messages = new Map<string, Promise<StoredMessage | null>>();
      const jobs = jobsOf(rows);
      const absent = jobs.filter(([{ user_id }]) => !present.has(user_id));
      stats.present += jobs.length - absent.length;
      await store.push.told(absent.map(([first]) => first));
      for (const job of absent) {
        const [first] = job;
        const name = `${first.chat_id > 0 ? first.user_id : 0} ${first.chat_id} ${first.message_id}`;
        const message = messages.get(name) ?? read(first);
        messages.set(name, message);
        start(job, message);
      }
    }
  }

  function schedule(): void {
    if (stopping) return;
    timer = setTimeout(
      () => {
        turning = turn().catch(onError).finally(schedule);
      },
      Math.max(take_interval_ms, lookAt - performance.now()),
    );
  }

  return {
    stats,
    underWay: () => underWay.size,
    start: schedule,
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await turning;
      await Promise.all(underWay);
    },
  };
}
