/** Tests that a notice is sent exactly once, and only if the change that it reports was committed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Notice } from '../../src/store/accounts/notices.js';
import {
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let bot: Person;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  bot = await makeBot(node, await makeUser(node));
});
afterAll(() => cluster.close());

const removed = (n: number): Notice => ({ kind: 'webhook_removed', bot: n, username: `n${n}_bot` });
const told = async (user: Person) => {
  const chat = { id: bot.id, user: user.id };
  const list = (await node.store.history.list(chat, 0, 50)) ?? [];
  return list.map(({ record }) => record.content.text).reverse();
};
const send = (on = node) =>
  on.store.notices.sendDue(
    async () => bot.sender.profile,
    (notice) => ({
      content: { text: 'username' in notice ? notice.username : notice.kind },
      markup: null,
    }),
  );
const noted = (user: Person) =>
  node.db.query<{ told: boolean; refused: string | null; tries: number }>(
    'select told_at is not null as told, refused, tries from notices where user_id = $1 order by id',
    [user.id],
  );

test('notices of committed changes are sent once and in order', async () => {
  const user = await makeUser(node);
  const { notices } = node.store;
  await node.db.transaction(async (sql) => {
    await notices.tell(sql, user.id, removed(1));
    await notices.tell(sql, user.id, removed(2));
  });
  await expect(
    node.db.transaction(async (sql) => {
      await notices.tell(sql, user.id, removed(3));
      throw new Error('changed its mind');
    }),
  ).rejects.toThrow('changed its mind');
  const other = await cluster.node();
  await Promise.all([send(), send(other)]);
  expect(await told(user)).toEqual(['n1_bot', 'n2_bot']);
  expect(await send()).toBe(0);
});

test('a person who blocked the management bot gets no notice', async () => {
  const user = await makeUser(node);
  await node.store.chats.openDirect(bot.id, user.id);
  await node.store.chats.setBlocked(bot.id, user.id, true);
  await node.store.notices.tell(node.db, user.id, removed(4));
  await send();
  expect(await noted(user)).toEqual([{ told: true, refused: 'bot_blocked', tries: 0 }]);
  expect((await node.store.chats.find({ id: bot.id, user: user.id }))?.kind).toBe('blocked');
  await node.store.chats.setBlocked(bot.id, user.id, false);
  expect(await send()).toBe(0);
  expect(await told(user)).toEqual([]);
});

test('an account can be deleted while a notice opens the chat between the account and the management bot', async () => {
  const user = await makeUser(node);
  await node.store.notices.tell(node.db, user.id, removed(7));
  const { sending } = await node.db.transaction(async (sql) => {
    await sql.query("set local lock_timeout = '5s'");
    // The deletion of an account locks the person first, and opening a chat waits for this lock.
    await sql.query('select 1 from users where id = $1 for no key update', [user.id]);
    const sending = send();
    const blocked =
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await expect.poll(() => node.db.query(blocked)).toHaveLength(1);
    await sql.query('delete from notices where user_id = $1', [user.id]);
    return { sending };
  });
  expect(await sending).toBe(1);
  expect(await noted(user)).toEqual([]);
});

test('if a notice fails temporarily, it is sent later', async ({ onTestFinished }) => {
  const user = await makeUser(node);
  await node.store.chats.openDirect(bot.id, user.id);
  await node.store.notices.tell(node.db, user.id, removed(5));
  const { call } = node.hooks;
  onTestFinished(() => {
    node.hooks.call = call;
  });
  node.hooks.call = (name, run) =>
    name === 'messages/send_to_user' ? Promise.reject(new Error('Redis is away')) : run();
  await send();
  expect(await noted(user)).toEqual([{ told: false, refused: null, tries: 1 }]);
  node.hooks.call = call;
  expect(await send()).toBe(0);
  await node.db.query('update notices set next_at = now() where user_id = $1', [user.id]);
  await send();
  expect(await told(user)).toHaveLength(1);
});

test('a notice is sent once even if its process is killed between sending and recording it', async () => {
  const user = await makeUser(node);
  await node.store.notices.tell(node.db, user.id, removed(6));
  const folder = fileURLToPath(new URL('../..', import.meta.url));
  const child = spawn(process.execPath, [
    fileURLToPath(new URL('./notices_child.mjs', import.meta.url)),
    ...[folder, cluster.redis.url, cluster.databaseUrl, JSON.stringify(bot.sender.profile)],
    ...cluster.shardUrls,
  ]);
  const [, signal] = await once(child, 'exit');
  expect(signal).toBe('SIGKILL');
  expect(await told(user)).toEqual(['told']);
  expect(await noted(user)).toEqual([{ told: false, refused: null, tries: 0 }]);
  expect(await send()).toBe(0);
  // Ends the claim of the killed process on the notice.
  await node.db.query('update notices set next_at = now() where user_id = $1', [user.id]);
  expect(await send()).toBe(1);
  expect(await told(user)).toEqual(['told']);
  expect(await noted(user)).toEqual([{ told: true, refused: null, tries: 0 }]);
});
