/** Revokes leaked tokens immediately. Records whose tokens they were and where they were found (behaviour §13). */

import * as rows from '../../postgres/accounts/leaks.js';
import { maskTokens, parseToken, type TokenKind, type TokenOwner } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { piecesOf } from '../core/groups.js';
import { storeLimits as limits } from '../limits.js';
import type { Auth, Subject } from './auth.js';

export interface FoundToken {
  readonly token: string;
  readonly place: string;
}

export type Leaks = ReturnType<typeof createLeaks>;

/**
 * Returns the place where a token was found: the host and path of a URL, or the path of a file. Tokens in this text are
 * masked.
 */
function placeOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const bare = url === null || url.host === '' ? text : `${url.host}${url.pathname}`;
  // Replaces U+0000 and half surrogate pairs, because Postgres cannot store them.
  const storable = maskTokens(bare).replace(/\p{Cc}|\p{Surrogate}/gu, '\uFFFD');
  return storable.slice(0, limits.leak_place_length_max);
}

/** The number of tokens per transaction, and the number of parallel transactions. */
const partSize = 1_000;
const partsAtOnce = 2;

/**
 * Handles several groups of tokens in parallel. This process and Postgres thus work at the same time, and each
 * transaction stays short.
 */
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
) {
  return {
    /**
     * Revokes all valid tokens in the list. A bot's token is blocked until the bot gets a new token. A person's token
     * is removed. Afterwards no node accepts any of these tokens. Returns for each token whether this installation ever
     * issued it. Accepts at most ruleLimits.leak_reports_max tokens.
     */
    async report(found: readonly FoundToken[], by: 'report' | 'scan'): Promise<readonly boolean[]> {
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
        ...piecesOf(bots, partSize).map((part) => () => rows.blockBotTokens(db, part, by)),
        ...piecesOf(people, partSize).map((part) => () => rows.removeLeakedUserTokens(db, part, by)),
      ]);
      const known = new Set(parts.flatMap(({ hits }) => hits));
      const rest = [...bots, ...people].filter(({ at }) => !known.has(at));
      const former = rest.length === 0 ? new Set() : await rows.loadFormer(db, rest);
      for (const { at, hmac } of rest) if (former.has(hmac.toString('base64'))) known.add(at);

      // Includes tokens that an earlier call blocked or removed, because that call may have failed before it reached
      // all nodes.
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
    list: (before: number, limit: number) => rows.listLeaks(db, before, limit),
  };
}
