/**
 * Stores the messages that bots are currently writing, keyed by chat. Such a draft ends when the bot sends a message, or
 * after some time.
 */
import { call, get } from '../api.js';
import { attempt } from '../failures.js';
import { Signal } from '../signal.js';
import type { MessageDraft } from '../types.js';

/** How long a draft is shown after its last change. The service uses the same time. */
const shown_ms = 30_000;

class BotDrafts extends Signal {
  readonly #byChat = new Map<number, { draft: MessageDraft; timer: ReturnType<typeof setTimeout> }>();

  of(chat: number): MessageDraft | null {
    return this.#byChat.get(chat)?.draft ?? null;
  }

  /** Ignores errors, because the stream delivers the next change of the draft. */
  async load(chat: number): Promise<void> {
    const before = this.of(chat);
    try {
      const { draft } = await get<{ draft?: MessageDraft }>(`/api/chats/${chat}/draft`);
      // Keeps the stored draft if the stream has changed it meanwhile.
      if (draft && this.of(chat) === before) this.show(chat, draft);
    } catch {}
  }

  show(chat: number, draft: MessageDraft): void {
    clearTimeout(this.#byChat.get(chat)?.timer);
    const timer = setTimeout(() => this.end(chat), shown_ms);
    this.#byChat.set(chat, { draft, timer });
    this.changed();
  }

  end(chat: number): void {
    clearTimeout(this.#byChat.get(chat)?.timer);
    if (this.#byChat.delete(chat)) this.changed();
  }

  /** Notes that the person stopped a draft, in this or another window. */
  stopped(chat: number, id: number, kept: boolean): void {
    const draft = this.of(chat);
    if (draft?.draft_id !== id) return;
    if (kept) this.show(chat, { ...draft, can_stop: false, stopped: true });
    else this.end(chat);
  }

  stop(chat: number, id: number): Promise<void> {
    return attempt(() => call('POST', `/api/chats/${chat}/draft/stop`, { draft_id: id }));
  }
}

export const botDrafts = new BotDrafts();
