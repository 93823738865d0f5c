/** Tests which scheduled posts the hourly clean-up deletes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster, type TestCluster, type TestNode } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster.close());

test('if an earlier version of Petrel deleted an account, the clean-up deletes the remaining scheduled posts of the account', async () => {
  const { store, db } = node;
  const posts = [];
  for (const name of ['Ann', 'Ben']) {
    const { user } = await store.users.create({ first_name: name });
    const chat = await store.chats.create('channel', 'News', user.id, {});
    const at = Math.floor(Date.now() / 1_000) + 3_600;
    posts.push(
      await store.scheduledPosts.add(
        chat,
        user.id,
        { content: { text: 'Later' }, files: [`file of ${name}`] },
        at,
      ),
    );
  }
  const [ann, ben] = posts;
  // Simulates an earlier version, which does not delete the rows of the account.
  await db.query('update users set deleted_at = now() where id = $1', [ann?.author]);
  await store.scheduledPosts.clean();
  expect(await db.query('select id from scheduled_posts')).toEqual([{ id: ben?.id }]);
  expect(await db.query('select key from unused_files')).toEqual([{ key: 'file of Ann' }]);
});
