/** Loads messages by id from Redis or Postgres, for example pinned and replied-to messages. */
import { loadMessages } from '../../postgres/chats/chats.js';
import { messageKinds, unpackMessage } from './codec.js';
import type { StoreContext } from './context.js';
import type { ChatRef } from './keys.js';
import { relatedId, type StoredMessage } from './stored_message.js';

export type Records = ReturnType<typeof createRecords>;

export function createRecords({ shards, scripts, keys }: StoreContext) {
  /** Loads records. Omits ids without a message. Deleted messages may appear as tombstones. */
  async function read(chat: ChatRef, ids: readonly number[]): Promise<Map<number, Buffer>> {
    const found = new Map<number, Buffer>();
    if (ids.length === 0) return found;
    const partition = keys.partitions.of(chat.id);
    const at = { meta: keys.meta(partition), message: keys.messages(chat) };
    const args = { bytes: 0, ids: ids.map(String) };
    const { rows } = await scripts.call('messages/read_some', partition, at, args);
    const hot = rows as ReadonlyArray<Buffer | null>;
    const cold = ids.filter((_, i) => hot[i] === null);
    for (const [i, id] of ids.entries()) if (hot[i]) found.set(id, hot[i]);
    if (cold.length === 0) return found;
    for (const row of await loadMessages(shards.at(partition), chat.id, chat.user, cold)) {
      if (row.record) found.set(row.message_id, row.record);
    }
    return found;
  }

  return {
    read,
    /**
     * Returns messages of one chat, each with the message that it replies to or pins. Takes records from `known`, and
     * loads the missing records together.
     */
    async relate(chat: ChatRef, messages: readonly StoredMessage[], known: ReadonlyMap<number, Buffer>) {
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
