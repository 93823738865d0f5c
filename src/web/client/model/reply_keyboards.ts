/** Stores for each open chat the message whose reply keyboard is shown to the person. */
import { get } from '../api.js';
import { Signal } from '../signal.js';
import type { Message } from '../types.js';

const chats_max = 30;

class ReplyKeyboards extends Signal {
  readonly #byChat = new Map<number, Message | null>();
  /** The newest unfinished load of each chat. Answers of older loads are ignored. */
  readonly #loads = new Map<number, object>();

  /** Returns the message that shows or removes a keyboard or asks for a reply, or null if no such message is loaded. */
  of(chat: number): Message | null {
    return this.#byChat.get(chat) ?? null;
  }

  /** Ignores errors, because the keyboard is loaded again when the chat is opened again. */
  async load(chat: number): Promise<void> {
    const load = {};
    this.#loads.set(chat, load);
    try {
      const { message } = await get<{ message?: Message }>(`/api/chats/${chat}/reply_keyboard`);
      if (this.#loads.get(chat) === load) this.#set(chat, message ?? null);
    } catch {
    } finally {
      if (this.#loads.get(chat) === load) this.#loads.delete(chat);
    }
  }

  /**
   * Takes the keyboard of a new message. If the keyboard is only for selected members of a group, asks the service
   * whether the person sees it.
   */
  take(message: Message): void {
    const { chat, reply_keyboard, message_id } = message;
    if (!reply_keyboard || message_id < (this.of(chat.id)?.message_id ?? 0)) return;
    // If the keyboard is already being loaded, loads it once more, because the first answer may be older than this
    // message.
    const isLoading = this.#loads.has(chat.id);
    if (!isLoading && !this.#byChat.has(chat.id)) return;
    if (isLoading || (reply_keyboard.selective && chat.type === 'group')) void this.load(chat.id);
    else this.#set(chat.id, message);
  }

  /**
   * If the message with the shown keyboard was deleted, loads the keyboard of the chat again. Only the service knows
   * which keyboard is shown next.
   */
  forget(chat: number, messageId: number): void {
    if (this.of(chat)?.message_id === messageId) void this.load(chat);
  }

  #set(chat: number, message: Message | null): void {
    this.#byChat.delete(chat);
    this.#byChat.set(chat, message);
    const [oldest] = this.#byChat.keys();
    if (this.#byChat.size > chats_max && oldest !== undefined) this.#byChat.delete(oldest);
    this.changed();
  }
}

export const replyKeyboards = new ReplyKeyboards();
