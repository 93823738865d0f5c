/**
 * Manages the rules on who may write to a bot in a direct chat (interface §5.8). Postgres is authoritative. The bot's
 * queue state in Redis has a copy of the policy with its version. Every script that lets a person write to the bot uses
 * this copy. One write therefore changes the policy for all nodes and chats. If the policy depends on the person, the
 * chat's record stores the decision for that version of the policy. Missing decisions are loaded from Postgres.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/bots/write_access.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { type ChatRef, chatText } from '../core/keys.js';

export type { WritePolicy } from '../../postgres/bots/write_access.js';

export interface WriteAccess {
  readonly policy: rows.WritePolicy;
  /** The current usernames of the people whom the owner selected. Empty if the policy is another one. */
  readonly usernames: readonly string[];
}

export type WriteAccessCopies = ReturnType<typeof createWriteAccessCopies>;

const nobody = 0;

export function createWriteAccessCopies({ db, scripts, keys }: StoreContext) {
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
    /** Copies the policy to Redis. Afterwards messages are checked against this policy or a newer policy. */
    async refresh(bot: number) {
      await copy(bot, nobody, 0);
    },
    /**
     * Copies the write policy of a bot to Redis, and whether the policy admits the person of this chat. Call this if a
     * script reports that one of the two is missing under the current incarnation. Returns false if the bot does not
     * exist.
     */
    fill: (chat: ChatRef, incarnation: number): Promise<boolean> => copy(chat.id, chat.user, incarnation),
  };
}
