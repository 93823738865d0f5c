/**
 * Finds what an earlier run of a call under an idempotency key already did. Scripts recognise repeated requests
 * themselves. These lookups are for changes whose input may be gone by now: the source of a forward, an upload, an
 * edited post.
 */
import type { Chats } from '../chats/chats.js';
import { unpackMessage } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, parseChat } from '../core/keys.js';
import type { Records } from '../core/records.js';
import type { StoredMessage } from '../core/stored_message.js';

/** The input of a change: a value, or a function called only if the change was not made yet. */
export type Given<T> = T | (() => T | Promise<T>);

export const isLookUp = <T>(given: Given<T>): given is () => T | Promise<T> => typeof given === 'function';

/**
 * Results of an earlier run. Each function returns null if no earlier run applied the request. Only repeated calls
 * cost a round trip.
 */
export interface Repeats {
  /** The message that the request sent, as it was created. */
  sent(chat: ChatRef, request: string): Promise<StoredMessage | null>;
  /** The messages that the request sent, in their current state. `messages` omits deleted ones. */
  sentMany(
    chat: ChatRef,
    request: string,
  ): Promise<{ readonly ids: readonly number[]; readonly messages: readonly StoredMessage[] } | null>;
  /** The chat and message of the post that the request reacted to. The post may be deleted by now. */
  reacted(
    partition: number,
    request: string,
  ): null | Promise<{ readonly chat: ChatRef; readonly messageId: number } | null>;
  /** The message that the request edited, as it was after the edit. */
  edited(partition: number, request: string): Promise<StoredMessage | null>;
}

export function createRepeats(
  { scripts, keys, again }: StoreContext,
  chats: Chats,
  records: Records,
): Repeats {
  async function recall(partition: number, request: string) {
    if (!again) return null;
    const at = { request: keys.request(partition, request) };
    const known = await scripts.call('idempotency/recall', partition, at, {});
    return known.status === 'ok' ? known : null;
  }

  /** Converts records to messages with the chat's current profile and their replied messages. */
  async function show(chat: ChatRef, made: ReadonlyMap<number, Buffer>): Promise<StoredMessage[]> {
    const state = await chats.find(chat);
    if (!state) return [];
    const messages = [...made].map(([id, bytes]) => ({
      ...{ chat, id, record: unpackMessage(bytes), peer: state.profile, reply: null },
    }));
    return records.relate(chat, messages, made);
  }

  return {
    async sent(chat, request) {
      const known = await recall(keys.partitions.of(chat.id), request);
      if (!known?.record) return null;
      const [message] = await show(chat, new Map([[Number.parseInt(known.answer, 10), known.record]]));
      return message ?? null;
    },
    async sentMany(chat, request) {
      const known = await recall(keys.partitions.of(chat.id), request);
      if (!known) return null;
      const [first = 0, , , count = 0] = known.answer.split(' ').map(Number);
      const ids = Array.from({ length: count }, (_, i) => first + i);
      return { ids, messages: await show(chat, await records.read(chat, ids)) };
    },
    reacted: (partition, request) =>
      again
        ? recall(partition, request).then((known) => {
            if (!known) return null;
            const [chat = '', messageId] = known.answer.split(' ');
            return { chat: parseChat(chat), messageId: Number(messageId) };
          })
        : null,
    async edited(partition, request) {
      const known = await recall(partition, request);
      if (!known?.record) return null;
      const [name = '', id] = known.answer.split(' ');
      const [message] = await show(parseChat(name), new Map([[Number(id), known.record]]));
      return message ?? null;
    },
  };
}
