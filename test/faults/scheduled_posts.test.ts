/** Tests that a post is published only once, even if the process that publishes it is killed. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { itemsOf, resultOf, type Service, startService, type TestUser } from '../support/service.js';

let service: Service;
let ann: TestUser;
let client: pg.Client;

beforeAll(async () => {
  service = await startService({ flushing: false });
  ann = await service.newUser('ann');
  client = new pg.Client(service.databaseUrl);
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await service?.stop();
});

test('a post is published only once, even if a process is killed after publishing the post and before marking it as published', async () => {
  const made = { type: 'channel', title: 'News' };
  const { id: channel } = await resultOf(service.app(ann, 'POST', '/api/chats', made));
  const path = `/api/chats/${channel}/scheduled_posts`;
  const post = { text: 'Once', publish_at: Math.floor(Date.now() / 1_000) + 3_600 };
  await resultOf(service.app(ann, 'POST', path, post));
  const texts = async () =>
    (await itemsOf(service.app(ann, 'GET', `/api/chats/${channel}/messages`))).map(
      ({ text }: { text: string }) => text,
    );
  // Deleting the row of a post marks the post as published. The trigger stops the process between the publication and
  // this deletion.
  await client.query(`
    create function stop_mark() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return old; end $$;
    create trigger stop_mark before delete on scheduled_posts for each row execute function stop_mark()`);
  await client.query('update scheduled_posts set next_at = now()');
  await expect.poll(texts).toEqual(['Once']);
  await service.deliver.kill();
  await client.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query like '%delete from scheduled_posts%'`);
  await client.query('drop trigger stop_mark on scheduled_posts');
  const left = 'select tried_at is not null as tried from scheduled_posts';
  expect((await client.query(left)).rows).toEqual([{ tried: true }]);
  await client.query('update scheduled_posts set next_at = now()');
  await service.deliver.start();
  await expect.poll(async () => (await client.query(left)).rows).toEqual([]);
  expect(await texts()).toEqual(['Once']);
});

test('a published post counts as published even if its author is suspended before the post is marked as published', async () => {
  const made = { type: 'channel', title: 'Notes' };
  const author = await service.newUser('author');
  const { id: channel } = await resultOf(service.app(author, 'POST', '/api/chats', made));
  const post = { text: 'Once', publish_at: Math.floor(Date.now() / 1_000) + 3_600 };
  await resultOf(service.app(author, 'POST', `/api/chats/${channel}/scheduled_posts`, post));
  await client.query(`
    create function refuse_mark() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
    create trigger refuse_mark before delete on scheduled_posts for each row execute function refuse_mark()`);
  await client.query('update scheduled_posts set next_at = now()');
  const texts = async () =>
    (await itemsOf(service.app(author, 'GET', `/api/chats/${channel}/messages`))).map(
      ({ text }: { text: string }) => text,
    );
  await expect.poll(texts).toEqual(['Once']);
  const operator = { token: service.adminToken } as TestUser;
  await resultOf(service.app(operator, 'POST', `/api/admin/users/${author.id}/suspension`));
  await client.query('drop trigger refuse_mark on scheduled_posts');
  await client.query('update scheduled_posts set next_at = now()');
  const left = async () => (await client.query('select failure from scheduled_posts')).rows;
  await expect.poll(async () => (await left()).filter(({ failure }) => failure === null)).toEqual([]);
  expect(await left()).toEqual([]);
});
