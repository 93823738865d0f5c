/** Leaked tokens: revokes them at once, and records their owners and where they were found (behaviour §13). */
import { limits } from '../../limits.js';
import * as rows from '../../postgres/accounts/leaks.js';
import { maskTokens, parseToken, type TokenKind, type TokenOwner } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import type { Auth, Subject } from './auth.js';

export interface FoundToken {
  readonly token: string;
  /** the URL or path where the token was found */
  readonly place: string;
}

export interface Leaks {
  /**
   * Ends the tokens that are valid: bot tokens are blocked until a new one is issued, tokens of people are removed.
   * Once this returns, no node accepts any of them. Returns for each whether it is or was a token of this installation.
   * Accepts at most limits.leak_reports_max.
   */
  report(found: readonly FoundToken[], by: 'report' | 'scan'): Promise<readonly boolean[]>;
  /** Leaks with ids below `before`, newest first. */
  list(before: number, limit: number): Promise<readonly rows.LeakRow[]>;
}

/** Host and path of a URL, or a path, with tokens masked. */
function placeOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const bare = url === null || url.host === '' ? text : `${url.host}${url.pathname}`;
  // Postgres cannot store U+0000 or half a surrogate pair.
  const storable = maskTokens(bare).replace(/\p{Cc}|\p{Surrogate}/gu, '\uFFFD');
  return storable.slice(0, limits.leak_place_length_max);
}

/** Tokens per transaction, and transactions at a time. */
const partSize = 1_000;
const partsAtOnce = 2;

function partsOf(found: readonly rows.FoundToken[]): Array<readonly rows.FoundToken[]> {
  const count = Math.ceil(found.length / partSize);
  return Array.from({ length: count }, (_, i) => found.slice(i * partSize, (i + 1) * partSize));
}

/** Runs the parts in parallel lanes, so that this process and Postgres work at the same time and each transaction stays short. */
async function inParts(work: ReadonlyArray<() => Promise<rows.Ended>>): Promise<readonly rows.Ended[]> {
  const results: rows.Ended[] = [];
  let next = 0;
  const lane = async () => {
    for (let part = work[next++]; part !== undefined; part = work[next++]) results.push(await part());
  };
  await Promise.all(Array.from({ length: partsAtOnce }, lane));
  return results;
}

export function createLeaks(
  { db, secrets }: StoreContext,
  control: ControlCopies,
  auth: Pick<Auth, 'revoke'>,
): Leaks {
  return {
    async report(found, by) {
      const texts = [...new Set(found.map(({ token }) => token))];
      const places = new Map(found.map(({ token, place }) => [token, place]));
      const owners = texts.map(parseToken);
      const bots: rows.FoundToken[] = [];
      const people: rows.FoundToken[] = [];
      owners.forEach((owner, at) => {
        const token = texts[at] as string;
        if (owner === null) return;
        const place = placeOf(places.get(token) as string);
        const those = owner.kind === 'bot' ? bots : people;
        for (const hmac of secrets.lookups(token)) those.push({ at, id: owner.id, hmac, place });
      });

      const parts = await inParts([
        ...partsOf(bots).map((part) => () => rows.blockBotTokens(db, part, by)),
        ...partsOf(people).map((part) => () => rows.removeLeakedUserTokens(db, part, by)),
      ]);
      const known = new Set(parts.flatMap(({ hits }) => hits));
      const rest = [...bots, ...people].filter(({ at }) => !known.has(at));
      const former = rest.length === 0 ? new Set() : await rows.loadFormer(db, rest);
      for (const { at, hmac } of rest) if (former.has(hmac.toString('base64'))) known.add(at);

      // Include tokens blocked or removed earlier: that call may have died before every node knew.
      const hits = [...known].map((at) => owners[at] as TokenOwner);
      const idsOf = (kind: TokenKind) => [
        ...new Set(hits.filter((each) => each.kind === kind).map(({ id }) => id)),
      ];
      const subjects = { bot: idsOf('bot'), user: idsOf('user') };
      await Promise.all([control.forgetMany('bot', subjects.bot), control.forgetMany('user', subjects.user)]);
      await auth.revoke(
        ...subjects.bot.map((id): Subject => `bot:${id}`),
        ...subjects.user.map((id): Subject => `user:${id}`),
      );
      await rows.strikeOffBlocked(
        db,
        parts.flatMap(({ outbox }) => outbox),
      );
      const hit = new Set([...known].map((at) => texts[at]));
      return found.map(({ token }) => hit.has(token));
    },
    list: (before, limit) => rows.listLeaks(db, before, limit),
  };
}
