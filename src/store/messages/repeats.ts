/**
 * What a former run of a call under an idempotency key did already. Scripts recognise a repeated request themselves; here
 * is the way for changes that are made from what must be looked up first, and may be gone by now: the source of a forward,
 * an upload, the post that is edited.
 */
import type { Chats } from '../chats/chats.js';
import { unpackMessage } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, parseChat } from '../core/keys.js';
import type { Records } from '../core/records.js';
import type { StoredMessage } from '../core/stored_message.js';

/** What a change is made of: given, or looked up once it is known that the change is still to be made. */
export type Given<T> = T | (() => T | Promise<T>);

export const isLookUp = <T>(given: Given<T>): given is () => T | Promise<T> => typeof given === 'function';

/** Each is null when no former run applied the request. Only a call that runs again costs a round trip, or waits at all. */
export interface Repeats {
  /** The message that the request put into a chat, as it was made. */
  sent(chat: ChatRef, request: string): Promise<StoredMessage | null>;
  /** The messages that the request put there, as they are now; deleted ones are left out of `messages`. */
  sentMany(
    chat: ChatRef,
    request: string,
  ): Promise<{ readonly ids: readonly number[]; readonly messages: readonly StoredMessage[] } | null>;
  /** Where the post stands, or stood, that the request reacted to. */
  reacted(
    partition: number,
    request: string,
  ): null | Promise<{ readonly chat: ChatRef; readonly messageId: number } | null>;
  /** The message that the request edited, as the edit left it. */
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

  /** As one sees them now who reads the chat. */
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
