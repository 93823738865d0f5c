/** The pinned message of each chat; there is at most one (interface §3, §5.11; behaviour §5). */
import { fail } from '../../errors.js';
import { messageFlags, messageKinds, pack, packMessageTail } from '../core/codec.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import type { Forwarder } from '../updates/forwarder.js';
import { blocked, notMember, type Sender } from './messages.js';
import type { ReadBack } from './read_back.js';

export interface Pins {
  /**
   * Pins a message in place of the previous one, and adds a service message. Does nothing if it is already pinned.
   * Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`, `not_group_member`, `not_channel_member`,
   * `not_chat_member`, `pin_not_allowed`, `message_to_pin_not_found`, `service_cant_be_pinned`, `too_many_requests`.
   */
  pin(chat: ChatRef, who: Sender, messageId: number, notify: boolean): Promise<void>;
  /**
   * Unpins a message; null unpins any. Errors: those for membership and rights as above, and
   * `message_to_unpin_not_found` if the message, or any, is not pinned.
   */
  unpin(chat: ChatRef, who: Sender, messageId: number | null): Promise<void>;
  /** Unpins everything; succeeds if nothing is pinned. Errors: those for membership and rights as above. */
  unpinAll(chat: ChatRef, who: Sender): Promise<void>;
}

export function createPins(
  { scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
): Pins {
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);

  async function pin(chat: ChatRef, who: Sender, messageId: number, notify: boolean): Promise<void> {
    const partition = partitionOf(chat);
    const request = requestId();
    const service = { pinned: messageId };
    const args = {
      pin: pack([chatText(chat), String(messageId), String(who.id), uniqueText()]),
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
    const result = isDirect(chat)
      ? await readBack.complete(place, () => {
          const at = withMessage(keys, directKeys(keys, chat, request), chat, messageId);
          return scripts.call('messages/pin_direct', partition, at, args);
        })
      : await readBack.complete(place, () => {
          const at = withMessage(keys, sharedKeys(keys, chat, request, who.id), chat, messageId);
          return scripts.call('messages/pin_shared', partition, at, args);
        });
    switch (result.status) {
      case 'ok':
        forwarder.follow(chat.id, result);
        return;
      case 'blocked':
        return blocked(who);
      case 'cant_write':
        return fail('cant_write_to_bot');
      case 'not_member':
        return notMember(who, result.kind);
      case 'not_allowed':
        return fail('pin_not_allowed');
      case 'not_found':
        return fail('message_to_pin_not_found');
      case 'service':
        return fail('service_cant_be_pinned');
      case 'outbox_full':
        return fail('too_many_requests', { retry_after: 1 });
    }
  }

  /** `what` is the id of the expected pinned message, `any` for whichever is pinned, or `all` to succeed even if none is. */
  async function take(chat: ChatRef, who: Sender, what: number | 'any' | 'all'): Promise<void> {
    const at = sharedKeys(keys, chat, requestId(), who.id);
    const args = {
      chat: chatText(chat),
      message_id: typeof what === 'number' ? String(what) : '',
      all: what === 'all',
      direct: isDirect(chat),
      token: uniqueText(),
    };
    const result = await readBack.complete({ chat, who }, () =>
      scripts.call('messages/unpin', partitionOf(chat), at, args),
    );
    switch (result.status) {
      case 'ok':
        return;
      case 'not_found':
        return fail('message_to_unpin_not_found');
      case 'not_member':
        return notMember(who, result.kind);
      case 'not_allowed':
        return fail('pin_not_allowed');
    }
  }

  return {
    pin,
    unpin: (chat, who, messageId) => take(chat, who, messageId ?? 'any'),
    unpinAll: (chat, who) => take(chat, who, 'all'),
  };
}
