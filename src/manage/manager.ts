/**
 * Runs the management bot. It sends notices, and handles updates that a delivery worker passes to it while the worker
 * holds the bot's lease.
 */

import { ApiError } from '../errors.js';
import type { Profile } from '../store/core/codec.js';
import { isDirect } from '../store/core/keys.js';
import { botProfile } from '../store/core/profiles.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { UpdateEntry } from '../store/updates/queues.js';
import { onMessage } from './messages.js';
import { noticeMessage } from './notices.js';
import { onPress } from './presses.js';
import { refusalText } from './refusals.js';
import { nothing, type Talk } from './talk.js';
import { languageOf, texts } from './texts.js';
import { type Place, type Reply, say, show, type Turn } from './turn.js';
import { contentOf } from './words.js';

export interface ManagerOptions {
  readonly store: Store;
  readonly bot: number;
  readonly onError: (error: unknown) => void;
}

const noticesEveryMs = 1_000;
const noticesEveryMsMax = 4_000;

/** Returns whether the person can never get the message, because they blocked the bot or no longer exist. */
const cannotBeSent = (error: unknown): boolean =>
  error instanceof ApiError && ['bot_blocked', 'cant_initiate', 'chat_not_found'].includes(error.kind);

const passing = (error: unknown): boolean =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'too_many_requests');

export class Manager {
  readonly bot: number;
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  #sending: Promise<void> | undefined;

  constructor({ store, bot, onError }: ManagerOptions) {
    this.bot = bot;
    this.#store = store;
    this.#onError = onError;
  }

  async #profileOf(language: string | null): Promise<Profile> {
    const found = await this.#store.bots.profile(this.bot, language);
    return found ?? botProfile({ id: this.bot, name: '', username: '', names: {} });
  }

  /** Performs the action that an update asks for. If the action is refused, replies with the reason. */
  async #replyTo(turn: Turn, update: UpdateEntry, username: string): Promise<Reply> {
    try {
      if (update.press) return await onPress(turn, update.press.data);
      return await onMessage(turn, update.message.record.content.text ?? null, username);
    } catch (error) {
      if (!(error instanceof ApiError)) this.#onError(error);
      const key = error instanceof ApiError ? refusalText(error.kind) : 'failed';
      return update.press ? { alert: { key } } : { screen: { key } };
    }
  }

  async #put(place: Place, update: UpdateEntry, { screen, also, alert }: Reply): Promise<void> {
    if (screen && update.press) await show(place, update.press.message_id, screen);
    else if (screen) await say(place, 'say', screen);
    if (also) await say(place, 'also', also);
    if (!update.press) return;
    const { t, under } = place;
    const text = alert === undefined ? {} : { text: contentOf(t, alert).text, show_alert: true };
    const answer = { callback_query_id: update.id, show_alert: false, ...text };
    await under('answer')
      .callbacks.answer(this.bot, update.id, answer)
      .catch((error: unknown) => {
        // Ignores that the press has expired, because an expired press needs no answer.
        if (!(error instanceof ApiError) || error.kind !== 'query_too_old') throw error;
      });
  }

  async #converse(update: UpdateEntry): Promise<void> {
    const store = this.#store;
    const { chat } = update.message;
    const user = await store.users.find(chat.user);
    if (user === null) return;
    const { shownId } = update;
    const under = (step: string) => store.under(`manage.${this.bot}.${shownId}.${step}`, true, 'answer');
    const t = texts[languageOf(user.languageCode)];
    const bot = await this.#profileOf(user.languageCode);
    const place: Place = { store, bot, chat, t, under };
    let before: Talk;
    try {
      before = (await store.management.begin<Talk>(user.id, shownId)) ?? nothing;
    } catch (error) {
      if (!passing(error)) throw error;
      // Tells the person to try later. Otherwise the person would get no answer while Postgres is unavailable.
      return this.#put(
        place,
        update,
        update.press ? { alert: { key: 'later' } } : { screen: { key: 'later' } },
      );
    }
    const turn: Turn = { user, t, now: store.time.nowSeconds(), talk: before, store, under };
    const reply = await this.#replyTo(turn, update, bot.u ?? '');
    if (reply.next !== undefined) await store.management.end(user.id, shownId, before, reply.next);
    await this.#put(place, update, reply);
  }

  /** Handles one update. Handling the same update again repeats no change. Rejects if the update must be retried. */
  async handle(update: UpdateEntry): Promise<void> {
    const { chat } = update.message;
    if (!isDirect(chat)) {
      // The bot talks only in direct chats, so it leaves groups.
      await this.#store.chats
        .putMember(chat, { id: this.bot, is_bot: true }, 'left', {})
        .catch((error: unknown) => {
          if (!(error instanceof ApiError) || passing(error)) throw error;
        });
      return;
    }
    if (update.kind !== 'message' && update.kind !== 'callback_query') return;
    await this.#converse(update).catch((error: unknown) => {
      if (passing(error)) throw error;
      // Reports a permanent error instead of throwing it. Otherwise this update would be retried and would block the
      // person's later messages.
      if (!cannotBeSent(error)) this.#onError(error);
    });
  }

  async #sendNotices(): Promise<void> {
    const { signal } = this.#stopping;
    const { time } = this.#store;
    let everyMs = noticesEveryMs;
    while (!signal.aborted) {
      try {
        const sent = await this.#store.notices.sendDue(() => this.#profileOf(null), noticeMessage);
        if (sent === limits.notices_batch_max) continue;
        everyMs = sent === 0 ? Math.min(noticesEveryMsMax, everyMs * 2) : noticesEveryMs;
      } catch (error) {
        this.#onError(error);
      }
      await time.sleep(time.untilNext(everyMs), { signal });
    }
  }

  start(): void {
    this.#sending ??= this.#sendNotices();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#sending;
  }
}
