/** Provides the actions of operators on bots and people (behaviour §14). */
import * as rows from '../../postgres/accounts/oversight.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export function createOversight(
  { db }: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
  },
) {
  const { control, auth, webhooks } = parts;
  return {
    /**
     * Suspends or resumes a bot. After a suspension no node accepts the bot's token, and its webhook is paused. New
     * updates stay in its queue. The token itself does not change. Error: `bot_not_found`.
     */
    async suspendBot(id: number, suspended: boolean) {
      await auth.revoking(`bot:${id}`, async () => {
        await rows.suspendBot(db, id, suspended);
        await Promise.all([control.forget('bot', id), webhooks.refresh(id, 0)]);
      });
    },
    /**
     * Suspends or resumes a person. After a suspension no node accepts the person's tokens. The person's bots continue
     * to work. Error: `user_not_found`.
     */
    async suspendUser(id: number, suspended: boolean) {
      await auth.revoking(`user:${id}`, async () => {
        await rows.suspendUser(db, id, suspended);
        await control.forget('user', id);
      });
    },
    /** Reserves a username (without `@`), so that nobody can take it. Error: `username_taken`. */
    async reserve(username: string) {
      await rows.reserveName(db, username);
    },
    /** Error: `username_not_reserved`. */
    async release(username: string) {
      await rows.releaseName(db, username);
    },
    reserved: (after: string, limit: number) => rows.loadReserved(db, after, limit),
  };
}
