/** Reads messages by id, from Redis or Postgres, for example those that others reply to or pin. */
import { loadMessages } from '../../postgres/chats/chats.js';
import { messageKinds, unpackMessage } from './codec.js';
import type { StoreContext } from './context.js';
import type { ChatRef } from './keys.js';
import { relatedId, type StoredMessage } from './stored_message.js';

export interface Records {
  /** Reads records by message id. Ids without a message are omitted; deleted messages may appear as tombstones. */
  read(chat: ChatRef, ids: readonly number[]): Promise<ReadonlyMap<number, Buffer>>;
  /**
   * Adds to messages of one chat the messages that they reply to or pin. `known` contains records already read. Reads
   * at most once, and not at all if no message refers to another.
   */
  relate(
    chat: ChatRef,
    messages: readonly StoredMessage[],
    known: ReadonlyMap<number, Buffer>,
  ): Promise<StoredMessage[]>;
}

export function createRecords({ shards, scripts, keys }: StoreContext): Records {
  async function read(chat: ChatRef, ids: readonly number[]): Promise<Map<number, Buffer>> {
    const found = new Map<number, Buffer>();
    if (ids.length === 0) return found;
    const partition = keys.partitions.of(chat.id);
    const { rows } = await scripts.call(
      'messages/read_some',
      partition,
      { meta: keys.meta(partition), message: keys.messages(chat) },
      { ids: ids.map(String) },
    );
    const hot = rows as ReadonlyArray<Buffer | null>;
    const cold = ids.filter((_, i) => hot[i] === null);
    for (const [i, id] of ids.entries()) if (hot[i]) found.set(id, hot[i]);
    if (cold.length === 0) return found;
    for (const row of await loadMessages(shards.of(partition).db, chat.id, chat.user, cold)) {
      if (row.record) found.set(row.message_id, row.record);
    }
    return found;
  }

  return {
    read,
    async relate(chat, messages, known) {
      const wanted = new Set(messages.map(({ record }) => relatedId(record)).filter((id) => id !== 0));
      if (wanted.size === 0) return [...messages];
      const missing = [...wanted].filter((id) => !known.has(id));
      const loaded = await read(chat, missing);
      return messages.map((message) => {
        const id = relatedId(message.record);
        const bytes = known.get(id) ?? loaded.get(id);
        if (bytes === undefined) return message;
        const record = unpackMessage(bytes);
        return record.kind === messageKinds.deleted ? message : { ...message, reply: { id, record } };
      });
    },
  };
}
