import { beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from '../support/cluster.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let friend: TestUser;
let other: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  friend = await service.newUser('fred');
  other = await service.newUser('otto');
});
beforeEach(async () => {
  bot = await service.newBot(owner, 'guarded');
});

const path = () => `/api/me/bots/${bot.id}/write_access`;
const put = (body: unknown, by = owner) => service.app(by, 'PUT', path(), body);
const set = (policy: string, ...people: TestUser[]) =>
  resultOf(put(policy === 'selected' ? { policy, usernames: people.map((p) => p.username) } : { policy }));
const say = (by: TestUser, front = 0) =>
  service.app(by, 'POST', `/api/chats/${bot.id}/messages`, { text: 'hi' }, front);
const forbidden = {
  status: 403,
  body: { ok: false, error_code: 403, description: "Forbidden: you can't write to this bot" },
};
const refusal = (description: string) => ({ status: 400, body: { ok: false, description } });
const received = async () => {
  const updates = await resultOf(service.bot(bot, 'getUpdates'));
  const last = updates.at(-1)?.update_id;
  if (last !== undefined) await resultOf(service.bot(bot, 'getUpdates', { offset: last + 1 }));
  return updates;
};
const history = (by: TestUser) => itemsOf(service.app(by, 'GET', `/api/chats/${bot.id}/messages`));

describe.each([
  ['owner', (): TestUser[] => [], (): TestUser[] => [friend, other]],
  ['selected', (): TestUser[] => [friend], (): TestUser[] => [other]],
  ['all', (): TestUser[] => [friend, other], (): TestUser[] => []],
] as const)('with the policy %s', (policy, allowed, refused) => {
  test('a change of the write access policy applies immediately on every node, to existing and new chats', async () => {
    const old = await service.newUser('old');
    for (const person of [owner, friend, other, old]) await service.openChat(person, bot);
    await received();
    await set(policy, friend);
    for (const front of [0, 1]) {
      for (const person of [owner, ...allowed()]) expect((await say(person, front)).status).toBe(200);
      for (const person of refused()) expect(await say(person, front)).toMatchObject(forbidden);
    }
    expect((await received()).length).toBe(2 * (1 + allowed().length));
    const shown = await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}`));
    expect(shown.write_access).toEqual(
      policy === 'selected' ? { policy, usernames: [friend.username] } : { policy },
    );
    for (const person of [friend, other]) {
      const page = await resultOf(service.app(person, 'GET', `/api/bots/${bot.username}`));
      expect(page.can_write).toBe(!refused().includes(person));
    }
    const late = await service.newUser('late');
    const start = () => service.app(late, 'POST', `/api/bots/${bot.username}/start`, {});
    if (policy === 'all') return expect((await start()).status).toBe(200);
    expect(await start()).toMatchObject(forbidden);
    expect(await resultOf(service.app(late, 'GET', '/api/chats'))).toEqual({ items: [] });
    expect(await received()).toEqual([]);
  });
});

test('a person without write access cannot start a bot, edit or pin messages, or press buttons', async () => {
  await service.openChat(other, bot);
  const mine = (await resultOf(say(other))).message_id;
  const reply_markup = { inline_keyboard: [[{ text: 'b', callback_data: 'go' }]] };
  const sent = await resultOf(
    service.bot(bot, 'sendMessage', { chat_id: other.id, text: 'press', reply_markup }),
  );
  await resultOf(service.app(other, 'POST', `/api/bots/${bot.username}/block`));
  await received();
  await set('owner');
  const before = await history(other);
  const chat = `/api/chats/${bot.id}`;
  const calls = [
    ['POST', `/api/bots/${bot.username}/start`, {}],
    ['POST', `${chat}/messages`, { text: 'x' }],
  ] as const;
  // The person has blocked the bot. The policy refuses the start, and the block refuses the message.
  expect(await service.app(other, ...calls[0])).toMatchObject(forbidden);
  expect((await say(other)).body.description).toBe('Forbidden: you blocked this bot');
  await resultOf(service.app(other, 'DELETE', `/api/bots/${bot.username}/block`));
  for (const [verb, to, body] of [
    ...calls,
    ['POST', `${chat}/messages`, { photo: 'https://example.com/a.png' }],
    ['PATCH', `${chat}/messages/${mine}`, { text: 'other' }],
    ['POST', `${chat}/pin`, { message_id: mine }],
    ['POST', `${chat}/messages/${sent.message_id}/callback`, { data: 'go' }],
  ] as const) {
    expect([to, await service.app(other, verb, to, body)]).toMatchObject([to, forbidden]);
  }
  expect(await history(other)).toEqual(before);
  expect((await resultOf(service.app(other, 'GET', chat))).pinned_message).toBeUndefined();
  expect((await received()).map((each: object) => Object.keys(each).at(1))).toEqual(['my_chat_member']);
  // The policy restricts neither messages from the bot nor the deletion of messages by the refused person.
  await resultOf(service.bot(bot, 'sendMessage', { chat_id: other.id, text: 'still' }));
  await resultOf(service.app(other, 'DELETE', `${chat}/messages/${mine}`));
});

test('when the write access policy changes several times, each change applies immediately', async () => {
  await service.openChat(other, bot);
  for (let round = 0; round < 5; round++) {
    await set('owner');
    for (const front of [0, 1]) expect(await say(other, front)).toMatchObject(forbidden);
    await set('selected', other, friend);
    for (const front of [0, 1]) expect((await say(other, front)).status).toBe(200);
    await set('selected', friend);
    for (const front of [0, 1]) expect(await say(other, front)).toMatchObject(forbidden);
    await set('all');
    for (const front of [0, 1]) expect((await say(other, front)).status).toBe(200);
  }
});

test('after the write access policy is set, no node accepts messages from excluded people', async () => {
  await service.openChat(other, bot);
  for (let round = 0; round < 3; round++) {
    await set('all');
    let ended = false;
    const after: number[] = [];
    const writer = async (front: number) => {
      while (!ended) {
        await say(other, front);
      }
      for (let i = 0; i < 3; i++) after.push((await say(other, front)).status);
    };
    const writers = [0, 1, 0, 1].map(writer);
    await set('owner');
    ended = true;
    await Promise.all(writers);
    // Only messages that are sent after the change must be refused. Earlier messages may have been accepted.
    expect(after).toEqual(Array(12).fill(403));
  }
});

test('the write access policy does not apply to groups', async () => {
  const group = await service.newGroup(other, 'g', [bot]);
  await received();
  await set('owner');
  await resultOf(service.app(other, 'POST', `/api/chats/${group}/messages`, { text: 'in a group' }));
  const texts = async () => (await received()).map((u: { message?: { text?: string } }) => u.message?.text);
  await expect.poll(texts).toContain('in a group');
});

test('the write access policy is read back from Postgres after Redis loses the policy', async () => {
  await service.openChat(friend, bot);
  await service.openChat(other, bot);
  await set('selected', friend);
  const redis = openAnywhere(service.redis);
  const keys = makeKeys(Number(service.env.PARTITIONS ?? 64));
  const state = keys.queueState(bot.id);
  for (const lost of [
    () => redis.hdel(state, 'wi', 'wv', 'wp'),
    () => redis.hdel(keys.chat({ id: bot.id, user: friend.id }), 'w'),
    () => redis.hdel(keys.chat({ id: bot.id, user: other.id }), 'w'),
    () => redis.del(state, keys.queue(bot.id)),
  ]) {
    await lost();
    expect((await say(friend)).status).toBe(200);
    expect(await say(other)).toMatchObject(forbidden);
  }
  redis.disconnect();
});

describe('the owner sets the write access policy', () => {
  const unchanged = async () => {
    const shown = await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}`));
    expect(shown.write_access).toEqual({ policy: 'all' });
  };

  test('a write access policy is refused if it lists a username that belongs to no user, and the error names this username', async () => {
    const channel = `channel_${bot.id}`;
    await resultOf(
      service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'c', username: channel }),
    );
    const select = (...usernames: unknown[]) => put({ policy: 'selected', usernames });
    const { username } = friend;
    expect(await select(username, 'Nobody_1', 'nobody_2')).toMatchObject(
      refusal('Bad Request: user @Nobody_1 not found'),
    );
    expect(await select(username, bot.username)).toMatchObject(
      refusal(`Bad Request: @${bot.username} is not a user`),
    );
    expect(await select(channel)).toMatchObject(refusal(`Bad Request: @${channel} is not a user`));
    expect(await select(username, 7)).toMatchObject(
      refusal('Bad Request: parameter "usernames.1" must be a username'),
    );
    await unchanged();
  });

  test('a write access policy with a missing or invalid parameter is refused', async () => {
    const wrong = `Bad Request: parameter "usernames" must be a list of up to ${limits.writers_per_bot_max} usernames`;
    expect(await put({})).toMatchObject(refusal('Bad Request: parameter "policy" is required'));
    expect(await put({ policy: 'some' })).toMatchObject(
      refusal('Bad Request: parameter "policy" must be all, selected or owner'),
    );
    expect(await put({ policy: 'selected' })).toMatchObject(
      refusal('Bad Request: parameter "usernames" is required'),
    );
    expect(await put({ policy: 'selected', usernames: 'x' })).toMatchObject(refusal(wrong));
    const many = Array(limits.writers_per_bot_max + 1).fill(friend.username);
    expect(await put({ policy: 'selected', usernames: many })).toMatchObject(refusal(wrong));
    expect(await put({ policy: 'owner' }, friend)).toMatchObject({
      status: 403,
      body: { description: 'Forbidden: not the owner of the bot' },
    });
    await unchanged();
    // A person who is listed twice, in different case or with @, is stored only once.
    const usernames = [friend.username, `@${friend.username.toUpperCase()}`];
    const answer = await resultOf(put({ policy: 'selected', usernames: JSON.stringify(usernames) }));
    expect(answer.write_access).toEqual({ policy: 'selected', usernames: [friend.username] });
    expect((await resultOf(put({ policy: 'selected', usernames: [] }))).write_access.usernames).toEqual([]);
  });
});
