/** Erases messages that are too old, and messages of deleted accounts. */
import { ruleLimits as limits } from '../../rules/limits.js';
import type { MessageRecord } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';
import type { ReadBack } from '../messages/read_back.js';

export interface Erased {
  readonly id: number;
  readonly record: Pick<MessageRecord, 'post' | 'date'>;
}

/**
 * Erases up to limits.messages_batch_max messages of a chat and their posts in one step. Clients that show the chat
 * reload it. Messages younger than `ageMs` stay in Redis. Returns the number of erased messages. Error:
 * `chat_not_found`.
 */
export type Erase = (chat: ChatRef, messages: readonly Erased[], ageMs?: number) => Promise<number>;

export function createErase({ scripts, keys }: StoreContext, readBack: ReadBack): Erase {
  return async (chat, messages, ageMs = 0) => {
    if (messages.length > limits.messages_batch_max)
      throw new RangeError(`batch of ${messages.length} messages is too large`);
    const partition = keys.partitions.of(chat.id);
    const record = keys.chat(chat);
    const at = {
      ...{ meta: keys.meta(partition), journal: keys.journal(partition) },
      ...{ chat: record, ticket: keys.ticket(record) },
      ...{ changes: keys.changes(chat), channel: keys.chatChannel(chat) },
      ...{ message: keys.messages(chat), post: keys.postRoot(partition), acted: keys.actedRoot(partition) },
    };
    const items = messages.flatMap(({ id, record: { post, date } }) => [
      String(id),
      post === 0 ? '' : String(post),
      String(date),
    ]);
    const result = await readBack.complete({ chat, who: { id: 0, isBot: false } }, (token) =>
      scripts.call('messages/erase', partition, at, {
        ...{ chat: chatText(chat), age_ms: ageMs, token, items },
      }),
    );
    return result.erased;
  };
}
