/** Event streams at the store: what a stream may show does not rest on hints. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { StreamListener } from '../../src/store/streams.js';
import { eventually } from '../clients/event_source.js';
import { makeUser, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster();
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster?.close());

/** Opens a stream and returns the texts it shows. */
async function listen(node: TestNode, user: number): Promise<string[]> {
  const seen: string[] = [];
  const nothing = () => undefined;
  const listener: StreamListener = {
    ...{ start: nothing, action: nothing, leave: nothing },
    change: ({ message }) => void seen.push(message?.record.content.text ?? '?'),
  };
  await node.store.streams.open(user, '', listener);
  return seen;
}

test('who was removed is shown nothing that was sent later, though the stream has not heard of it', async () => {
  const [owner, member] = await Promise.all([makeUser(a), makeUser(a)]);
  const group = await a.store.chats.create('group', 'Team', owner.id);
  const put = (status: 'member' | 'kicked') =>
    b.store.chats.putMember(group, { id: member.id, is_bot: false }, status, {}, owner.id);
  const send = (words: string) => b.store.messages.send(group, owner.sender, text(words));
  await put('member');
  const [owned, removed] = await Promise.all([listen(a, owner.id), listen(a, member.id)]);
  await send('for all');
  await eventually(() => expect([owned, removed]).toEqual([['for all'], ['for all']]));
  a.hooks.hint = (channel) => channel !== cluster.keys.userChannel(member.id);
  await put('kicked');
  await send('secret');
  await eventually(() => expect(owned).toEqual(['for all', 'secret']));
  // More looks than one, and fewer than after which the list of chats is read anew.
  await new Promise((resolve) => setTimeout(resolve, 2_200));
  expect(removed).toEqual(['for all']);
});
