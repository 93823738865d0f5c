/** Pins messages. Each chat has at most one pinned message (interface §3, §5.11; behaviour §5). */
import { messageFlags, messageKinds, pack, packMessageTail } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { Sender } from './batches.js';
import type { ReadBack } from './read_back.js';
import { refused } from './refusals.js';

export type Pins = ReturnType<typeof createPins>;

export function createPins(
  { scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
) {
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);

  /**
   * Pins a message in place of the pinned message, and adds a service message. Does nothing if the message is already
   * pinned. Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`, `not_group_member`, `not_channel_member`,
   * `not_chat_member`, `pin_not_allowed`, `message_to_pin_not_found`, `service_cant_be_pinned`, `too_many_requests`.
   */
  async function pin(chat: ChatRef, who: Sender, messageId: number, notify: boolean): Promise<void> {
    const partition = partitionOf(chat);
    const request = requestId();
    const service = { pinned: messageId };
    const args = {
      pin: pack([chatText(chat), String(messageId), String(who.id)]),
      tail: packMessageTail({
        sender: who.id,
        kind: messageKinds.service,
        flags: notify ? 0 : messageFlags.silent,
        content: {},
        markup: null,
        origin: isDirect(chat) ? { service } : { from: who.profile, service },
      }),
      from: pack(who.profile),
      notify: notify ? '1' : '',
    };
    const place = { chat, who, message: { id: messageId, absent: 'message_to_pin_not_found' } } as const;
    const result = await readBack.complete(place, (token) => {
      if (isDirect(chat)) {
        const at = withMessage(keys, directKeys(keys, chat, request), chat, messageId);
        return scripts.call('messages/pin_direct', partition, at, { token, ...args });
      }
      const at = withMessage(keys, sharedKeys(keys, chat, request, who.id), chat, messageId);
      return scripts.call('messages/pin_shared', partition, at, { token, ...args });
    });
    if (result.status !== 'ok')
      refused(who, result, {
        not_allowed: 'pin_not_allowed',
        not_found: 'message_to_pin_not_found',
        service: 'service_cant_be_pinned',
      });
    forwarder.follow(chat.id, result);
  }

  /**
   * Unpins a message. `what` is the id of the message, or `any` for whichever message is pinned, or `all`, which
   * succeeds even if no message is pinned.
   */
  async function take(chat: ChatRef, who: Sender, what: number | 'any' | 'all'): Promise<void> {
    const at = sharedKeys(keys, chat, requestId(), who.id);
    const args = {
      chat: chatText(chat),
      message_id: typeof what === 'number' ? String(what) : '',
      all: what === 'all',
      direct: isDirect(chat),
    };
    const result = await readBack.complete({ chat, who }, (token) =>
      scripts.call('messages/unpin', partitionOf(chat), at, { token, ...args }),
    );
    if (result.status !== 'ok')
      refused(who, result, { not_found: 'message_to_unpin_not_found', not_allowed: 'pin_not_allowed' });
  }

  return {
    pin,
    /**
     * Unpins this message, or any pinned message if the id is null. Errors: `message_to_unpin_not_found` if the message
     * is not pinned, and the errors of `pin` for membership and rights.
     */
    unpin: (chat: ChatRef, who: Sender, messageId: number | null) => take(chat, who, messageId ?? 'any'),
    /**
     * Unpins the pinned message. Succeeds even if no message is pinned. Throws the errors of `pin` for membership and
     * rights.
     */
    unpinAll: (chat: ChatRef, who: Sender): Promise<void> => take(chat, who, 'all'),
  };
}
