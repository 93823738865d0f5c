/** Tests that the management bot is created only once, follows its settings, and has no owner. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { managementIdentity } from '../../src/manage/identity.js';
import { makeUser, startCluster, type TestCluster, type TestNode } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster.close());

const ensure = (username: string, on = node) => on.store.management.ensure(managementIdentity(username));

test('if several nodes start at the same time, they create one management bot', async () => {
  const other = await cluster.node();
  const [first, second] = await Promise.all([ensure('petrelbot'), ensure('petrelbot', other)]);
  expect(second).toBe(first);
  const bots = () => node.db.query<{ version: number }>('select * from bots');
  const [row, ...more] = await bots();
  expect(more).toEqual([]);
  expect(row).toMatchObject({ id: first, owner_id: null, token_hmac: null, token_box: null });
  await ensure('petrelbot');
  expect(await bots()).toEqual([row]);
});

test('renaming the management bot frees its former username', async () => {
  const user = await makeUser(node);
  await node.store.bots.create(user.id, 'other_bot', 'Other');
  const id = await ensure('petrelbot');
  await expect(ensure('Other_Bot')).rejects.toMatchObject({ kind: 'username_taken' });
  expect((await node.store.bots.findByUsername('petrelbot'))?.id).toBe(id);
  expect(await ensure('helper_bot')).toBe(id);
  expect((await node.store.bots.findByUsername('helper_bot'))?.id).toBe(id);
  await node.store.bots.create(user.id, 'petrelbot', 'Free now');
  expect(await ensure('Helper_Bot')).toBe(id);
  expect(await node.db.query('select username from bots where id = $1', [id])).toEqual([
    { username: 'Helper_Bot' },
  ]);
});

test('the management bot has no token and no owner', async () => {
  const id = await ensure('helper_bot');
  const { bots, auth } = node.store;
  const bot = await bots.find(id);
  expect(bot).toMatchObject({ owner: 0, token: '' });
  for (const token of ['', `${id}:`, `${id}:A${'x'.repeat(34)}`]) expect(await auth.bot(token)).toBeNull();
  for (const nobody of [0, id]) {
    await expect(bots.token(nobody, id)).rejects.toMatchObject({ kind: 'bot_not_found' });
    await expect(bots.regenerateToken(nobody, id)).rejects.toMatchObject({ kind: 'bot_not_found' });
    await expect(bots.remove(nobody, id)).rejects.toMatchObject({ kind: 'bot_not_found' });
  }
  expect(await bots.tokensOf(0, [id])).toEqual(new Map());
});

test('each removed token of a bot is recorded in former_tokens', async () => {
  const user = await makeUser(node);
  const { bot } = await node.store.bots.create(user.id, `bot_of_${user.id}_bot`, 'Has one');
  const id = await ensure('helper_bot');
  const undo = new Error('undone');
  const undone = node.db.transaction(async (sql) => {
    const count = async () => (await sql.query('select 1 from former_tokens')).length;
    const before = await count();
    await sql.query('update bots set token_hmac = sha256($1::bytea) where id = $2', ['any', id]);
    await sql.query('update bots set token_hmac = null where id = $1', [id]);
    expect(await count()).toBe(before + 1);
    await sql.query('delete from webhooks where bot_id = $1', [id]);
    await sql.query('delete from bots where id = $1', [id]);
    expect(await count()).toBe(before + 1);
    await sql.query('delete from bots where id = $1', [bot.id]);
    expect(await count()).toBe(before + 2);
    throw undo;
  });
  await expect(undone).rejects.toBe(undo);
});
