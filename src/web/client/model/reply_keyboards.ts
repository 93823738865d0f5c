/** Stores for each open chat the message whose reply keyboard the person sees. */
import { get } from '../api.js';
import { Signal } from '../signal.js';
import type { Message } from '../types.js';

const chats_max = 30;

class ReplyKeyboards extends Signal {
  readonly #byChat = new Map<number, Message | null>();

  /** Returns the message that shows or removes a keyboard or asks for a reply, or null if none is loaded. */
  of(chat: number): Message | null {
    return this.#byChat.get(chat) ?? null;
  }

  /** Ignores errors. The keyboard is loaded again when the chat is opened again. */
  async load(chat: number): Promise<void> {
    const before = this.of(chat);
    try {
      const { message } = await get<{ message?: Message }>(`/api/chats/${chat}/reply_keyboard`);
      // Keeps a keyboard that arrived from the stream in the meantime.
      if (this.of(chat) === before) this.#set(chat, message ?? null);
    } catch {}
  }

  /** Takes the keyboard of a new message. Only the service knows whether the person sees a selective keyboard. */
  take(message: Message): void {
    const { chat, reply_keyboard, message_id } = message;
    const isOpen = this.#byChat.has(chat.id);
    if (!reply_keyboard || !isOpen || message_id < (this.of(chat.id)?.message_id ?? 0)) return;
    if (reply_keyboard.selective && chat.type === 'group') void this.load(chat.id);
    else this.#set(chat.id, message);
  }

  /** Removes the keyboard of a deleted message. The service returns the keyboard that is then shown. */
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
