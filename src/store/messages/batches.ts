/**
 * Deletes or loads several messages in a chat, and shows chat actions. Each call takes one round trip if the data is in
 * Redis.
 */
import { fail } from '../../errors.js';
import { loadMessages } from '../../postgres/chats/chats.js';
import { ruleLimits } from '../../rules/limits.js';
import { actionHint } from '../chats/action_hints.js';
import { messageKinds, type Profile, unpackMessage } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { sharedKeys } from '../core/script_keys.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { ReadBack } from './read_back.js';
import { notMember, refused } from './refusals.js';

export interface Sender {
  readonly id: number;
  readonly isBot: boolean;
  readonly profile: Profile;
}

export function assertBatch(size: number): void {
  if (size < 1 || size > ruleLimits.messages_batch_max) throw new RangeError(`invalid batch size ${size}`);
}

export class Batches {
  protected readonly context: StoreContext;
  protected readonly readBack: ReadBack;

  constructor(context: StoreContext, readBack: ReadBack) {
    this.context = context;
    this.readBack = readBack;
  }

  /**
   * Shows a chat action to people who are viewing the chat. If a person acts, `announced` is the kind of message that
   * the action announces. Channels do not show people's actions. Errors: `chat_not_found`, `cant_initiate`,
   * `bot_blocked`, `not_group_member`, `not_channel_member`, `not_chat_member`, `cant_write_to_person`,
   * `sending_not_permitted`.
   */
  async showAction(chat: ChatRef, who: Sender, action: string, announced = '') {
    const { scripts, keys } = this.context;
    const partition = keys.partitions.of(chat.id);
    const direct = isDirect(chat);
    const at = sharedKeys(keys, chat, '', who.id);
    const hint = actionHint(who.id, action, direct ? null : who.profile);
    const result = await this.readBack.complete({ chat, who }, (token) =>
      scripts.call('chats/publish_action', partition, at, { token, direct, announced, hint }),
    );
    if (result.status !== 'ok') refused(who, result, {});
  }

  /**
   * Deletes up to `limits.messages_batch_max` messages in one step. If one of them cannot be deleted, deletes none.
   * Skips ids without a message. Errors: `chat_not_found`, the errors that a non-member gets, `message_cant_be_deleted`.
   */
  async removeMany(chat: ChatRef, who: Sender, ids: readonly number[]): Promise<void> {
    const { scripts, keys, requestId } = this.context;
    const partition = keys.partitions.of(chat.id);
    const at = sharedKeys(keys, chat, requestId(), who.id);
    const args = { chat: chatText(chat), who: String(who.id), direct: isDirect(chat) };
    let left = [...new Set(ids)];
    assertBatch(left.length);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await this.readBack.complete({ chat, who }, (token) =>
        scripts.call('messages/delete_batch', partition, at, { token, ids: left.map(String), ...args }),
      );
      switch (result.status) {
        case 'ok':
          return;
        case 'not_member':
          return notMember(who, result.kind);
        case 'cant_be_deleted':
          return fail('message_cant_be_deleted');
        case 'messages_missing': {
          const absent = await this.#fillMany(chat, result.cold, result.tickets);
          left = left.filter((id) => !absent.has(id));
        }
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Returns messages by id, in the given order and with duplicates. An id without a message gives null. Does not load
   * replied-to messages. Errors: `chat_not_found`, the errors for non-members.
   */
  async readMany(chat: ChatRef, who: Sender, ids: readonly number[]): Promise<Array<StoredMessage | null>> {
    assertBatch(ids.length);
    // Treats every caller as a person. For a bot without access, the error would otherwise reveal whether the user ever
    // started the bot.
    const place = { chat, who: { id: who.id, isBot: false } };
    const { shards, scripts, keys } = this.context;
    const partition = keys.partitions.of(chat.id);
    const at = sharedKeys(keys, chat, '', who.id);
    const args = { direct: isDirect(chat), ids: ids.map(String) };
    const page = await this.readBack.complete(place, (token) =>
      scripts.call('messages/read_many', partition, at, { token, ...args }),
    );
    if (page.status !== 'ok') return notMember(who, page.kind);
    const hot = page.rows as Array<Buffer | null>;
    // Loads the messages that are not in Redis from Postgres. A message leaves Redis only after its last version is in
    // Postgres.
    const cold = ids.filter((id, i) => hot[i] === null && id <= page.newest);
    const loaded =
      cold.length === 0 ? [] : await loadMessages(shards.at(partition), chat.id, chat.user, cold);
    const stored = new Map(loaded.map((row) => [row.message_id, row.record]));
    return ids.map((id, i) => {
      const bytes = hot[i] ?? stored.get(id) ?? null;
      const record = bytes && unpackMessage(bytes);
      if (!record || record.kind === messageKinds.deleted) return null;
      return storedMessage(chat, id, record, page.peer, null);
    });
  }

  /** Loads messages that a deleting script did not find in Redis. Returns the ids that have no message. */
  async #fillMany(chat: ChatRef, cold: readonly string[], tickets: readonly string[]) {
    const ids = cold.map(Number);
    const filled = await this.readBack.messages(chat, ids, tickets);
    return new Set(ids.filter((id) => !filled.has(id)));
  }
}
