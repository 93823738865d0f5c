/**
 * Tests that a change of a person's name reaches the copies of the name in chats, even after crashes and in many chats.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { directChat, sharedChat } from '../../src/store/core/keys.js';
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
/** A node that commits changes to Postgres but then cannot write to Redis. */
let dead: TestNode;
let [ann, ben] = [] as unknown as [Person, Person];

beforeAll(async () => {
  cluster = await startCluster();
  [node, dead] = [await cluster.node(), await cluster.node()];
  dead.hooks.call = async (name, run) => {
    if (/^(control\/write|chats\/refresh|auth\/revoke)$/.test(name)) throw new Error('died');
    return run();
  };
});
afterAll(() => cluster?.close());
beforeEach(async () => {
  [ann, ben] = [await makeUser(node), await makeUser(node)];
});

test('a chat gets the newest name, even if the copy of the person in Redis is older', async () => {
  const chat = await node.store.people.open(ann.id, ben.id, true);
  const bot = await makeBot(node, ben);
  await node.store.chats.openDirect(bot.id, ann.id);
  const direct = directChat(bot.id, ann.id);
  for (const each of [chat, direct]) await node.store.chats.find(each);
  await expect(dead.store.profiles.change(ann.id, { first_name: 'Anna' })).rejects.toThrow('died');
  expect((await node.store.users.find(ann.id))?.firstName).toBe('Ann');
  for (const each of [chat, direct]) await node.store.chats.refresh(each);
  expect((await node.store.chats.find(chat))?.profile.pair?.[0]).toMatchObject({ id: ann.id, n: 'Anna' });
  expect((await node.store.chats.find(direct))?.profile).toMatchObject({ id: ann.id, n: 'Anna' });
});

test('the sweep completes a change whose process died', async () => {
  const chat = await node.store.people.open(ann.id, ben.id, true);
  await node.store.chats.find(chat);
  await expect(dead.store.profiles.change(ann.id, { first_name: 'Anna' })).rejects.toThrow('died');
  node.store.sweep.start();
  await expect.poll(async () => (await node.store.users.find(ann.id))?.firstName).toBe('Anna');
  await expect
    .poll(async () => (await node.store.chats.find(chat))?.profile.pair?.[0])
    .toMatchObject({ n: 'Anna' });
  await node.store.sweep.stop();
});

test('one call updates a limited number of chats and notifies a limited number of people', async () => {
  const most = limits.profile_chats_max;
  await node.db.query(
    `with people as (insert into users (first_name) select 'Peer' from generate_series(1, $2::int) returning id),
      made as (insert into chats (incarnation, id, type, title, creator_id, private, member_count)
        select 0, -nextval('ids'), 'person', '', $1, true, 2 from people returning id)
     insert into person_chats (chat_id, opener_id, peer_id, is_stranger)
     select m.id, $1, p.id, false from (select id, row_number() over (order by id) n from made) m
       join (select id, row_number() over (order by id) n from people) p using (n)`,
    [ann.id, most + 1],
  );
  const newest = await node.store.people.open(ann.id, ben.id, false);
  const calls = new Map<string, number>();
  node.hooks.call = async (name, run) => {
    calls.set(name, (calls.get(name) ?? 0) + 1);
    return run();
  };
  const oldest = await node.db.query<{ id: number }>(
    'select max(chat_id) as id from person_chats where opener_id = $1',
    [ann.id],
  );
  const before = await node.store.chats.find(sharedChat(oldest[0]?.id ?? 0));
  expect(before?.profile.pair?.[0]).toMatchObject({ n: 'Ann' });
  await node.store.profiles.change(ann.id, { first_name: 'Anna' });
  // The extra call of `chats/tell_person` notifies the person who changed the name.
  expect([calls.get('chats/refresh'), calls.get('chats/tell_person')]).toEqual([most, most + 1]);
  expect((await node.store.chats.find(newest))?.profile.pair?.[0]).toMatchObject({ n: 'Anna' });
  calls.clear();
  await node.store.profiles.setAvatar(ann.id, [{ key: 'picture', size: 1, width: 1, height: 1 }]);
  expect([calls.get('chats/refresh'), calls.get('chats/tell_person')]).toEqual([undefined, most + 1]);
  calls.clear();
  expect(await node.store.profiles.setAvatar(ben.id, null)).toEqual({ present: null, former: null });
  expect(calls.size).toBe(0);
});

test('if the new name equals the old name, no chat changes', async () => {
  const bot = await makeBot(node, ben);
  await node.store.chats.openDirect(bot.id, ann.id);
  const version = () => node.db.query('select version from direct_chats where user_id = $1', [ann.id]);
  await node.store.profiles.change(ann.id, { first_name: 'Anna' });
  const before = await version();
  await node.store.profiles.change(ann.id, { first_name: 'Anna', last_name: '' });
  expect(await version()).toEqual(before);
  await node.store.profiles.change(ann.id, { first_name: 'Annie' });
  expect(await version()).not.toEqual(before);
});
