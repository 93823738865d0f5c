/**
 * Tests account removals that are interrupted. Another process completes the removal. Changes of the account that are
 * not yet in Postgres are removed too.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { directChat } from '../../src/store/core/keys.js';
import {
  makeBot,
  makeUser,
  type Person,
  poll,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let olga: Person;
let bot: Person;

beforeAll(async () => {
  cluster = await startCluster();
  [a, b] = [await cluster.node(), await cluster.node()];
  await Promise.all([a.store.auth.start(), b.store.auth.start()]);
  olga = await makeUser(b);
  bot = await makeBot(b, olga);
});
beforeEach(() => {
  a.hooks.call = (_, run) => run();
});
afterAll(() => cluster?.close());

async function furnish() {
  const ann = await makeUser(b);
  const own = await makeBot(b, ann);
  const chat = directChat(bot.id, ann.id);
  await b.store.chats.openDirect(bot.id, ann.id);
  await b.store.messages.send(chat, ann.sender, text('direct'));
  const group = await b.store.chats.create('group', 'Team', olga.id);
  await b.store.chats.putMember(group, { id: ann.id, is_bot: false }, 'member', {});
  await b.store.messages.send(group, ann.sender, text('mine'));
  await b.store.messages.send(group, olga.sender, text('yours'));
  const user = await b.store.users.find(ann.id);
  if (!user) throw new Error('nobody');
  return { ann, own, chat, group, user };
}

/** On node `b`, completes the removals that another node began. Does not wait until the next attempt is due. */
async function finish(): Promise<void> {
  await b.db.query('update account_removals set next_at = now()');
  for (let step = await b.store.accounts.continueRemoval(); step?.more; )
    step = await b.store.accounts.continueRemoval();
}
const left = async () => (await b.db.query('select 1 from account_removals')).length;
const shown = async ({ group }: Awaited<ReturnType<typeof furnish>>) =>
  (await b.store.history.list(group, 0, 10))?.flatMap(({ record }) => record.content.text ?? []);

test('if a node dies while it removes the messages of an account, another node completes the removal', async () => {
  const made = await furnish();
  a.hooks.call = (name, run) =>
    name === 'messages/erase' ? Promise.reject(new Error('the process dies')) : run();
  await a.store.accounts.end(made.ann.id);
  expect(a.errors).toHaveLength(1);
  expect(await b.store.auth.user(made.ann.token)).toBe(null);
  await expect(b.store.messages.send(made.chat, bot.sender, text('x'))).rejects.toMatchObject({
    kind: 'bot_blocked',
  });
  expect(await left()).toBe(1);
  // After the failure, the next attempt is due later, so that this removal does not block other removals.
  expect(await b.store.accounts.continueRemoval()).toBe(null);
  await cluster.flush();
  await finish();
  expect(await left()).toBe(0);
  expect(await shown(made)).toEqual(['yours']);
  await expect(b.store.messages.send(made.chat, bot.sender, text('x'))).rejects.toMatchObject({
    kind: 'chat_not_found',
  });
});

test('if a node dies right after committing an account removal, the sweep revokes all tokens of the account', async () => {
  const made = await furnish();
  expect((await b.store.auth.user(made.ann.token))?.id).toBe(made.ann.id);
  a.hooks.call = () => Promise.reject(new Error('the process dies'));
  await expect(a.store.accounts.end(made.ann.id)).rejects.toThrow('the process dies');
  a.hooks.call = (_, run) => run();
  b.store.sweep.start();
  await expect.poll(() => b.store.auth.user(made.ann.token)).toBe(null);
  await expect.poll(() => b.store.auth.bot(made.own.token)).toBe(null);
  await b.store.sweep.stop();
  await cluster.flush();
  await finish();
  expect(await shown(made)).toEqual(['yours']);
  await expect(a.store.accounts.end(made.ann.id)).rejects.toMatchObject({ kind: 'user_not_found' });
});

test('account removal also removes a reaction that is not yet in Postgres, even in a channel that the person has left', async () => {
  const { ann, user } = await furnish();
  const channel = await b.store.chats.create('channel', 'News', olga.id, { private: true });
  await b.store.chats.putMember(channel, { id: ann.id, is_bot: false }, 'member', {});
  const { record } = await b.store.messages.send(channel, olga.sender, text('post'));
  await cluster.flush();
  await b.store.posts.react(record.post, user, { what: 'set', emoji: '🔥' });
  await b.store.chats.putMember(channel, { id: ann.id, is_bot: false }, 'left', {});
  await a.store.accounts.end(ann.id);
  expect(await left()).toBe(1);
  const seen = () => b.store.posts.find(record.post, { id: olga.id, isBot: false });
  expect((await seen()).reactions).toHaveLength(1);
  await cluster.flush();
  await finish();
  expect([await left(), (await seen()).reactions]).toEqual([0, []]);
});

test('when an account is removed, the first administrator of each of its groups becomes the creator, and the bots of the group are notified', async () => {
  const ann = await makeUser(b);
  const ida = await makeUser(b);
  const group = await b.store.chats.create('group', 'Team', ann.id);
  await b.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {});
  await b.store.chats.putMember(group, { id: ida.id, is_bot: false }, 'administrator', {
    can_pin_messages: true,
  });
  await poll(b, bot);
  await a.store.accounts.end(ann.id);
  await cluster.flush();
  await finish();
  const standing = await Promise.all([ida, ann].map((who) => b.store.chats.member(group, who.id)));
  expect(standing.map(({ status }) => status)).toEqual(['creator', 'left']);
  const [first] = await b.store.chats.administrators(group);
  expect(first).toMatchObject({ id: ida.id, status: 'creator' });
  expect((await b.store.chats.find(group))?.profile.m).toBe(2);
});

test('an account gets no new bots, chats, memberships or tokens while it is being removed', async () => {
  const { ann, group } = await furnish();
  await a.store.accounts.end(ann.id);
  for (const late of [
    () => b.store.bots.create(ann.id, 'too_late_bot', 'Late'),
    () => b.store.chats.openDirect(bot.id, ann.id),
    () => b.store.chats.create('group', 'Late', ann.id),
  ])
    await expect(late()).rejects.toMatchObject({ kind: 'unauthorized' });
  const member = { id: ann.id, is_bot: false };
  await expect(b.store.chats.putMember(group, member, 'member', {})).rejects.toMatchObject({
    kind: 'chat_member_not_found',
  });
  await expect(b.store.users.addToken(ann.id)).rejects.toMatchObject({ kind: 'user_not_found' });
});
