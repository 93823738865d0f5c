/** Sorts a person's chats by activity, and counts unread messages. Loads only the headers of messages. */

import { loadHeads, loadJoined, loadNewestHeads } from '../../postgres/chats/chats.js';
import { postgresLimits } from '../../postgres/limits.js';
import { byShard } from '../../postgres/shards.js';
import { ruleLimits } from '../../rules/limits.js';
import { messageHeader, messageKinds } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { groupBy, piecesOf } from '../core/groups.js';
import { type ChatRef, chatText } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

export interface ActiveChat {
  readonly chat: ChatRef;
  /**
   * The date of the newest message. If the chat has no messages, the date on which the person joined. Unix time in
   * seconds.
   */
  readonly date: number;
  /** The id of the newest message, even if this message was deleted. 0 in a chat without messages. */
  readonly newest: number;
}

interface Newest {
  /** Null if the message is only in Postgres. */
  readonly date: number | null;
  readonly id: number;
}

const noMessage: Newest = { date: 0, id: 0 };

const chatsPerCall = 500;

const dateOf = (head: Buffer | null | undefined): number =>
  head && head.length > 0 ? messageHeader(head).date : 0;

async function hotMessages({ scripts, keys }: StoreContext, chats: readonly ChatRef[]) {
  const found = new Map<string, Newest>();
  const pieces = [...groupBy(chats, ({ id }) => keys.partitions.of(id))].flatMap(([partition, all]) =>
    piecesOf(all, chatsPerCall).map((piece) => ({ partition, piece })),
  );
  await Promise.all(
    pieces.map(async ({ partition, piece }) => {
      const at = {
        meta: keys.meta(partition),
        chat: keys.chatRoot(partition),
        message: keys.messageRoot(partition),
      };
      const args = { chats: piece.map(chatText) };
      const { rows } = await scripts.call('chats/read_activity', partition, at, args);
      for (const [i, row] of (rows as Array<[id: Buffer, head: Buffer | null] | null>).entries())
        if (row) found.set(args.chats[i] as string, { date: row[1] && dateOf(row[1]), id: Number(row[0]) });
    }),
  );
  return found;
}

async function addColdMessages(
  { shards, keys }: StoreContext,
  chats: readonly ChatRef[],
  found: Map<string, Newest>,
): Promise<void> {
  const partitionOf = ({ id }: ChatRef) => keys.partitions.of(id);
  await Promise.all(
    [...byShard(shards, chats, partitionOf).values()].map(async (own) => {
      const rows = await loadNewestHeads(shards.at(...own.map(partitionOf)), own);
      for (const { chat_id, user_id, last_message_id, head } of rows) {
        const chat = chatText({ id: chat_id, user: user_id });
        found.set(chat, { date: dateOf(head), id: found.get(chat)?.id ?? last_message_id ?? 0 });
      }
    }),
  );
}

export class Activity {
  readonly #context: StoreContext;
  readonly #spend: (user: number, calls: number) => Promise<void> | undefined;
  readonly #orders = new Map<number, { readonly made: number; readonly order: readonly ActiveChat[] }>();
  #kept = 0;

  constructor(context: StoreContext, spend: (user: number, calls: number) => Promise<void> | undefined) {
    this.#context = context;
    this.#spend = spend;
  }

  #forget(user: number): void {
    this.#kept -= this.#orders.get(user)?.order.length ?? 0;
    this.#orders.delete(user);
  }

  #keep(user: number, order: readonly ActiveChat[]): void {
    this.#forget(user);
    this.#orders.set(user, { made: this.#context.time.monotonic(), order });
    this.#kept += order.length;
    for (const oldest of this.#orders.keys()) {
      if (this.#kept <= limits.chat_orders_kept_max) return;
      this.#forget(oldest);
    }
  }

  #known(user: number, chats: readonly ChatRef[]): readonly ActiveChat[] | null {
    const found = this.#orders.get(user);
    if (found === undefined || this.#context.time.monotonic() - found.made > limits.chat_order_ms)
      return null;
    const present = new Set(chats.map(chatText));
    return found.order.filter(({ chat }) => present.has(chatText(chat)));
  }

  /**
   * Sorts a person's chats by the date of their newest message, latest first, and then by id, greatest first. Loads the
   * header of the newest message in each chat. Every `limits.heads_per_call` chats count as one additional call by the
   * person. `continuing` is true for later pages. They reuse the order if this process computed it within the last
   * `limits.chat_order_ms`, and then load no headers. Error: `too_many_requests`.
   */
  async order(user: number, chats: readonly ChatRef[], continuing: boolean) {
    const former = continuing ? this.#known(user, chats) : null;
    if (former !== null) return former;
    const calls = Math.floor(chats.length / limits.heads_per_call);
    if (calls > 0) await this.#spend(user, calls);
    const found = await hotMessages(this.#context, chats);
    const newestOf = (chat: ChatRef) => found.get(chatText(chat)) ?? noMessage;
    const cold = chats.filter((chat) => (found.get(chatText(chat))?.date ?? null) === null);
    await addColdMessages(this.#context, cold, found);
    const empty = chats.filter((chat) => !newestOf(chat).date);
    const joined = empty.length > 0 ? await loadJoined(this.#context.db, user, empty) : null;
    const order = chats
      .map((chat): ActiveChat => {
        const { date, id } = newestOf(chat);
        return { chat, date: date || (joined?.get(chat.id) ?? 0), newest: id };
      })
      .sort((a, b) => b.date - a.date || b.chat.id - a.chat.id);
    // Keeps the order of the chats only if there is a second page, because only later pages need the order again.
    if (order.length > ruleLimits.page_size_default) this.#keep(user, order);
    return order;
  }

  /** Returns when the person joined, as Unix time in seconds, or 0 if the person is not a member. */
  async joined(user: number, chat: ChatRef) {
    return (await loadJoined(this.#context.db, user, [chat])).get(chat.id) ?? 0;
  }

  /**
   * Counts other people's messages with ids above `mark`, up to the id `newest`. Looks only at the latest
   * `ruleLimits.unread_counted_max` messages.
   */
  async countUnread(chat: ChatRef, newest: number, mark: number, user: number): Promise<number> {
    const first = Math.max(mark + 1, newest - ruleLimits.unread_counted_max + 1, 1);
    const ids = Array.from({ length: Math.max(0, newest - first + 1) }, (_, i) => first + i);
    if (ids.length === 0) return 0;
    const { shards, scripts, keys } = this.#context;
    const partition = keys.partitions.of(chat.id);
    const at = { meta: keys.meta(partition), message: keys.messages(chat) };
    const args = { bytes: postgresLimits.message_head_bytes_max, ids: ids.map(String) };
    const { rows } = await scripts.call('messages/read_some', partition, at, args);
    const hot = rows as Array<Buffer | null>;
    const cold = ids.filter((_, i) => hot[i] === null);
    const all = hot.filter((head) => head !== null);
    if (cold.length > 0) all.push(...(await loadHeads(shards.at(partition), chat.id, chat.user, cold)));
    return all
      .map(messageHeader)
      .filter(({ kind, sender }) => kind !== messageKinds.deleted && sender !== user).length;
  }
}
