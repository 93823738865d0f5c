/** Tokens that were found in public: they die at once, and it is noted whose they were and where they lay (behaviour §13). */
import { limits } from '../limits.js';
import * as rows from '../postgres/leaks.js';
import { maskTokens, parseToken } from '../rules/token.js';
import type { Auth, Subject } from './auth.js';
import type { StoreContext } from './context.js';
import type { ControlCopies } from './control.js';

export interface FoundToken {
  readonly token: string;
  /** a URL or a path */
  readonly place: string;
}

export interface Leaks {
  /**
   * Kills those that are valid here: tokens of bots are blocked until a new one is issued, tokens of people are removed. When
   * this returns no node accepts any of them. Tells of each whether it is or was a token of this installation. At most
   * limits.leak_reports_max.
   */
  report(found: readonly FoundToken[], by: 'report' | 'scan'): Promise<readonly boolean[]>;
  /** Leaks before an id, the latest first. */
  list(before: number, limit: number): Promise<readonly rows.LeakRow[]>;
}

/** The host and the path of a URL, or a path, without tokens. */
function placeOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const bare = url === null || url.host === '' ? text : `${url.host}${url.pathname}`;
  // U+0000 and half a surrogate pair cannot be stored.
  const storable = maskTokens(bare).replace(/\p{Cc}|\p{Surrogate}/gu, '\uFFFD');
  return storable.slice(0, limits.leak_place_length_max);
}

export function createLeaks(
  { db, secrets }: StoreContext,
  control: ControlCopies,
  auth: Pick<Auth, 'revoke'>,
): Leaks {
  return {
    async report(found, by) {
      const lookups = found.map(({ token, place }) => {
        const owner = parseToken(token);
        if (owner === null) return null;
        const hmacs = secrets.lookups(token);
        return { ...owner, place: placeOf(place), hmacs, keys: hmacs.map((hmac) => hmac.toString('base64')) };
      });
      const of = (kind: 'bot' | 'user') =>
        lookups.flatMap((each) =>
          each?.kind === kind ? each.hmacs.map((hmac) => ({ id: each.id, hmac, place: each.place })) : [],
        );
      const [bots, people] = [of('bot'), of('user')];

      const blocked = bots.length === 0 ? [] : await rows.blockBotTokens(db, bots, by);
      const removed = people.length === 0 ? [] : await rows.removeLeakedUserTokens(db, people, by);
      const ended = await rows.loadFormer(
        db,
        [...bots, ...people].map(({ hmac }) => hmac),
      );
      const known = new Set([...blocked, ...removed].map(({ hmac }) => hmac).concat(...ended));
      const hits = lookups.map((each) => each?.keys.some((key) => known.has(key)) ?? false);

      // Also what was blocked or removed before: whoever did that may have died before it was dead everywhere.
      const ids = (kind: 'bot' | 'user') => [
        ...new Set(lookups.flatMap((each, i) => (each?.kind === kind && hits[i] ? [each.id] : []))),
      ];
      const subjects = { bot: ids('bot'), user: ids('user') };
      await Promise.all([control.forgetMany('bot', subjects.bot), control.forgetMany('user', subjects.user)]);
      await auth.revoke(
        ...subjects.bot.map((id): Subject => `bot:${id}`),
        ...subjects.user.map((id): Subject => `user:${id}`),
      );
      const outbox = [...blocked, ...removed].flatMap((each) => (each.outbox === null ? [] : [each.outbox]));
      await rows.strikeOffBlocked(db, [...new Set(outbox)]);
      return hits;
    },
    list: (before, limit) => rows.listLeaks(db, before, limit),
  };
}
