/** Manages callback queries. A press of an inline button creates a query, which the bot answers once. */
import { fail } from '../../errors.js';
import { type Profile, pack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import type { InlineIds } from '../inline/inline_ids.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { PressExtra } from '../updates/queues.js';
import type { ReadBack } from './read_back.js';
import { refused } from './refusals.js';

/**
 * A query id ends with the query's partition in this many digits, so a front can find the partition from the id alone.
 */
const partitionDigits = 3;

export function createCallbacks(
  { scripts, keys, requestId, editAfterPress }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
  inlineIds: InlineIds,
) {
  return {
    /**
     * Creates a query and returns its id. Errors: `chat_not_found`, `message_not_found`, `button_not_found`,
     * `not_chat_member`.
     */
    async press(chat: ChatRef, user: Profile, messageId: number, data: string): Promise<string> {
      const partition = keys.partitions.of(chat.id);
      const request = requestId();
      const query = keys.callbackQueries(partition);
      const extra: PressExtra = { message_id: messageId, data };
      const digits = String(partition).padStart(partitionDigits, '0');
      const args = {
        press: pack([chatText(chat), String(messageId), String(user.id), data, digits, editAfterPress]),
        from: pack(user),
        extra: pack(extra),
      };
      const place = {
        chat,
        who: { id: user.id, isBot: false },
        message: { id: messageId, absent: 'message_not_found' },
      } as const;
      const pressed = await readBack.complete(place, (token) => {
        if (isDirect(chat)) {
          const at = withMessage(keys, directKeys(keys, chat, request), chat, messageId);
          return scripts.call('updates/press_direct', partition, { query, ...at }, { token, ...args });
        }
        const at = withMessage(keys, sharedKeys(keys, chat, request, user.id), chat, messageId);
        return scripts.call('updates/press_shared', partition, { query, ...at }, { token, ...args });
      });
      const result =
        pressed.status !== 'inline'
          ? pressed
          : await readBack.complete(place, (token) => {
              const bot = Number(pressed.bot);
              const id = inlineIds.idOf(bot, { chat, messageId });
              const inline = { id, instance: inlineIds.instanceOf(bot, chat) };
              const at = withMessage(keys, sharedKeys(keys, chat, request, user.id), chat, messageId);
              const of = { token, ...args, extra: pack({ inline, ...extra }) };
              return scripts.call('updates/press_inline', partition, { query, ...at }, of);
            });
      if (result.status !== 'ok')
        return refused(place.who, result, { not_found: 'message_not_found', no_button: 'button_not_found' });
      forwarder.follow(chat.id, result);
      return result.query_id;
    },
    /** Stores a bot's answer. Error: `query_too_old`. */
    async answer(bot: number, queryId: string, answer: Readonly<Record<string, unknown>>) {
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
