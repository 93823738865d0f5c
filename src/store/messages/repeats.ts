/**
 * Finds changes that an earlier attempt of a call with an idempotency key already made. Scripts recognise repeated
 * requests themselves. But some repeated calls cannot reach the script, because their input may no longer exist, for
 * example the source of a forward, an upload, or an edited post.
 */
import type { Chats } from '../chats/chats.js';
import { unpackMessage } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, parseChat } from '../core/keys.js';
import type { Records } from '../core/records.js';
import type { StoredMessage } from '../core/stored_message.js';

/**
 * The input of a change: a value, or a function that returns the value. The function is called only if no earlier
 * attempt made the change.
 */
export type Given<T> = T | (() => T | Promise<T>);

export const isLookUp = <T>(given: Given<T>): given is () => T | Promise<T> => typeof given === 'function';

export type Repeats = ReturnType<typeof createRepeats>;

/**
 * Creates functions that look up what an earlier attempt did. Each returns null if no earlier attempt made the change.
 * Only repeated calls cost a round trip.
 */
export function createRepeats(
  { scripts, keys, again, durable }: StoreContext,
  chats: Chats,
  records: Records,
) {
  async function recall(partition: number, request: string) {
    if (!again) return null;
    const at = { request: keys.request(partition, request) };
    const known = await scripts.call('idempotency/recall', partition, at, {});
    return known.status === 'ok' ? known : null;
  }

  /** Converts records to messages. Adds the chat's current profile, and the replied-to messages. */
  async function show(chat: ChatRef, made: ReadonlyMap<number, Buffer>): Promise<StoredMessage[]> {
    const state = await chats.find(chat);
    if (!state) return [];
    const messages = [...made].map(([id, bytes]) => ({
      ...{ chat, id, record: unpackMessage(bytes), peer: state.profile, reply: null },
    }));
    return records.relate(chat, messages, made);
  }

  return {
    /** Returns the message that the request sent, in its original state. */
    async sent(chat: ChatRef, request: string): Promise<StoredMessage | null> {
      const known = await recall(keys.partitions.of(chat.id), request);
      if (!known?.record) return null;
      const [message] = await show(chat, new Map([[Number.parseInt(known.answer, 10), known.record]]));
      return message ?? null;
    },
    /** Returns the messages that the request sent, as they are now. `messages` omits deleted messages. */
    async sentMany(chat: ChatRef, request: string) {
      const known = await recall(keys.partitions.of(chat.id), request);
      if (!known) return null;
      const [first = 0, , , count = 0] = known.answer.split(' ').map(Number);
      const ids = Array.from({ length: count }, (_, i) => first + i);
      return { ids, messages: await show(chat, await records.read(chat, ids)) };
    },
    /**
     * Returns the chat and the message id of the post to which the request reacted. The post may have been deleted
     * since then.
     */
    reacted: (
      partition: number,
      request: string,
    ): null | Promise<{ readonly chat: ChatRef; readonly messageId: number } | null> =>
      again
        ? recall(partition, request).then((known) => {
            if (!known) return null;
            const [chat = '', messageId] = known.answer.split(' ');
            return { chat: parseChat(chat), messageId: Number(messageId) };
          })
        : null,
    /**
     * Returns the message that the request edited, as it was after the edit. For a durable call, returns null if the
     * edit became pending, because only the script can tell whether the edit is stored by now.
     */
    async edited(partition: number, request: string): Promise<StoredMessage | null> {
      const known = await recall(partition, request);
      if (!known?.record) return null;
      const [name = '', id, pending] = known.answer.split(' ');
      if (pending && durable) return null;
      const [message] = await show(parseChat(name), new Map([[Number(id), known.record]]));
      return message ?? null;
    },
  };
}
