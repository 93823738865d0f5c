/**
 * Shows drafts: texts that a bot is still writing in a direct chat (decision 0061). A draft is only in Redis, for a
 * short time. It is not a message, so it has no message id and is not part of the history.
 */
import { fail } from '../../errors.js';
import { draftOf, type MessageDraft } from '../chats/shown_drafts.js';
import { type Profile, pack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';
import { directKeys, shownDraftKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { ReadBack } from './read_back.js';
import { refused } from './refusals.js';

export interface NewDraft {
  readonly id: number;
  readonly text: string;
  readonly entities: readonly unknown[] | undefined;
  readonly canStop: boolean;
  readonly keepOnStop: boolean;
}

export function createMessageDrafts(
  { scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
) {
  const keysOf = (chat: ChatRef) => ({ draft: keys.draft(chat), ...directKeys(keys, chat, requestId()) });
  const readKeys = (chat: ChatRef) => ({
    meta: keys.meta(keys.partitions.of(chat.id)),
    draft: keys.draft(chat),
  });
  return {
    /**
     * Shows a draft to the person, in place of the draft shown before. Does nothing if the person has stopped the
     * draft. Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`, `entities_too_long`.
     */
    async show(chat: ChatRef, { id, text, entities, canStop, keepOnStop }: NewDraft): Promise<void> {
      const content = JSON.stringify(entities === undefined ? { text } : { text, entities });
      if (Buffer.byteLength(content) > limits.content_bytes_max) fail('entities_too_long');
      const who = { id: chat.id, isBot: true };
      const flags = canStop ? `s${keepOnStop ? 'k' : ''}` : '';
      const partition = keys.partitions.of(chat.id);
      const at = shownDraftKeys(keys, chat);
      const result = await readBack.complete({ chat, who }, (token) =>
        scripts.call('chats/show_draft', partition, at, { token, id: String(id), flags, content }),
      );
      if (result.status !== 'ok') refused(who, result, {});
    },
    /** Returns the draft in a direct chat, or null. */
    async read(chat: ChatRef): Promise<MessageDraft | null> {
      const found = await scripts.call('chats/read_draft', keys.partitions.of(chat.id), readKeys(chat), {});
      return found.id === null
        ? null
        : draftOf(
            found.id,
            found.after as string,
            found.flags as string,
            found.stopped,
            found.content as string,
          );
    },
    /**
     * Stops a draft, and queues an update that tells the bot. A repeated call changes nothing. Errors:
     * `chat_not_found`, `draft_not_found`, `bot_blocked_by_you`, `cant_write_to_bot`, `bot_not_found`.
     */
    async stop(chat: ChatRef, user: Profile, id: number): Promise<void> {
      const who = { id: user.id, isBot: false };
      const args = { chat: chatText(chat), id: String(id), from: pack(user) };
      const result = await readBack.complete({ chat, who }, (token) =>
        scripts.call('updates/stop_draft', keys.partitions.of(chat.id), keysOf(chat), { token, ...args }),
      );
      if (result.status !== 'ok') return refused(who, result, { not_found: 'draft_not_found' });
      forwarder.follow(chat.id, result);
    },
  };
}
