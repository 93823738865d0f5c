/** Notices to people by the management bot (behaviour §§10, 12, 13): durable, each sent exactly once. */
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';
import { type Notice, takeNotices, tellPerson } from '../../postgres/bots/notices.js';
import type { Sql } from '../../postgres/sql.js';
import type { Chats } from '../chats/chats.js';
import type { Profile } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { directChat } from '../core/keys.js';
import type { Messages, NewMessage } from '../messages/messages.js';
import type { Users } from './users.js';

export type { Notice };

/** The words of a notice, and buttons below them. */
export type NoticeMessage = Pick<NewMessage, 'content' | 'markup'>;

export interface Notices {
  /** Notes what a person is to be told, in the caller's transaction. Modules of `postgres/` call `tellPerson` for the same. */
  tell(sql: Sql, user: number, notice: Notice): Promise<void>;
  /**
   * Sends what is due as messages of `bot` in the direct chats of those it is for, opening one where there is none; who blocks
   * the bot is not sent anything, and the notice counts as told. `profile` is asked for once something is due; `write` makes the words. Returns how many were due.
   */
  sendDue(
    profile: () => Promise<Profile>,
    write: (notice: Notice, language: string | null) => NoticeMessage,
  ): Promise<number>;
}

/** What notices are sent through. */
interface Sending {
  readonly chats: Pick<Chats, 'openDirect'>;
  readonly users: Pick<Users, 'find'>;
  /** The same, with one request id for whatever is done under a seed. */
  under(seed: string, again: boolean): { readonly messages: Pick<Messages, 'send'> };
}

/** Refusals that a later try may not meet. */
const passing = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.kind === 'unavailable' || error.kind === 'too_many_requests';

export function createNotices(
  { db }: StoreContext,
  store: () => Sending,
  onError: (e: unknown) => void,
): Notices {
  /** Under one request id at every try, whoever tries: the chat's script knows a message that it has (law 4). */
  const under = (id: number) => store().under(`notice.${id}`, true);

  async function send(id: number, bot: Profile, user: number, words: NoticeMessage): Promise<void> {
    const sender = { id: bot.id, isBot: true, profile: bot };
    const message = { ...words, flags: 0, replyTo: 0, allowMissingReply: false };
    const chat = directChat(bot.id, user);
    try {
      await under(id).messages.send(chat, sender, message);
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'cant_initiate') throw error;
      // Only where there is none: opening a chat unblocks it.
      await store().chats.openDirect(bot.id, user);
      await under(id).messages.send(chat, sender, message);
    }
  }

  return {
    tell: tellPerson,
    sendDue: (profile, write) =>
      takeNotices(db, limits.notices_batch_max, async ({ id, user_id, notice, tries }) => {
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
      }),
  };
}
