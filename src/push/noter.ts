/**
 * Finds new messages that need push notifications in the rows that a flusher committed, and records them. Keeps only
 * the newest message of each chat. Never blocks the flusher and never throws: a notification that cannot be recorded is
 * lost. Does nothing while nobody has a push subscription.
 */
import { shared } from '../shared.js';
import type { NotedMessage } from '../store/chats/push.js';
import { messageFlags, messageHeader, messageKinds } from '../store/core/codec.js';
import { chatText } from '../store/core/keys.js';
import { storeLimits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { pushLimits as limits } from './limits.js';

export interface WrittenRow {
  readonly table: { readonly table: string };
  readonly key: readonly number[];
  readonly entry: { readonly image: Buffer };
}

export interface NoterOptions {
  readonly push: Pick<Store['push'], 'anybody' | 'note' | 'purge'>;
  readonly delayMs: number;
  readonly time?: Time;
  readonly onError: (error: unknown) => void;
}

export interface Noter {
  written(rows: readonly WrittenRow[]): void;
  start(): void;
  stop(): Promise<void>;
  /**
   * How many messages were recorded (only the newest of each chat), and how many were dropped because too many were
   * pending.
   */
  readonly stats: { readonly noted: number; readonly dropped: number };
}

/**
 * If a message was edited more than this many ms after it was sent, its row belongs to an edit and causes no
 * notification.
 */
const edited_ms_max = 30_000;
const messages_a_statement = 1_000;
const note_interval_ms = 200;
/**
 * The minimum time between two checks whether anyone has a push subscription, in ms. A check happens only when messages
 * are written to Postgres.
 */
const look_interval_ms = 1_000;
const purge_interval_ms = 60_000;

/**
 * Returns the message to record. Null if the row is not a new message, or if the message needs no notification or is
 * too old.
 */
function notedOf({ table, key, entry }: WrittenRow, now: number): NotedMessage | null {
  if (table.table !== 'messages' || entry.image.length === 0) return null;
  const { date, editedAt, sender, kind, flags } = messageHeader(entry.image);
  if (kind === messageKinds.deleted || (flags & messageFlags.silent) !== 0) return null;
  if (now - date * 1_000 > storeLimits.push_age_ms_max || editedAt - date * 1_000 > edited_ms_max)
    return null;
  const [chat = 0, user = 0, message = 0] = key;
  return { chat, user, message, sender };
}

export function createNoter({ push, delayMs, time = systemTime, onError }: NoterOptions): Noter {
  const waiting = new Map<string, NotedMessage>();
  const stats = { noted: 0, dropped: 0 };
  /** Whether anyone had a push subscription at the last check. */
  let wanted = true;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let stopped = false;
  let noting: Promise<void> | undefined;
  let timer: Timer | undefined;
  let purgeTimer: Timer | undefined;

  const purge = shared(() => push.purge().catch(onError));

  async function look(): Promise<void> {
    if (time.monotonic() - lookedAt < look_interval_ms) return;
    wanted = await push.anybody();
    lookedAt = time.monotonic();
    if (!wanted) waiting.clear();
  }

  async function note(): Promise<void> {
    await look();
    while (waiting.size > 0) {
      const some = [...waiting].slice(0, messages_a_statement);
      for (const [name] of some) waiting.delete(name);
      await push.note(
        some.map(([, message]) => message),
        delayMs,
      );
      stats.noted += some.length;
    }
  }

  function arm(): void {
    if (stopped || noting !== undefined) return;
    timer ??= time
      .after(note_interval_ms, () => {
        timer = undefined;
        noting = note()
          .catch(onError)
          .finally(() => {
            noting = undefined;
            if (waiting.size > 0) arm();
          });
      })
      .unref();
  }

  return {
    stats,
    written(rows) {
      if (!wanted && time.monotonic() - lookedAt < look_interval_ms) return;
      const now = time.now();
      for (const row of rows) {
        try {
          const message = notedOf(row, now);
          if (message === null) continue;
          const name = chatText({ id: message.chat, user: message.user });
          const known = waiting.get(name);
          if (known !== undefined && known.message > message.message) continue;
          if (known === undefined && waiting.size >= limits.push_chats_waiting_max) stats.dropped++;
          else waiting.set(name, message);
        } catch (error) {
          onError(error);
        }
      }
      if (waiting.size > 0) arm();
    },
    start() {
      purgeTimer = time.every(purge_interval_ms, purge).unref();
    },
    async stop() {
      stopped = true;
      time.cancel(timer);
      time.cancel(purgeTimer);
      await Promise.all([noting, purge.running()]);
      await note().catch(onError);
    },
  };
}
