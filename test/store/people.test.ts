/**
 * Tests crashes between a change in Postgres and the refresh of its copy in Redis. If the change closes a chat of two
 * people, the chat must not stay open (decision 0083).
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ChatRef } from '../../src/store/core/keys.js';
import {
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
/** A node that commits changes to Postgres but then cannot write to Redis. */
let dead: TestNode;
let [ann, ben] = [] as unknown as [Person, Person];
let chat: ChatRef;

beforeAll(async () => {
  cluster = await startCluster();
  [node, dead] = [await cluster.node(), await cluster.node()];
  dead.hooks.call = async (name, run) => {
    if (/^(chats\/refresh|control\/forget|auth\/revoke)$/.test(name)) throw new Error('died');
    return run();
  };
});
afterAll(() => cluster?.close());

beforeEach(async () => {
  [ann, ben] = [await makeUser(node), await makeUser(node)];
  chat = await node.store.people.open(ann.id, ben.id, true);
  await say(ann);
});

const say = (by: Person) => node.store.messages.send(chat, by.sender, text('Hello'));
const isRefused = (by: Person) => expect(say(by)).rejects.toMatchObject({ kind: 'cant_write_to_person' });

test('a repeated block or unblock takes effect, even if the process of the first call died after its commit', async () => {
  await expect(dead.store.people.setBlocked(ann.id, ben.id, true)).rejects.toThrow('died');
  await node.store.people.setBlocked(ann.id, ben.id, true);
  for (const by of [ann, ben]) await isRefused(by);
  await expect(dead.store.people.setBlocked(ann.id, ben.id, false)).rejects.toThrow('died');
  await node.store.people.setBlocked(ann.id, ben.id, false);
  for (const by of [ann, ben]) await say(by);
});

test('the chat of a deleted account is closed and nameless, even if the copy of the chat is refreshed first', async () => {
  expect(await node.store.users.find(ben.id)).toMatchObject({ firstName: 'Ann' });
  await expect(dead.store.accounts.end(ben.id)).rejects.toThrow('died');
  await node.store.chats.refresh(chat);
  await isRefused(ann);
  expect((await node.store.chats.find(chat))?.profile.pair).toEqual([
    expect.objectContaining({ id: ann.id, n: 'Ann' }),
    { id: ben.id, n: '' },
  ]);
});
