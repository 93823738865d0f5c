/** Operators' actions on bots and people (behaviour §14). */
import * as rows from '../../postgres/accounts/oversight.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export interface Oversight {
  /**
   * Suspends or resumes a bot. Once a suspension returns, no node accepts the bot's token and its webhook is paused;
   * new updates stay in its queue. The token survives. Error: `bot_not_found`.
   */
  suspendBot(id: number, suspended: boolean): Promise<void>;
  /**
   * Suspends or resumes a person. Once a suspension returns, no node accepts a token of theirs. Their bots continue.
   * Error: `user_not_found`.
   */
  suspendUser(id: number, suspended: boolean): Promise<void>;
  /** Reserves a username (without `@`), so that nobody can take it. Error: `username_taken`. */
  reserve(username: string): Promise<void>;
  /** Ends the reservation of a username. Error: `username_not_reserved`. */
  release(username: string): Promise<void>;
  /** Reserved usernames in lower case that follow `after`. */
  reserved(after: string, limit: number): Promise<readonly string[]>;
}

export function createOversight(
  { db }: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
  },
): Oversight {
  const { control, auth, webhooks } = parts;
  return {
    async suspendBot(id, suspended) {
      await auth.revoking(`bot:${id}`, async () => {
        await rows.suspendBot(db, id, suspended);
        await Promise.all([control.forget('bot', id), webhooks.refresh(id, 0)]);
      });
    },
    async suspendUser(id, suspended) {
      await auth.revoking(`user:${id}`, async () => {
        await rows.suspendUser(db, id, suspended);
        await control.forget('user', id);
      });
    },
    async reserve(username) {
      await rows.reserveName(db, username);
    },
    async release(username) {
      await rows.releaseName(db, username);
    },
    reserved: (after, limit) => rows.loadReserved(db, after, limit),
  };
}
