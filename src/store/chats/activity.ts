/** Sorts a person's chats by activity and counts unread messages. Reads only the heads of messages, not their content. */
import { limits } from '../../limits.js';
import { loadHeads, loadJoined, loadNewestHeads } from '../../postgres/chats/chats.js';
import { byShard } from '../../postgres/shards.js';
import { messageHeader, messageKinds } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';

export interface ActiveChat {
  readonly chat: ChatRef;
  /** date of the newest message; without messages, when the person joined; Unix time in seconds */
  readonly date: number;
}

export interface Activity {
  /**
   * Sorts a person's chats: latest date first, then the greater id first. Reads the heads of all of them, and counts
   * one additional call of the person per `limits.heads_per_call` chats. With `goingOn`, reuses an order made up to
   * `limits.chat_order_ms` ago, if this process still has it, so that later pages read no heads. Error:
   * `too_many_requests`.
   */
  order(user: number, chats: readonly ChatRef[], goingOn: boolean): Promise<readonly ActiveChat[]>;
  /** When the person joined a chat, Unix time in seconds; 0 if they are not a member. */
  joined(user: number, chat: ChatRef): Promise<number>;
  /** Counts messages of others after `mark` up to `newest`, among the latest `limits.unread_counted_max`. */
  countUnread(chat: ChatRef, newest: number, mark: number, user: number): Promise<number>;
}

/** Chats per script call. */
const chatsPerCall = 500;

/** `count` counts additional calls of a person. */
export function createActivity(
  { db, shards, scripts, keys }: StoreContext,
  count: (user: number, calls: number) => Promise<void> | undefined,
): Activity {
  /** Heads of the newest messages in Redis: '' for a chat without messages, null where only Postgres has it. */
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

  /** Dates by chat text, without the chats that are only in Postgres. */
  async function hotDates(chats: readonly ChatRef[]): Promise<Map<string, number>> {
    const byPartition = new Map<number, ChatRef[]>();
    for (const chat of chats) {
      const partition = keys.partitions.of(chat.id);
      const beside = byPartition.get(partition);
      if (beside === undefined) byPartition.set(partition, [chat]);
      else beside.push(chat);
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

  /** Recent orders by person, the newest last. */
  const orders = new Map<number, { readonly made: number; readonly order: readonly ActiveChat[] }>();
  let kept = 0;

  function forget(user: number): void {
    kept -= orders.get(user)?.order.length ?? 0;
    orders.delete(user);
  }

  function keep(user: number, order: readonly ActiveChat[]): void {
    forget(user);
    orders.set(user, { made: performance.now(), order });
    kept += order.length;
    for (const oldest of orders.keys()) {
      if (kept <= limits.chat_orders_kept_max) return;
      forget(oldest);
    }
  }

  function known(user: number, chats: readonly ChatRef[]): readonly ActiveChat[] | null {
    const found = orders.get(user);
    if (found === undefined || performance.now() - found.made > limits.chat_order_ms) return null;
    const present = new Set(chats.map(chatText));
    return found.order.filter(({ chat }) => present.has(chatText(chat)));
  }

  return {
    async order(user, chats, goingOn) {
      const former = goingOn ? known(user, chats) : null;
      if (former !== null) return former;
      const calls = Math.floor(chats.length / limits.heads_per_call);
      if (calls > 0) await count(user, calls);
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
      const order = chats
        .map((chat) => ({ chat, date: dates.get(chatText(chat)) ?? 0 }))
        .sort((a, b) => b.date - a.date || b.chat.id - a.chat.id);
      // Most people's chats fit one page, which needs no stored order.
      if (order.length > limits.page_size_default) keep(user, order);
      return order;
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
