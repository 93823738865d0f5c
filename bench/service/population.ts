import { randomBytes } from 'node:crypto';
import { limits } from '../../src/limits.js';
import { call, expect, inParallel, type Pair } from '../../src/loadtest/client.js';
import { createPool } from '../../src/postgres/pool.js';
import { asDatabase } from '../../src/postgres/sql.js';
import { makeToken } from '../../src/rules/token.js';
import type { Service } from './service.js';

export interface Person {
  readonly id: number;
  readonly externalId: string;
  readonly token: string;
}

export interface Message {
  readonly message_id: number;
  readonly from: { readonly id: number };
  readonly chat: { readonly id: number };
  readonly date: number;
  readonly edit_date?: number;
  readonly text: string;
}

export interface Post {
  readonly id: number;
  readonly external_id: string;
}

export const text =
  'The parcel 4711 has left the depot and will be with you between two and four in the afternoon.';

/** How many calls run in parallel while a run is set up. */
const width = 16;

export function makePeople({ front, adminToken }: Service, name: string, count: number): Promise<Person[]> {
  return inParallel(count, width, async (i) => {
    const { user, token } = await call<{ user: { id: number }; token: string }>(
      `${front.baseUrl}/api/admin/users`,
      { token: adminToken, body: { username: `${name}_${i}`, first_name: 'Person', language_code: 'en' } },
    );
    const me = await call<{ external_id: string }>(`${front.baseUrl}/api/me`, { token });
    return { id: user.id, externalId: me.external_id, token };
  });
}

export async function openChats({ front }: Service, { bot }: Pair, people: readonly Person[]): Promise<void> {
  await inParallel(people.length, width, (i) =>
    call(`${front.baseUrl}/api/bots/${bot.username}/start`, { token: people[i]?.token ?? '', body: {} }),
  );
}

/**
 * Creates people without tokens directly in the database, each with a chat with the bot. Returns the ids of the people
 * in random order.
 */
export async function openManyChats(
  { databaseUrl }: Service,
  { bot }: Pair,
  count: number,
): Promise<number[]> {
  const pool = createPool({ url: databaseUrl, max: 1, name: 'bench', onError: () => undefined });
  try {
    const people = await asDatabase(pool).query<{ user_id: number }>(
      `with people as (insert into users (first_name) select 'Person' from generate_series(1, $2::int) returning id)
       insert into direct_chats (bot_id, user_id) select $1::bigint, id from people order by random() returning user_id`,
      [bot.id, count],
    );
    return people.map(({ user_id }) => user_id);
  } finally {
    await pool.close();
  }
}

/**
 * Sends one message from a bot into a direct chat, and then copies of it, a hundred per call. Each copy is stored as a
 * separate message. Returns the ids of all messages.
 */
export async function makeMessages(
  { front }: Service,
  { bot }: Pair,
  user: number,
  words: string,
  count: number,
): Promise<number[]> {
  const method = `${front.baseUrl}/bot${bot.token}`;
  const first = await call<Message>(`${method}/sendMessage`, { body: { chat_id: user, text: words } });
  const step = limits.messages_batch_max;
  const copies = await inParallel(Math.ceil((count - 1) / step), 4, (i) => {
    const size = Math.min(step, count - 1 - i * step);
    const message_ids: number[] = Array(size).fill(first.message_id);
    const body = { chat_id: user, from_chat_id: user, message_ids };
    return call<Array<{ message_id: number }>>(`${method}/copyMessages`, { body });
  });
  const ids = [first.message_id, ...copies.flat().map(({ message_id }) => message_id)];
  expect(new Set(ids).size === count, `${ids.length} messages were made instead of ${count}`);
  return ids;
}

/** Creates a channel with posts. Returns the posts, oldest first. */
export async function makePosts(
  { front }: Service,
  owner: Person,
  count: number,
): Promise<{ readonly channel: number; readonly posts: Post[] }> {
  const { token } = owner;
  const { id: channel } = await call<{ id: number }>(`${front.baseUrl}/api/chats`, {
    token,
    body: { type: 'channel', title: 'Bench' },
  });
  await inParallel(count, width, () =>
    call(`${front.baseUrl}/api/chats/${channel}/messages`, { token, body: { text } }),
  );
  const posts: Post[] = [];
  for (let cursor: string | undefined = ''; posts.length < count; ) {
    expect(cursor !== undefined, `the channel shows ${posts.length} of ${count} posts`);
    const page: { items: Post[]; next_cursor?: string } = await call(
      `${front.baseUrl}/api/chats/${channel}/posts?limit=${limits.page_size_max}${cursor ? `&cursor=${cursor}` : ''}`,
      { token },
    );
    posts.push(...page.items.map(({ id, external_id }) => ({ id, external_id })));
    cursor = page.next_cursor;
  }
  return { channel, posts: posts.reverse() };
}

export async function makeBots(
  { front }: Service,
  owners: readonly Person[],
  name: string,
  count: number,
): Promise<string[]> {
  return inParallel(count, width, async (i) => {
    const { token } = owners[i % owners.length] as Person;
    const body = { username: `${name}_${i}_bot`, name: 'Bench' };
    return (await call<{ token: string }>(`${front.baseUrl}/api/me/bots`, { token, body })).token;
  });
}

export async function makeManyBots(
  { databaseUrl, secrets }: Service,
  owner: Person,
  count: number,
): Promise<Array<{ readonly id: number; readonly token: string }>> {
  const pool = createPool({ url: databaseUrl, max: 1, name: 'bench', onError: () => undefined });
  const database = asDatabase(pool);
  const made: Array<{ readonly id: number; readonly token: string }> = [];
  const step = 1_000;
  try {
    while (made.length < count) {
      const ids = await database.query<{ id: number }>(
        "select nextval('ids') as id from generate_series(1, $1::int)",
        [Math.min(step, count - made.length)],
      );
      const bots = ids.map(({ id }) => ({ id, token: makeToken('bot', id, randomBytes(32)) }));
      await database.query(
        `insert into bots (id, owner_id, username, name, token_hmac, token_box)
         select id, $1::bigint, 'many_' || id || '_bot', 'Bench', decode(hmac, 'hex'), decode(box, 'hex')
         from unnest($2::bigint[], $3::text[], $4::text[]) as rows (id, hmac, box)`,
        [
          owner.id,
          bots.map(({ id }) => id),
          bots.map(({ token }) => secrets.lookup(token).toString('hex')),
          bots.map(({ id, token }) => secrets.seal(token, `bot:${id}`).toString('hex')),
        ],
      );
      made.push(...bots);
    }
    return made;
  } finally {
    await pool.close();
  }
}
