/**
 * Sends notices from the management bot to people (behaviour §§10, 12, 13). Notices are durable, and each is sent
 * exactly once.
 */
import { ApiError } from '../../errors.js';
import { type Notice, notifyPerson, takeNotices } from '../../postgres/bots/notices.js';
import type { Chats } from '../chats/chats.js';
import type { Profile } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { directChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Messages, NewMessage } from '../messages/messages.js';
import type { Users } from './users.js';

export type { Notice };

export type NoticeMessage = Pick<NewMessage, 'content' | 'markup'>;

export type Notices = ReturnType<typeof createNotices>;

interface Sending {
  readonly chats: Pick<Chats, 'openDirect'>;
  readonly users: Pick<Users, 'find'>;
  under(seed: string, again: boolean): { readonly messages: Pick<Messages, 'send'> };
}

const passing = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.kind === 'unavailable' || error.kind === 'too_many_requests';

export function createNotices({ db }: StoreContext, store: () => Sending, onError: (e: unknown) => void) {
  /**
   * Returns a store that creates the same request ids in every attempt on any node, so that the chat's script detects
   * duplicates (law 4).
   */
  const under = (id: number) => store().under(`notice.${id}`, true);

  async function send(id: number, bot: Profile, user: number, words: NoticeMessage): Promise<void> {
    const sender = { id: bot.id, isBot: true, profile: bot };
    const message = { ...words, flags: 0, replyTo: 0, allowMissingReply: false };
    const chat = directChat(bot.id, user);
    try {
      await under(id).messages.send(chat, sender, message);
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'cant_initiate') throw error;
      // Opens the chat only if it does not exist, because opening a chat also unblocks the bot.
      await store().chats.openDirect(bot.id, user);
      await under(id).messages.send(chat, sender, message);
    }
  }

  return {
    /**
     * Queues a notice to a person, in the caller's transaction. Modules in `postgres/` call `notifyPerson` directly
     * instead.
     */
    tell: notifyPerson,
    /**
     * Sends due notices as messages from the management bot in direct chats. Opens a chat if necessary. A notice to a
     * person who has blocked the bot is not sent but counts as sent. Calls `profile`, which returns the bot's profile,
     * only if notices are due. Calls `write` for the text of a notice. Returns the number of due notices.
     */
    sendDue: (
      profile: () => Promise<Profile>,
      write: (notice: Notice, language: string | null) => NoticeMessage,
    ) =>
      takeNotices(
        db,
        limits.notices_batch_max,
        limits.notice_claim_ms,
        async ({ id, user_id, notice, tries }) => {
          try {
            const user = await store().users.find(user_id);
            if (user === null) return { how: 'refused', why: 'user_not_found' };
            await send(id, await profile(), user_id, write(notice, user.languageCode));
            return { how: 'sent' };
          } catch (error) {
            if (!passing(error) || tries >= limits.notice_tries_max)
              return { how: 'refused', why: error instanceof ApiError ? error.kind : 'internal' };
            onError(error);
            const delayMs = Math.min(limits.notice_retry_ms_max, limits.notice_retry_ms * 2 ** tries);
            return { how: 'later', delayMs };
          }
        },
      ),
  };
}
