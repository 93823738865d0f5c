/** Sends, deletes or reads several messages of a chat: one round trip if the data is in Redis. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { loadMessages } from '../../postgres/chats/chats.js';
import { messageKinds, pack, packMessageTail, unpackMessage } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys } from '../core/script_keys.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { Forwarder } from '../updates/forwarder.js';
import { type NewMessage, newRecord, notMember, type Sender, sendRefused } from './messages.js';
import type { ReadBack } from './read_back.js';
import { type Given, isLookUp, type Repeats } from './repeats.js';

export interface Batches {
  /**
   * Sends 1 to `limits.messages_batch_max` messages in one step, all or none, with consecutive ids in the given order.
   * Together at most `limits.messages_batch_bytes_max`. All reply to the target of the first one. If a repeated call
   * finds some of its messages deleted, `messages` omits them. Errors: those of `send`.
   */
  sendMany(
    chat: ChatRef,
    sender: Sender,
    messages: Given<readonly NewMessage[]>,
  ): Promise<{ readonly ids: readonly number[]; readonly messages: readonly StoredMessage[] }>;
  /**
   * Deletes up to `limits.messages_batch_max` messages in one step, all or none; skips ids without a message. Errors:
   * `chat_not_found`, the errors for non-members, `message_cant_be_deleted`.
   */
  removeMany(chat: ChatRef, who: Sender, ids: readonly number[]): Promise<void>;
  /**
   * Reads messages by id, in the given order, duplicates included; null where there is none. Replied messages are
   * omitted. Errors: `chat_not_found`, the errors for non-members.
   */
  readMany(chat: ChatRef, who: Sender, ids: readonly number[]): Promise<Array<StoredMessage | null>>;
}

const nothing = Buffer.alloc(0);

function assertBatch(size: number): void {
  if (size < 1 || size > limits.messages_batch_max) throw new RangeError(`invalid batch size ${size}`);
}

export function createBatches(
  { shards, scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
  repeats: Repeats,
): Batches {
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);

  /** Makes one attempt to send, with one reply target. `request` makes a repeated attempt harmless. */
  async function trySend(
    chat: ChatRef,
    sender: Sender,
    messages: readonly NewMessage[],
    replyTo: number,
    request: string,
  ) {
    const partition = partitionOf(chat);
    const fixed = messages.map((message) => newRecord(chat, sender, message, replyTo));
    const direct = isDirect(chat);
    const tails = fixed.map(packMessageTail);
    const bytes = tails.reduce((sum, tail) => sum + tail.length, 0);
    if (bytes > limits.messages_batch_bytes_max) fail('too_many_message_ids');
    const args = {
      chat: chatText(chat),
      reply_to: replyTo === 0 ? '' : String(replyTo),
      from: direct && sender.isBot ? nothing : pack(sender.profile),
      token: uniqueText(),
      tails,
    };
    const place = { chat, who: sender };
    const result = direct
      ? await readBack.complete(place, () =>
          scripts.call('messages/send_batch_direct', partition, directKeys(keys, chat, request), args),
        )
      : await readBack.complete(place, () =>
          scripts.call('messages/send_batch_shared', partition, sharedKeys(keys, chat, request, sender.id), {
            ...args,
            sender: String(sender.id),
            partition: String(partition),
          }),
        );
    if (result.status !== 'ok') return result;
    forwarder.follow(chat.id, result);
    const firstPost = 'post' in result ? (result.post as number) : 0;
    const sent = fixed.map((message, i) => {
      const post = firstPost === 0 ? 0 : firstPost + i * limits.partitions_max;
      const record = { ...message, version: 0, date: result.date, editedAt: 0, post };
      return storedMessage(chat, result.first + i, record, result.peer, result.reply);
    });
    return { status: 'ok' as const, sent };
  }

  /** Loads messages that a deletion found missing. Returns the ids without a message. */
  async function fillMany(
    chat: ChatRef,
    cold: readonly string[],
    tickets: readonly string[],
  ): Promise<Set<number>> {
    const ids = cold.map(Number);
    const filled = await readBack.messages(chat, ids, tickets);
    return new Set(ids.filter((id) => !filled.has(id)));
  }

  return {
    async sendMany(chat, sender, given) {
      const request = requestId();
      const before = isLookUp(given) ? await repeats.sentMany(chat, request) : null;
      if (before) return before;
      const messages = isLookUp(given) ? await given() : given;
      assertBatch(messages.length);
      const { replyTo, allowMissingReply } = messages[0] as NewMessage;
      let result = await trySend(chat, sender, messages, replyTo, request);
      if (result.status === 'reply_missing' && (await readBack.message(chat, replyTo, result.ticket))) {
        result = await trySend(chat, sender, messages, replyTo, request);
      }
      if ((result.status === 'reply_missing' || result.status === 'reply_not_found') && allowMissingReply) {
        result = await trySend(chat, sender, messages, 0, request);
      }
      if (result.status !== 'ok') return sendRefused(sender, result);
      return { ids: result.sent.map(({ id }) => id), messages: result.sent };
    },

    async removeMany(chat, who, ids) {
      const at = sharedKeys(keys, chat, requestId(), who.id);
      const args = { chat: chatText(chat), who: String(who.id), direct: isDirect(chat), token: uniqueText() };
      let left = [...new Set(ids)];
      assertBatch(left.length);
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        const result = await readBack.complete({ chat, who }, () =>
          scripts.call('messages/delete_batch', partitionOf(chat), at, { ...args, ids: left.map(String) }),
        );
        switch (result.status) {
          case 'ok':
            return;
          case 'not_member':
            return notMember(who, result.kind);
          case 'cant_be_deleted':
            return fail('message_cant_be_deleted');
          case 'messages_missing': {
            const absent = await fillMany(chat, result.cold, result.tickets);
            left = left.filter((id) => !absent.has(id));
          }
        }
      }
      return fail('unavailable', { retry_after: 1 });
    },

    async readMany(chat, who, ids) {
      assertBatch(ids.length);
      // A caller without access must not learn whether the user ever started the bot.
      const place = { chat, who: { id: who.id, isBot: false } };
      const at = sharedKeys(keys, chat, '', who.id);
      const args = { direct: isDirect(chat), ids: ids.map(String) };
      const page = await readBack.complete(place, () =>
        scripts.call('messages/read_many', partitionOf(chat), at, { ...args, token: uniqueText() }),
      );
      if (page.status !== 'ok') return notMember(who, page.kind);
      const hot = page.rows as Array<Buffer | null>;
      // A message leaves Redis only after its last version is in Postgres.
      const cold = ids.filter((id, i) => hot[i] === null && id <= page.newest);
      const loaded =
        cold.length === 0
          ? []
          : await loadMessages(shards.of(partitionOf(chat)).db, chat.id, chat.user, cold);
      const stored = new Map(loaded.map((row) => [row.message_id, row.record]));
      return ids.map((id, i) => {
        const bytes = hot[i] ?? stored.get(id) ?? null;
        const record = bytes && unpackMessage(bytes);
        if (!record || record.kind === messageKinds.deleted) return null;
        return storedMessage(chat, id, record, page.peer, null);
      });
    },
  };
}
