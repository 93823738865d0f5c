/** Provides the actions that operators take on bots and people (behaviour §14). */
import * as seen from '../../postgres/accounts/overseen.js';
import * as rows from '../../postgres/accounts/oversight.js';
import { boundStatements } from '../../postgres/messages/search.js';
import { ruleLimits } from '../../rules/limits.js';
import { containsWords, wordPattern } from '../../rules/search.js';
import type { Auth } from '../access/auth.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { storeLimits as limits } from '../limits.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export type { AccountRow, OverseenBotRow, OverseenPersonRow } from '../../postgres/accounts/overseen.js';

export interface FoundAccounts {
  /** The found accounts, newest first. Accounts with exactly the searched id or username come before all others. */
  readonly accounts: readonly seen.AccountRow[];
  /** The next page contains accounts with ids below this id. 0 if there is no next page. */
  readonly next: number;
}

const textsOf = ({ username, name, last_name }: seen.AccountRow): string[] =>
  [username && `@${username}`, name, last_name].filter((text) => text !== null);

/** Returns the searched word as an account id and as a username. If the search has several words, returns 0 and ''. */
function exactOf(words: readonly string[]) {
  const [word = ''] = words.length === 1 ? words : [];
  return { id: /^\d{1,13}$/.test(word) ? Number(word) : 0, username: word.replace(/^@/, '') };
}

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
    /** Returns a bot, or null if there is none. */
    bot: (id: number) => seen.loadOverseenBot(db, id),
    /** Returns a person, or null if there is none. */
    person: (id: number) => seen.loadOverseenPerson(db, id),
    failingSlots: (bot: number) => seen.loadFailingSlots(db, bot),
    /**
     * Finds people and bots with ids below `before`, or from the newest one if `before` is null. If `before` is null,
     * accounts with exactly this id or username come first, found by an index. The search for parts of names reads up
     * to limits.search_accounts_rows_max accounts, so even an answer without accounts can have a `next`. The words must
     * be in the form that `foldCase` returns. Error: `unavailable` if Postgres takes longer than
     * limits.search_timeout_ms.
     */
    async search(words: readonly string[], before: number | null, limit: number): Promise<FoundAccounts> {
      const { id, username } = exactOf(words);
      const named = await seen.loadExactAccounts(db, id, username);
      const first = before === null ? named.slice(0, limit) : [];
      const most = limit - first.length;
      const start = before ?? ruleLimits.id_max;
      if (most === 0) return { accounts: first, next: start };
      const { accounts, bottom, more } = await db.transaction(async (tx) => {
        await boundStatements(tx, limits.search_timeout_ms);
        return seen.scanAccounts(
          tx,
          words.map(wordPattern),
          start,
          limits.search_accounts_rows_max,
          most + 1,
        );
      });
      const shown = new Set(named.map((account) => account.id));
      const found = accounts
        .slice(0, most)
        .filter((account) => !shown.has(account.id) && containsWords(textsOf(account), words));
      const next = accounts.length > most ? (accounts[most - 1]?.id ?? 0) : more ? (bottom ?? 0) : 0;
      return { accounts: [...first, ...found], next };
    },
    reserved: (after: string, limit: number) => rows.loadReserved(db, after, limit),
  };
}
