/**
 * Tests the chat list of a person. The pages of the list are ordered by activity, and stay small even if messages are
 * large.
 */
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { openAnywhere, openMasters } from '../support/cluster.js';
import { ask } from '../support/postgres_pair.js';
import { createFront } from '../support/role_process.js';
import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;

interface Listed {
  readonly id: number;
  readonly last_message?: { readonly message_id: number; readonly date: number; readonly text?: string };
  readonly unread_count?: number;
  readonly joined_at?: number;
}
interface Listing {
  readonly items: readonly Listed[];
  readonly next_cursor?: string;
}

onSharedService(async (running) => {
  service = running;
  ann = await service.newUser('ann');
  ben = await service.newUser('ben');
  bot = await service.newBot(ann, 'writer');
});

const query = (text: string, values: unknown[]) => ask<Answer['body']>(service.databaseUrl, text, values);

/** Inserts groups directly into the database, with the same data as if the API had created them. */
async function manyGroups(person: TestUser, count: number, titleLength: number): Promise<void> {
  await query(
    `with made as (
         insert into chats (type, title, username, creator_id)
         select 'group', rpad(n::text, $3, '🐦'), rpad('list_' || n || '_', 32, 'x'), $1 from generate_series(1, $2) n
         returning id)
       insert into chat_members (chat_id, member_id, is_bot, status) select id, $1, false, 'creator' from made`,
    [person.id, count, titleLength],
  );
}

async function pagesOf(person: TestUser, limit: number): Promise<Listing[]> {
  const pages: Listing[] = [];
  let cursor = '';
  do {
    const answer = await service.app(person, 'GET', `/api/chats?limit=${limit}${cursor}`);
    const shown: Listing = await resultOf(Promise.resolve(answer));
    expect(shown.items.length).toBeLessThanOrEqual(limit);
    expect(Buffer.byteLength(JSON.stringify(answer.body))).toBeLessThanOrEqual(64 * 1024);
    pages.push(shown);
    cursor = `&cursor=${shown.next_cursor}`;
  } while (pages.at(-1)?.next_cursor !== undefined);
  return pages;
}

const say = (person: TestUser, chat: number, text: string) =>
  resultOf(service.app(person, 'POST', `/api/chats/${chat}/messages`, { text }));

test('the chat list shows each chat once, ordered by the latest message', async () => {
  const groups: number[] = [];
  for (let n = 0; n < 5; n++) groups.push(await service.newGroup(ann, `Group ${n}`, [ben]));
  // Chats whose last messages were sent in the same second are ordered by descending id.
  const dates: Array<readonly [number, number]> = [];
  for (const id of groups) dates.push([(await say(ann, id, 'x')).date, id]);
  const order = dates.sort((a, b) => b[0] - a[0] || b[1] - a[1]).map(([, id]) => id);
  for (const limit of [1, 2, 5, 100]) {
    const pages = await pagesOf(ben, limit);
    expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(order);
    expect(pages).toHaveLength(Math.ceil(5 / Math.min(limit, 5)));
  }
  const oldest = order.at(-1) as number;
  const last = (await pagesOf(ben, 100))[0]?.items[0];
  await expect
    .poll(async () => (await say(ann, oldest, 'later')).date)
    .toBeGreaterThan(last?.last_message?.date ?? 0);
  expect((await pagesOf(ben, 2))[0]?.items[0]?.id).toBe(oldest);
});

/**
 * Creates a channel and adds a member. Unlike a group, a channel gets no service message about the member, so it stays
 * without messages.
 */
async function newChannel(title: string, member: TestUser): Promise<number> {
  const { id } = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title }));
  await resultOf(service.app(ann, 'PUT', `/api/chats/${id}/members/${member.id}`, {}));
  return id;
}

test('the chat list orders a chat without messages by the time at which the person joined', async () => {
  const dan = await service.newUser('dan');
  const older = await newChannel('Older', dan);
  const spoken = await service.newGroup(ann, 'Spoken', [dan]);
  await setTimeout(1_100);
  const { date } = await say(ann, spoken, 'x');
  await setTimeout(1_100);
  const newer = await newChannel('Newer', dan);
  for (const limit of [1, 100]) {
    const items = (await pagesOf(dan, limit)).flatMap((page) => page.items);
    expect(items.map(({ id }) => id)).toEqual([newer, spoken, older]);
    expect(items.map(({ joined_at }) => joined_at)).toEqual([
      expect.any(Number),
      undefined,
      expect.any(Number),
    ]);
    expect(items[0]?.joined_at).toBeGreaterThan(date);
  }
  const [shown] = (await pagesOf(dan, 100))[0]?.items ?? [];
  expect(await resultOf(service.app(dan, 'GET', `/api/chats/${newer}`))).toEqual(shown);
  // When a person joins a chat again, `joined_at` becomes the time of the second join.
  await resultOf(service.app(dan, 'POST', `/api/chats/${older}/leave`));
  await query("update chat_members set joined_at = joined_at - interval '1 hour' where chat_id = $1", [
    older,
  ]);
  await query('update chats set private = false where id = $1', [older]);
  await resultOf(service.app(dan, 'POST', `/api/chats/${older}/join`));
  const back: Listed = await resultOf(service.app(dan, 'GET', `/api/chats/${older}`));
  expect(back.joined_at).toBeGreaterThan(date);
});

test('the chat list rounds join times down to whole seconds', async () => {
  const eve = await service.newUser('eve');
  const channel = await newChannel('Early', eve);
  await query("update chat_members set joined_at = '2026-01-01 00:00:00.9Z' where chat_id = $1", [channel]);
  const { joined_at } = await resultOf(service.app(eve, 'GET', `/api/chats/${channel}`));
  expect(joined_at).toBe(Date.parse('2026-01-01T00:00:00Z') / 1_000);
});

test('the chat list sorts a chat by its newest message, even after Redis has evicted the chat', async () => {
  const before = (await pagesOf(ben, 100))[0]?.items;
  const client = openAnywhere(service.redis);
  // Waits for Postgres, because Redis may evict only messages that are already in Postgres.
  const lag = async () => {
    const pool = new pg.Client(service.databaseUrl);
    await pool.connect();
    const { rows } = await pool.query('select count(*)::int as n from messages where chat_id = any($1)', [
      before?.map(({ id }) => id),
    ]);
    await pool.end();
    return rows[0].n;
  };
  const sent = before?.reduce((sum, { last_message }) => sum + (last_message?.message_id ?? 0), 0);
  await expect.poll(lag, { timeout: 20_000 }).toBe(sent);
  for (const pattern of ['*:msg:*', '*:chat:*']) {
    const found = await client.keys(pattern);
    await Promise.all(found.map((key) => client.unlink(key)));
  }
  client.disconnect();
  expect((await pagesOf(ben, 100))[0]?.items).toEqual(before);
});

test('the preview of a message contains only the first words, the kind and the sender of the message', async () => {
  const group = await service.newGroup(ann, 'Previews', [ben, bot]);
  const long = '🐦'.repeat(4_096);
  await resultOf(service.app(ben, 'POST', `/api/chats/${group}/read`, { message_id: 3 }));
  const { message_id } = await say(ann, group, long);
  const listed: Listed = await resultOf(service.app(ben, 'GET', `/api/chats/${group}`));
  expect(listed).toMatchObject({ id: group, unread_count: 1 });
  expect(listed.last_message).toEqual({
    message_id,
    date: expect.any(Number),
    kind: 'text',
    from: {
      id: ann.id,
      is_bot: false,
      first_name: 'ann',
      username: ann.username,
      external_id: expect.any(String),
    },
    text: `${'🐦'.repeat(limits.preview_text_length_max - 1)}…`,
  });
  const photo = { chat_id: group, photo: 'https://example.com/a.jpg', caption: 'short' };
  await resultOf(service.bot(bot, 'sendPhoto', photo));
  await resultOf(service.app(ann, 'POST', `/api/chats/${group}/pin`, { message_id }));
  const chat = await resultOf(service.app(ben, 'GET', `/api/chats/${group}`));
  expect(chat).toMatchObject({
    last_message: { message_id: message_id + 2, kind: 'pinned_message' },
    pinned_message: { message_id, kind: 'text' },
    unread_count: 3,
  });
  await resultOf(service.app(ann, 'DELETE', `/api/chats/${group}/messages/${message_id + 2}`));
  expect((await resultOf(service.app(ben, 'GET', `/api/chats/${group}`))).last_message).toMatchObject({
    ...{ message_id: message_id + 1, kind: 'photo', text: 'short' },
  });
});

test('a page of the chat list has at most 64 KiB, even with the longest titles', async () => {
  const cora = await service.newUser('cora');
  await manyGroups(cora, 400, 2 * limits.chat_title_length_max);
  const pages = await pagesOf(cora, 100);
  const ids = pages.flatMap(({ items }) => items.map(({ id }) => id));
  expect([ids.length, new Set(ids).size]).toEqual([400, 400]);
  expect(pages.length).toBeGreaterThan(4);
  for (const cursor of ['x', '1', '1_x', `${'9'.repeat(20)}_1`]) {
    const refused = await service.app(cora, 'GET', `/api/chats?cursor=${cursor}`);
    expect([refused.status, refused.body.description]).toEqual([
      400,
      'Bad Request: parameter "cursor" must be a cursor of an earlier answer',
    ]);
  }
}, 120_000);

test('the second and later pages of the chat list do not read all chats again', async () => {
  const dora = await service.newUser('dora');
  const count = 1_000;
  await manyGroups(dora, count, 10);
  const masters = openMasters(service.redis);
  const headsLookedAt = async () => {
    const stats = await Promise.all(masters.map((master) => master.info('commandstats')));
    return stats.reduce((sum, text) => sum + Number(/cmdstat_hget:calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
  };
  const page = async (cursor = ''): Promise<[Listing, number]> => {
    const before = await headsLookedAt();
    const shown: Listing = await resultOf(service.app(dora, 'GET', `/api/chats?limit=10${cursor}`));
    return [shown, (await headsLookedAt()) - before];
  };
  const [first, firstReads] = await page();
  const [second, secondReads] = await page(`&cursor=${first.next_cursor}`);
  const [third, thirdReads] = await page(`&cursor=${second.next_cursor}`);
  expect(firstReads).toBeGreaterThanOrEqual(count);
  for (const reads of [secondReads, thirdReads]) expect(reads).toBeLessThan(count / 4);
  const ids = [first, second, third].flatMap(({ items }) => items.map(({ id }) => id));
  expect([ids.length, new Set(ids).size, ids]).toEqual([30, 30, [...ids].sort((a, b) => b - a)]);
  // After the third page was read, the person leaves one chat and sends a message to another. The next page omits the
  // chat that the person left, and lists the other chat at its former position.
  const [gone, spoken] = [(ids[29] as number) - 1, (ids[29] as number) - 2];
  await query('update chats set creator_id = $2 where id = $1', [gone, ann.id]);
  await query("update chat_members set status = 'member' where chat_id = $1", [gone]);
  await resultOf(service.app(dora, 'POST', `/api/chats/${gone}/leave`));
  await setTimeout(1_100);
  await say(dora, spoken, 'x');
  const [fourth] = await page(`&cursor=${third.next_cursor}`);
  expect(fourth.items.map(({ id }) => id).slice(0, 2)).toEqual([spoken, spoken - 1]);
  const [again] = await page();
  expect(again.items[0]?.id).toBe(spoken);
  for (const master of masters) master.disconnect();
});

test('listing thousands of chats counts as more than one call against the rate limit', async () => {
  const [many, few] = [await service.newUser('many'), await service.newUser('few')];
  await manyGroups(many, 2 * limits.heads_per_call, 10);
  await manyGroups(few, 10, 10);
  const front = await createFront(service.env, { RATE_PER_PERSON: '6/86400' });
  await front.start();
  const list = async ({ token }: TestUser) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${front.url}/api/chats?limit=5`, { headers })).status;
  };
  try {
    const statuses = [];
    for (const user of [many, many, many, few, few, few]) statuses.push(await list(user));
    expect(statuses).toEqual([200, 200, 429, 200, 200, 200]);
  } finally {
    await front.stop();
  }
});
