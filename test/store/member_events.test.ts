/**
 * Tests that each bot gets membership events exactly once and in order, even if the process that committed them died.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { putMember } from '../../src/postgres/chats/members.js';
import { postgresLimits as limits } from '../../src/postgres/limits.js';
import type { MemberChange } from '../../src/store/chats/members.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import { eventually } from '../journal/support.js';
import {
  makeBot,
  makeUser,
  type Person,
  poll,
  startCluster,
  type TestCluster,
  type TestNode,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let owner: Person;
let bot: Person;
let chat: ChatRef;

beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  owner = await makeUser(node);
  bot = await makeBot(node, owner);
  chat = await node.store.chats.create('channel', 'News', owner.id);
});
afterAll(() => cluster?.close());

const statuses = async () =>
  (await poll(node, bot)).map(({ kind, message }) => {
    const { was, became } = message.record.origin.service as unknown as MemberChange;
    return `${kind} ${was.status} ${became.status}`;
  });

test('the sweep posts each committed membership event once, even if several nodes post concurrently', async () => {
  const commit = (status: 'member' | 'administrator' | 'left') =>
    putMember(node.db, chat.id, { id: bot.id, is_bot: true }, status, {}, owner.id);
  await commit('member');
  await commit('administrator');
  expect(await statuses()).toEqual([]);
  const other = await cluster.node();
  await Promise.all([node, other, node].map(({ store }) => store.chats.postEvents(chat)));
  const first = ['my_chat_member left member', 'my_chat_member member administrator'];
  await eventually('heard', async () => (await statuses()).length === first.length);
  expect(await statuses()).toEqual(first);
  await commit('left');
  node.store.sweep.start();
  const all = [...first, 'my_chat_member administrator left'];
  await eventually('swept', async () => (await statuses()).length >= all.length);
  expect(await statuses()).toEqual(all);
  await expect.poll(() => node.db.query('select 1 from member_events')).toEqual([]);
  expect(await node.store.chats.member(chat, bot.id)).toMatchObject({ status: 'left' });
});

test('if a bot is banned from a chat that it never joined, the bot gets no update', async () => {
  const stranger = await makeBot(node, owner);
  for (const status of ['kicked', 'member'] as const) {
    await putMember(node.db, chat.id, { id: stranger.id, is_bot: true }, status, {}, owner.id);
    await node.store.chats.postEvents(chat);
  }
  const changes = async () => (await poll(node, stranger)).map(({ kind }) => kind);
  await eventually('added', async () => (await changes()).length > 0);
  expect(await changes()).toEqual(['my_chat_member']);
});

test('a membership event is not delivered twice if it was posted but not deleted from the table', async () => {
  const before = await statuses();
  await putMember(node.db, chat.id, { id: bot.id, is_bot: true }, 'member', {}, owner.id);
  const [kept] = await node.db.query<{ id: number }>('select * from member_events');
  await node.store.chats.postEvents(chat);
  expect(await statuses()).toEqual([...before, 'my_chat_member left member']);
  const insert = `insert into member_events overriding system value
                  select * from jsonb_populate_record(null::member_events, $1::jsonb)`;
  await node.db.query(insert, [JSON.stringify(kept)]);
  await node.store.chats.postEvents(chat);
  expect(await statuses()).toEqual([...before, 'my_chat_member left member']);
});

test('a membership change is refused and changes nothing while too many membership events of the chat are pending', async () => {
  const full = await node.store.chats.create('channel', 'Full', owner.id);
  const other = await makeUser(node);
  const add = (status: 'member' | 'left') =>
    putMember(node.db, full.id, { id: bot.id, is_bot: true }, status, {}, owner.id);
  await add('member');
  await node.db.query(
    `insert into member_events (chat_id, member_id, is_bot, by_id, was, became)
     select $1, $2, false, $2, '{"status":"left","rights":{}}', '{"status":"left","rights":{}}'
       from generate_series(2, $3)`,
    [full.id, owner.id, limits.member_events_per_chat_max],
  );
  await expect(add('left')).rejects.toMatchObject({ kind: 'too_many_requests' });
  expect(await node.store.chats.find(full)).toMatchObject({ profile: { m: 2 } });
  await putMember(node.db, chat.id, { id: other.id, is_bot: false }, 'member', {}, owner.id);
  await node.store.chats.postEvents(full);
  expect((await add('left')).status).toBe('left');
});
