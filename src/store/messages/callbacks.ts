/** Callback queries: a person presses an inline button, and the bot answers once. */
import { fail } from '../../errors.js';
import { type Profile, pack } from '../core/codec.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { PressExtra } from '../updates/queues.js';
import { notMember } from './messages.js';
import type { ReadBack } from './read_back.js';

export interface Callbacks {
  /**
   * Creates a query for a pressed button and returns its id. Errors: `chat_not_found`, `message_not_found`,
   * `button_not_found`, `not_chat_member`.
   */
  press(chat: ChatRef, user: Profile, messageId: number, data: string): Promise<string>;
  /** Answers a query for a bot. Error: `query_too_old`. */
  answer(bot: number, queryId: string, answer: Readonly<Record<string, unknown>>): Promise<void>;
}

/** The last digits of a query id are its partition, so that an answer can be routed by the id alone. */
const partitionDigits = 3;

export function createCallbacks(
  { scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
): Callbacks {
  return {
    async press(chat, user, messageId, data) {
      const partition = keys.partitions.of(chat.id);
      const request = requestId();
      const query = keys.callbackQueries(partition);
      const extra: PressExtra = { message_id: messageId, data };
      const digits = String(partition).padStart(partitionDigits, '0');
      const args = {
        press: pack([chatText(chat), String(messageId), String(user.id), data, digits, uniqueText()]),
        from: pack(user),
        extra: pack(extra),
      };
      const place = {
        chat,
        who: { id: user.id, isBot: false },
        message: { id: messageId, absent: 'message_not_found' },
      } as const;
      const result = isDirect(chat)
        ? await readBack.complete(place, () => {
            const at = withMessage(keys, directKeys(keys, chat, request), chat, messageId);
            return scripts.call('updates/press_direct', partition, { ...at, query }, args);
          })
        : await readBack.complete(place, () => {
            const at = withMessage(keys, sharedKeys(keys, chat, request, user.id), chat, messageId);
            return scripts.call('updates/press_shared', partition, { ...at, query }, args);
          });
      switch (result.status) {
        case 'ok':
          forwarder.follow(chat.id, result);
          return result.query_id;
        case 'not_member':
          return notMember({ isBot: false }, result.kind);
        case 'cant_write':
          return fail('cant_write_to_bot');
        case 'blocked':
          return fail('bot_blocked_by_you');
        case 'not_found':
          return fail('message_not_found');
        case 'no_button':
          return fail('button_not_found');
        case 'outbox_full':
          return fail('too_many_requests', { retry_after: 1 });
      }
    },
    async answer(bot, queryId, answer) {
      const partition = Number(queryId.slice(-partitionDigits));
      if (!/^\d{4,19}$/.test(queryId) || partition >= keys.partitions.count) fail('query_too_old');
      const result = await scripts.call(
        'updates/answer_query',
        partition,
        {
          meta: keys.meta(partition),
          query: keys.callbackQueries(partition) + queryId,
          request: keys.request(partition, requestId()),
          chat: keys.chatRoot(partition),
          changes: keys.changesRoot(partition),
          channel: keys.chatChannelRoot(partition),
        },
        { id: queryId, bot: String(bot), answer: pack(answer) },
      );
      if (result.status === 'too_old') fail('query_too_old');
    },
  };
}
