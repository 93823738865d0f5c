/**
 * The management bot: handles its updates, which a delivery worker passes to it under the bot's lease, and sends
 * notices.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { nowSeconds } from '../clock.js';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import type { Profile } from '../store/core/codec.js';
import { isDirect } from '../store/core/keys.js';
import { botProfile } from '../store/core/profiles.js';
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

export interface Manager {
  /** Id of the management bot. */
  readonly bot: number;
  /** Handles one update. Repeating it changes nothing twice. Rejects when the update must be retried. */
  handle(update: UpdateEntry): Promise<void>;
  /** Starts sending notices. */
  start(): void;
  stop(): Promise<void>;
}

export interface ManagerOptions {
  readonly store: Store;
  /** Id of the management bot. */
  readonly bot: number;
  /** Receives unexpected errors. */
  readonly onError: (error: unknown) => void;
}

const noticesEveryMs = 1_000;
/** The longest pause while there are no notices. */
const noticesEveryMsMax = 4_000;

/** The person cannot get the message: they blocked the bot or no longer exist. */
const unheard = (error: unknown): boolean =>
  error instanceof ApiError && ['bot_blocked', 'cant_initiate', 'chat_not_found'].includes(error.kind);

const passing = (error: unknown): boolean =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'too_many_requests');

export function createManager({ store, bot: id, onError }: ManagerOptions): Manager {
  async function profileOf(language: string | null): Promise<Profile> {
    const found = await store.bots.profile(id, language);
    return found ?? botProfile({ id, name: '', username: '', names: {} });
  }

  /** Performs the action of an update. A refusal becomes a text for the person. */
  async function replyTo(turn: Turn, update: UpdateEntry, username: string): Promise<Reply> {
    try {
      if (update.press) return await onPress(turn, update.press.data);
      return await onMessage(turn, update.message.record.content.text ?? null, username);
    } catch (error) {
      if (!(error instanceof ApiError)) onError(error);
      const key = error instanceof ApiError ? refusalText(error.kind) : 'failed';
      return update.press ? { alert: { key } } : { screen: { key } };
    }
  }

  async function put(place: Place, update: UpdateEntry, { screen, also, alert }: Reply): Promise<void> {
    if (screen && update.press) await show(place, update.press.message_id, screen);
    else if (screen) await say(place, 'say', screen);
    if (also) await say(place, 'also', also);
    if (!update.press) return;
    const { t, under } = place;
    const text = alert === undefined ? {} : { text: contentOf(t, alert).text, show_alert: true };
    const answer = { callback_query_id: update.id, show_alert: false, ...text };
    await under('answer')
      .callbacks.answer(id, update.id, answer)
      .catch((error: unknown) => {
        // The press has expired, so its answer is not needed.
        if (!(error instanceof ApiError) || error.kind !== 'query_too_old') throw error;
      });
  }

  async function converse(update: UpdateEntry): Promise<void> {
    const { chat } = update.message;
    const user = await store.users.find(chat.user);
    if (user === null) return;
    const { shownId } = update;
    const under = (step: string) => store.under(`manage.${id}.${shownId}.${step}`, true, 'answer');
    const t = texts[languageOf(user.languageCode)];
    const bot = await profileOf(user.languageCode);
    const place: Place = { store, bot, chat, t, under };
    let before: Talk;
    try {
      before = (await store.management.begin<Talk>(user.id, shownId)) ?? nothing;
    } catch (error) {
      if (!passing(error)) throw error;
      // Postgres is away. Tell the person now instead of leaving them without an answer.
      return put(place, update, update.press ? { alert: { key: 'later' } } : { screen: { key: 'later' } });
    }
    const turn: Turn = { user, t, now: nowSeconds(), talk: before, store, under };
    const reply = await replyTo(turn, update, bot.u ?? '');
    if (reply.next !== undefined) await store.management.end(user.id, shownId, before, reply.next);
    await put(place, update, reply);
  }

  async function handle(update: UpdateEntry): Promise<void> {
    const { chat } = update.message;
    if (!isDirect(chat)) {
      // The bot talks only in direct chats, so it leaves groups.
      await store.chats.putMember(chat, { id, is_bot: true }, 'left', {}).catch((error: unknown) => {
        if (!(error instanceof ApiError) || passing(error)) throw error;
      });
      return;
    }
    if (update.kind !== 'message' && update.kind !== 'callback_query') return;
    await converse(update).catch((error: unknown) => {
      if (passing(error)) throw error;
      // A permanent error must not block the person's later messages.
      if (!unheard(error)) onError(error);
    });
  }

  const stopping = new AbortController();
  let telling: Promise<void> | undefined;

  async function tell(): Promise<void> {
    let everyMs = noticesEveryMs;
    while (!stopping.signal.aborted) {
      try {
        const sent = await store.notices.sendDue(() => profileOf(null), noticeMessage);
        if (sent === limits.notices_batch_max) continue;
        everyMs = sent === 0 ? Math.min(noticesEveryMsMax, everyMs * 2) : noticesEveryMs;
      } catch (error) {
        onError(error);
      }
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    bot: id,
    handle,
    start() {
      telling ??= tell();
    },
    async stop() {
      stopping.abort();
      await telling;
    },
  };
}
