/**
 * Who may write to a bot in a direct chat (interface §5.8). Postgres holds it; the state of the bot's queue holds a copy of the
 * policy and its version, which every script reads that lets a person through to the bot, so that a change acts with one write
 * on all nodes and all chats. Where it takes more to know, the chat keeps the answer for its person under that version, and
 * what is missing is read back.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/bots/write_access.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';

export type { WritePolicy } from '../../postgres/bots/write_access.js';

export interface WriteAccess {
  readonly policy: rows.WritePolicy;
  /** who was selected, by the usernames they have now; empty for other policies */
  readonly usernames: readonly string[];
}

export interface WriteAccessCopies {
  /** Copies the present policy of a bot: what is sent once this has returned is judged by it, or by a later one. */
  refresh(bot: number): Promise<void>;
  /** Copies the policy and whether the chat's person may write, for a script that missed them under this incarnation. False
   * when there is no such bot. */
  fill(chat: ChatRef, incarnation: number): Promise<boolean>;
}

/** No person has this id. */
const nobody = 0;

export function createWriteAccessCopies({ db, scripts, keys }: StoreContext): WriteAccessCopies {
  async function copy(bot: number, user: number, incarnation: number): Promise<boolean> {
    const partition = keys.partitions.of(bot);
    const at = { meta: keys.meta(partition), state: keys.queueState(bot), chat: keys.chatRoot(partition) };
    let known = incarnation;
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const row = await rows.loadWriteAccess(db, bot, user);
      if (!row) return false;
      const { version, policy, may } = row;
      const chat = user === nobody ? '' : chatText({ id: bot, user });
      const result = await scripts.call('updates/set_access', partition, at, {
        ...{ known, version, policy, chat, may },
      });
      if (result.status === 'ok') return true;
      known = result.incarnation;
    }
    return fail('unavailable', { retry_after: 1 });
  }

  return {
    async refresh(bot) {
      await copy(bot, nobody, 0);
    },
    fill: (chat, incarnation) => copy(chat.id, chat.user, incarnation),
  };
}
