/** Shows bots' drafts on event streams (decision 0061). The drafts are sent in hints. */
import type { Time, Timer } from '../../time.js';
import { type ChatRef, chatText } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

/** The prefixes of hints about drafts. These hints carry the data, because a draft changes nothing in the chat. */
const draftHint = 'draft ';
const stoppedHint = 'draft_stopped ';

export interface MessageDraft {
  readonly draft_id: number;
  /** The id of the last message before the draft. The bot's next message replaces the draft. */
  readonly after_message_id: number;
  readonly can_stop: boolean;
  readonly stopped: boolean;
  /**
   * The text of the draft. Empty until the bot has written text, and after a stop, unless the bot keeps the stopped
   * draft.
   */
  readonly text: string;
  readonly entities?: readonly unknown[];
}

export interface StoppedDraft {
  readonly draft_id: number;
  /** Whether the stopped draft stays visible. */
  readonly kept: boolean;
}

/** Builds a draft from its fields in Redis (`lua/lib/draft.lua`). */
export const draftOf = (
  id: string,
  after: string,
  flags: string,
  stopped: boolean,
  content: string,
): MessageDraft => ({
  draft_id: Number(id),
  after_message_id: Number(after),
  can_stop: flags.includes('s') && !stopped,
  stopped,
  ...(content === '' ? { text: '' } : JSON.parse(content)),
});

/** Reads a hint. Returns null if the hint is not about a draft. */
export function readDraftHint(hint: string): (() => MessageDraft) | StoppedDraft | null {
  if (hint.startsWith(stoppedHint)) {
    const [id, kept] = hint.slice(stoppedHint.length).split(' ');
    return { draft_id: Number(id), kept: kept === 'k' };
  }
  if (!hint.startsWith(draftHint)) return null;
  const parts = /^(-?\d+) (\d+) -(\w*) /.exec(hint.slice(draftHint.length)) as RegExpExecArray;
  const [head, id, after, flags] = parts as unknown as [string, string, string, string];
  // Most drafts are replaced before a stream shows them, so a draft is parsed only when it is shown.
  return () => draftOf(id, after, flags, false, hint.slice(draftHint.length + head.length));
}

interface Paused {
  timer: Timer | undefined;
  next: (() => MessageDraft) | null;
}

/**
 * Shows at most one draft of a chat per `draft_show_interval_ms`, and none until the client has read the previous
 * draft. A newer draft replaces a pending one. A slow client therefore gets fewer drafts instead of being disconnected.
 */
export class DraftPace {
  readonly #time: Time;
  readonly #show: (chat: ChatRef, draft: MessageDraft) => Promise<void>;
  readonly #paused = new Map<string, Paused>();

  /** `show` resolves when the client can take another draft. It never rejects. */
  constructor(time: Time, show: (chat: ChatRef, draft: MessageDraft) => Promise<void>) {
    this.#time = time;
    this.#show = show;
  }

  take(chat: ChatRef, draft: () => MessageDraft): void {
    const paused = this.#paused.get(chatText(chat));
    if (paused === undefined) this.#showNow(chat, draft);
    else paused.next = draft;
  }

  /** Discards the pending draft. */
  drop(chat: ChatRef): void {
    const paused = this.#paused.get(chatText(chat));
    if (paused !== undefined) paused.next = null;
  }

  end(): void {
    for (const { timer } of this.#paused.values()) this.#time.cancel(timer);
    this.#paused.clear();
  }

  #showNow(chat: ChatRef, draft: () => MessageDraft): void {
    const paused: Paused = { timer: undefined, next: null };
    this.#paused.set(chatText(chat), paused);
    const shown = this.#show(chat, draft());
    paused.timer = this.#time.after(limits.draft_show_interval_ms, () => {
      void shown.then(() => this.#resume(chat, paused));
    });
  }

  #resume(chat: ChatRef, paused: Paused): void {
    // Shows nothing after `end`, which removes all chats from `#paused`.
    if (this.#paused.get(chatText(chat)) !== paused) return;
    this.#paused.delete(chatText(chat));
    if (paused.next !== null) this.#showNow(chat, paused.next);
  }
}
