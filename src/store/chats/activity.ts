/** The order of a person's chats, and how many messages wait in each: from the heads of messages, whose content stays unread. */
import { limits } from '../../limits.js';
import { loadHeads, loadJoined, loadNewestHeads } from '../../postgres/chats/chats.js';
import { byShard } from '../../postgres/shards.js';
import { messageHeader, messageKinds } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';

export interface ActiveChat {
  readonly chat: ChatRef;
  /** of its newest message, or where it has none when the person joined, Unix time in seconds */
  readonly date: number;
}

export interface Activity {
  /** These chats of a person, the latest date first; of one second the greater id first. */
  order(user: number, chats: readonly ChatRef[]): Promise<ActiveChat[]>;
  /** When the person came into a chat, Unix time in seconds; 0 for one that they are not in. */
  joined(user: number, chat: ChatRef): Promise<number>;
  /** Messages of others behind `mark` and up to `newest`, among the latest `limits.unread_counted_max`. */
  countUnread(chat: ChatRef, newest: number, mark: number, user: number): Promise<number>;
}

/** Chats that one script looks at. */
const chatsPerCall = 500;

export function createActivity({ db, shards, scripts, keys }: StoreContext): Activity {
  /** Heads of the newest messages in Redis: '' for a chat without messages, null where Postgres must be asked. */
  async function hotHeads(partition: number, chats: readonly ChatRef[]): Promise<Array<Buffer | null>> {
    const found = await scripts.call(
      'chats/read_activity',
      partition,
      {
        meta: keys.meta(partition),
        chat: keys.chatRoot(partition),
        message: keys.messageRoot(partition),
      },
      { chats: chats.map(chatText) },
    );
    return found.heads as Array<Buffer | null>;
  }

  const dateOf = (head: Buffer | null | undefined): number =>
    head && head.length > 0 ? messageHeader(head).date : 0;

  /** By chat text; chats that only Postgres knows are missing. */
  async function hotDates(chats: readonly ChatRef[]): Promise<Map<string, number>> {
    const byPartition = new Map<number, ChatRef[]>();
    for (const chat of chats) {
      const partition = keys.partitions.of(chat.id);
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), chat]);
    }
    const dates = new Map<string, number>();
    const pieces = [...byPartition].flatMap(([partition, all]) =>
      Array.from({ length: Math.ceil(all.length / chatsPerCall) }, (_, i) => ({
        partition,
        piece: all.slice(i * chatsPerCall, (i + 1) * chatsPerCall),
      })),
    );
    await Promise.all(
      pieces.map(async ({ partition, piece }) => {
        const heads = await hotHeads(partition, piece);
        for (const [i, chat] of piece.entries()) {
          const head = heads[i];
          if (head) dates.set(chatText(chat), dateOf(head));
        }
      }),
    );
    return dates;
  }

  return {
    async order(user, chats) {
      const dates = await hotDates(chats);
      const cold = chats.filter((chat) => !dates.has(chatText(chat)));
      if (cold.length > 0)
        await Promise.all(
          [...byShard(shards, cold, (chat) => keys.partitions.of(chat.id))].map(async ([shard, own]) => {
            for (const { chat_id, user_id, head } of await loadNewestHeads(shard.db, own))
              dates.set(chatText({ id: chat_id, user: user_id }), dateOf(head));
          }),
        );
      const empty = chats.filter((chat) => !dates.get(chatText(chat)));
      if (empty.length > 0) {
        const joined = await loadJoined(db, user, empty);
        for (const chat of empty) dates.set(chatText(chat), joined.get(chat.id) ?? 0);
      }
      return chats
        .map((chat) => ({ chat, date: dates.get(chatText(chat)) ?? 0 }))
        .sort((a, b) => b.date - a.date || b.chat.id - a.chat.id);
    },
    joined: async (user, chat) => (await loadJoined(db, user, [chat])).get(chat.id) ?? 0,
    async countUnread(chat, newest, mark, user) {
      const first = Math.max(mark + 1, newest - limits.unread_counted_max + 1, 1);
      const ids = Array.from({ length: Math.max(0, newest - first + 1) }, (_, i) => first + i);
      if (ids.length === 0) return 0;
      const partition = keys.partitions.of(chat.id);
      const { heads } = await scripts.call(
        'messages/read_heads',
        partition,
        { meta: keys.meta(partition), message: keys.messages(chat) },
        { ids: ids.map(String) },
      );
      const hot = heads as Array<Buffer | null>;
      const cold = ids.filter((_, i) => hot[i] === null);
      const all = hot.filter((head) => head !== null);
      if (cold.length > 0) all.push(...(await loadHeads(shards.of(partition).db, chat.id, chat.user, cold)));
      return all
        .map(messageHeader)
        .filter(({ kind, sender }) => kind !== messageKinds.deleted && sender !== user).length;
    },
  };
}
