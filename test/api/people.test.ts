/** Tests chats of two people, blocked people, and who may start a chat (decision 0083). */
import { beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { ask } from '../support/postgres_pair.js';
import { type Answer, itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
});

const app = (who: TestUser, verb: string, path: string, body?: object, front = 0) =>
  service.app(who, verb, path, body, front);
const ok = (who: TestUser, verb: string, path: string, body?: object, front = 0) =>
  resultOf(app(who, verb, path, body, front));
const open = (who: TestUser, other: TestUser, front = 0) =>
  ok(who, 'POST', `/api/people/${other.username}/chat`, {}, front);
const say = (who: TestUser, chat: number, text: string, more = {}) =>
  ok(who, 'POST', `/api/chats/${chat}/messages`, { text, ...more });
const refusal = async (answer: Promise<Answer>) => {
  const { status, body } = await answer;
  return [status, body.description];
};
const listed = (who: TestUser) => itemsOf(app(who, 'GET', '/api/chats'));
const closed = [403, "Forbidden: you can't write to this person"];
const noChat = [404, 'Not Found: chat not found'];
const noPerson = [404, 'Not Found: user not found'];

const query = (text: string, values: unknown[] = []) =>
  ask<Answer['body']>(service.databaseUrl, text, values);

test('two people have one chat, and each sees the name of the other', async () => {
  const chat = await open(ann, ben);
  expect(chat).toMatchObject({ type: 'person', user_id: ben.id, first_name: 'ben', username: ben.username });
  expect(chat.id).toBeLessThan(0);
  expect(await open(ben, ann)).toMatchObject({ id: chat.id, user_id: ann.id, first_name: 'ann' });
  expect((await open(ann, ben, 1)).id).toBe(chat.id);
  expect((await ok(ann, 'POST', `/api/people/${ben.id}/chat`)).id).toBe(chat.id);
});

test('two fronts that open the same chat at the same moment get the same chat', async () => {
  for (let round = 0; round < 5; round++) {
    const other = await service.newUser('other');
    const opened = await Promise.all(
      [0, 1, 0, 1].map((front, i) => (i < 2 ? open(ann, other, front) : open(other, ann, front))),
    );
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
  }
});

test('a chat is listed only after its first message', async () => {
  const { id } = await open(ann, ben);
  expect(await listed(ann)).toEqual([]);
  expect(await listed(ben)).toEqual([]);
  await say(ann, id, 'Hello Ben');
  expect(await listed(ben)).toMatchObject([
    { id, type: 'person', first_name: 'ann', user_id: ann.id, unread_count: 1, can_pin: true },
  ]);
  expect(await listed(ann)).toMatchObject([{ id, first_name: 'ben', last_message: { text: 'Hello Ben' } }]);
});

test('in a chat of two, people can reply, edit, delete, pin, search and read messages', async () => {
  const { id } = await open(ann, ben);
  const path = `/api/chats/${id}`;
  const first = await say(ann, id, 'Shall we meet?');
  expect(first).toMatchObject({ from: { id: ann.id }, chat: { id, type: 'person', user_id: ben.id } });
  const answer = await say(ben, id, 'Tomorrow', { reply_to_message_id: first.message_id });
  expect(answer).toMatchObject({ chat: { user_id: ann.id }, reply_to_message: { text: 'Shall we meet?' } });
  await ok(ben, 'PATCH', `${path}/messages/${answer.message_id}`, { text: 'On Monday' });
  expect(await refusal(app(ann, 'PATCH', `${path}/messages/${answer.message_id}`, { text: 'x' }))).toEqual([
    400,
    "Bad Request: message can't be edited",
  ]);
  for (const who of [ann, ben]) {
    await ok(who, 'POST', `${path}/pin`, { message_id: answer.message_id });
    await ok(who, 'DELETE', `${path}/pin`);
  }
  const found = () => itemsOf(app(ann, 'GET', `${path}/search?query=monday`));
  await expect
    .poll(found, { timeout: 20_000 })
    .toMatchObject([{ message_id: answer.message_id, chat: { user_id: ben.id } }]);
  await ok(ann, 'POST', `${path}/read`, { message_id: answer.message_id });
  await ok(ann, 'PUT', `${path}/list_pin`);
  expect(await ok(ann, 'GET', path)).toMatchObject({ list_pin: 1 });
  await ok(ann, 'DELETE', `${path}/messages/${first.message_id}`);
  const texts = (await itemsOf(app(ben, 'GET', `${path}/messages`))).map(
    ({ text }: { text?: string }) => text,
  );
  expect(texts).toContain('On Monday');
  expect(texts).not.toContain('Shall we meet?');
});

test('a third person and a bot can neither read nor change a chat of two people', async () => {
  const eve = await service.newUser('eve');
  const bot = await service.newBot(ann, 'spy');
  const { id } = await open(ann, ben);
  const { message_id } = await say(ann, id, 'Only for Ben');
  const path = `/api/chats/${id}`;
  for (const [verb, where, body] of [
    ['GET', ''],
    ['GET', '/messages'],
    ['GET', '/about'],
    ['POST', '/join'],
    ['POST', '/messages', { text: 'x' }],
    ['PATCH', `/messages/${message_id}`, { text: 'x' }],
    ['PUT', `/members/${eve.id}`, {}],
  ] as const)
    expect(await refusal(app(eve, verb, `${path}${where}`, body)), `${verb} ${where}`).toEqual(noChat);
  const refused = 'Bad Request: chat not found';
  for (const [method, params] of [
    ['getChat', {}],
    ['sendMessage', { text: 'x' }],
    ['getChatMember', { user_id: ann.id }],
    ['pinChatMessage', { message_id }],
    ['editMessageText', { message_id, text: 'x' }],
    ['forwardMessage', { from_chat_id: id, chat_id: ann.id, message_id }],
    ['leaveChat', {}],
  ] as const) {
    const { body } = await service.bot(bot, method, { chat_id: id, ...params });
    expect([method, body.description]).toEqual([method, refused]);
  }
});

test('nobody can leave a chat of two people, and nobody can be added to the chat or removed from it', async () => {
  const bot = await service.newBot(ann, 'guest');
  const eve = await service.newUser('eve');
  const { id } = await open(ann, ben);
  const path = `/api/chats/${id}`;
  for (const [verb, where, body] of [
    ['POST', '/leave'],
    ['PATCH', '', { title: 'Ours' }],
  ] as const)
    expect((await refusal(app(ann, verb, `${path}${where}`, body)))[0], `${verb} ${where}`).toBeOneOf([
      400, 404,
    ]);
  for (const who of [bot.id, eve.id, ben.id])
    for (const [verb, body] of [['PUT', {}], ['DELETE']] as const)
      expect((await app(ann, verb, `${path}/members/${who}`, body)).status).toBeGreaterThanOrEqual(400);
  expect((await app(ann, 'POST', `${path}/invite_links`, {})).status).toBe(400);
  expect(
    await query('select member_id, status from chat_members where chat_id = $1 order by 1', [id]),
  ).toEqual([
    { member_id: String(ann.id), status: 'member' },
    { member_id: String(ben.id), status: 'member' },
  ]);
});

test('after one person blocks another, neither can write in their chat until the block is removed', async () => {
  const { id } = await open(ann, ben);
  const { message_id } = await say(ann, id, 'Hello');
  await ok(ben, 'POST', `/api/people/${ann.username}/block`, {}, 1);
  for (const who of [ann, ben])
    for (const [verb, where, body] of [
      ['POST', '/messages', { text: 'Again' }],
      ['POST', '/pin', { message_id }],
      ...(who === ann ? ([['PATCH', `/messages/${message_id}`, { text: 'x' }]] as const) : []),
    ] as const)
      expect(await refusal(app(who, verb, `/api/chats/${id}${where}`, body)), where).toEqual(closed);
  const page = `/api/people/${ann.id}`;
  expect(await ok(ben, 'GET', `/api/chats/${id}`)).toMatchObject({ blocked: true });
  expect(await ok(ben, 'GET', page)).toEqual({
    user: { id: ann.id, is_bot: false, first_name: 'ann', username: ann.username },
    chat_id: id,
    blocked: true,
  });
  const forAnn = await ok(ann, 'GET', `/api/chats/${id}`);
  expect(forAnn).toMatchObject({ closed: true });
  expect(forAnn.blocked).toBeUndefined();
  expect(await itemsOf(app(ben, 'GET', '/api/me/blocked_people'))).toMatchObject([{ user: { id: ann.id } }]);
  await ok(ben, 'POST', `${page}/block`);
  await ok(ben, 'DELETE', `${page}/block`);
  expect(await itemsOf(app(ben, 'GET', '/api/me/blocked_people'))).toEqual([]);
  await say(ann, id, 'Again');
});

test('if two people block each other, they can write to each other again only after both have unblocked', async () => {
  const { id } = await open(ann, ben);
  await ok(ann, 'POST', `/api/people/${ben.username}/block`);
  await ok(ben, 'POST', `/api/people/${ann.username}/block`);
  await ok(ann, 'DELETE', `/api/people/${ben.username}/block`);
  expect(await refusal(app(ann, 'POST', `/api/chats/${id}/messages`, { text: 'x' }))).toEqual(closed);
  await ok(ben, 'DELETE', `/api/people/${ann.username}/block`);
  await say(ann, id, 'Peace');
});

test('after one person blocks another, neither can open a chat with the other', async () => {
  await ok(ben, 'POST', `/api/people/${ann.username}/block`);
  expect(await refusal(app(ann, 'POST', `/api/people/${ben.username}/chat`))).toEqual(closed);
  expect(await refusal(app(ben, 'POST', `/api/people/${ann.username}/chat`))).toEqual([
    403,
    'Forbidden: you blocked this person',
  ]);
  expect(await query('select 1 from person_chats where opener_id = any($1)', [[ann.id, ben.id]])).toEqual([]);
});

test('a blocked person cannot add the blocker to groups or channels, but the blocker can still join these chats', async () => {
  const shared = (await ok(ann, 'POST', '/api/chats', { type: 'group', title: 'Shared' })).id;
  await ok(ann, 'PUT', `/api/chats/${shared}/members/${ben.id}`, {});
  await ok(ben, 'POST', `/api/people/${ann.username}/block`);
  const { username } = await service.newUser('walks');
  for (const type of ['group', 'channel']) {
    const { id } = await ok(ann, 'POST', '/api/chats', {
      type,
      title: type,
      username: `${username}_${type}`,
    });
    const members = `/api/chats/${id}/members`;
    for (const [front, body] of [
      [0, {}],
      [1, { status: 'administrator', rights: {} }],
    ] as const)
      expect(await refusal(app(ann, 'PUT', `${members}/${ben.id}`, body, front))).toEqual([
        403,
        "Forbidden: you can't add this person",
      ]);
    expect(await itemsOf(app(ann, 'GET', members))).toMatchObject([{ user: { id: ann.id } }]);
    expect(await itemsOf(app(ben, 'GET', '/api/me/invitations'))).toEqual([]);
    await ok(ben, 'POST', `/api/chats/${id}/join`);
    // A block does not stop a member of the group from becoming an administrator.
    await ok(ann, 'PUT', `${members}/${ben.id}`, { status: 'administrator', rights: {} });
  }
  // A person can still add a person whom they have blocked.
  const own = (await ok(ben, 'POST', '/api/chats', { type: 'group', title: 'Own' })).id;
  await ok(ben, 'PUT', `/api/chats/${own}/members/${ann.id}`, {});
  await ok(ben, 'DELETE', `/api/people/${ann.username}/block`);
  const later = (await ok(ann, 'POST', '/api/chats', { type: 'group', title: 'Later' })).id;
  expect((await ok(ann, 'PUT', `/api/chats/${later}/members/${ben.id}`, {})).status).toBe('member');
});

test('a blocked person who adds the blocker by id gets the same answer as for an unknown id', async () => {
  await query('update users set username = null where id = $1', [ben.id]);
  await query('insert into person_blocks (user_id, blocked_id) values ($1, $2)', [ben.id, ann.id]);
  const { id } = await ok(ann, 'POST', '/api/chats', { type: 'group', title: 'Own' });
  expect(await refusal(app(ann, 'PUT', `/api/chats/${id}/members/${ben.id}`, {}))).toEqual(noPerson);
});

test('no message can be sent after a block, even if the chat is opened at the same moment as the block', async () => {
  for (let round = 0; round < 5; round++) {
    const other = await service.newUser('other');
    const [opened] = await Promise.all([
      app(ann, 'POST', `/api/people/${other.username}/chat`, {}, round % 2),
      ok(other, 'POST', `/api/people/${ann.username}/block`, {}, 1),
    ]);
    if (opened.status === 403) expect(opened.body.description).toBe(closed[1]);
    else {
      const { id } = opened.body.result;
      expect(await refusal(app(ann, 'POST', `/api/chats/${id}/messages`, { text: 'x' }))).toEqual(closed);
    }
  }
});

test('a person chooses who may start a chat with them', async () => {
  const [fred, gus] = [await service.newUser('fred'), await service.newUser('gus')];
  await service.newGroup(ben, 'Friends', [fred]);
  const existing = await open(gus, ben);
  expect((await ok(ben, 'GET', '/api/me')).start_chats).toBe('everyone');
  expect((await ok(ben, 'PATCH', '/api/me', { start_chats: 'shared_chats' })).start_chats).toBe(
    'shared_chats',
  );
  expect(await refusal(app(ann, 'POST', `/api/people/${ben.username}/chat`))).toEqual(closed);
  await open(fred, ben);
  await ok(ben, 'PATCH', '/api/me', { start_chats: 'nobody' });
  const lea = await service.newUser('lea');
  await service.newGroup(ben, 'More friends', [lea]);
  expect(await refusal(app(lea, 'POST', `/api/people/${ben.username}/chat`))).toEqual(closed);
  expect((await open(gus, ben)).id).toBe(existing.id);
  await say(gus, existing.id, 'Still here');
  expect(await refusal(app(ben, 'PATCH', '/api/me', { start_chats: 'friends' }))).toEqual([
    400,
    'Bad Request: parameter "start_chats" must be one of: everyone, shared_chats, nobody',
  ]);
});

test('a person can be found by id only if they share a chat with the caller', async () => {
  for (const id of [ben.id, 999_999_999, ann.id])
    for (const [verb, end] of [
      ['GET', ''],
      ['POST', '/chat'],
      ['POST', '/block'],
      ['DELETE', '/block'],
    ] as const)
      expect(await refusal(app(ann, verb, `/api/people/${id}${end}`))).toEqual(noPerson);
  const bot = await service.newBot(ann, 'no_person');
  expect(await refusal(app(ann, 'GET', `/api/people/${bot.username}`))).toEqual(noPerson);
  await service.newGroup(ann, 'Friends', [ben]);
  expect(await ok(ann, 'GET', `/api/people/${ben.id}`)).toMatchObject({ user: { first_name: 'ben' } });
  expect((await ok(ann, 'POST', `/api/people/${ben.id}/chat`)).user_id).toBe(ben.id);
});

test('if one person adds another to a group, their chat of two people does not count as a shared chat', async () => {
  await ok(ben, 'PATCH', '/api/me', { add_to_groups: 'shared_chats' });
  await open(ann, ben);
  const group = await service.newGroup(ann, 'Unwanted');
  expect((await ok(ann, 'PUT', `/api/chats/${group}/members/${ben.id}`, {})).status).toBe('invited');
});

/**
 * Stores chats between new people and one existing person. If the existing person opened the chats, their id is
 * `opener`. If the new people opened the chats, the id of the existing person is `peer`.
 */
async function storeChats(count: number, { opener = 0, peer = 0, stranger = true }) {
  await query(
    `with people as (insert into users (id, first_name) select nextval('ids'), 'x' from generate_series(1, $1::int) returning id),
       made as (insert into chats (id, type, title, creator_id)
         select -nextval('ids'), 'person', '', id from people returning id, creator_id)
     insert into person_chats (chat_id, opener_id, peer_id, is_stranger)
       select id, case when $2::bigint = 0 then creator_id else $2::bigint end,
              case when $3::bigint = 0 then creator_id else $3::bigint end, $4 from made`,
    [count, opener, peer, stranger],
  );
}

test('a person can open a limited number of chats with strangers per day', async () => {
  await storeChats(limits.stranger_chats_opened_per_day_max, { opener: ann.id });
  const { status, body } = await app(ann, 'POST', `/api/people/${ben.username}/chat`);
  expect(status).toBe(429);
  expect(body.parameters.retry_after).toBeGreaterThan(3_600);
  await service.newGroup(ann, 'Friends', [ben]);
  await open(ann, ben);
});

test('there is a daily limit on the chats that all strangers together can open with one person', async () => {
  await storeChats(limits.stranger_chats_received_per_day_max, { peer: ben.id });
  expect((await app(ann, 'POST', `/api/people/${ben.username}/chat`)).status).toBe(429);
  await query("update person_chats set created_at = now() - interval '25 hours' where peer_id = $1", [
    ben.id,
  ]);
  await open(ann, ben);
});

test('after strangers have opened the maximum number of chats with a person, only this person can open more chats', async () => {
  await storeChats(limits.chats_opened_by_others_max, { peer: ben.id, stranger: false });
  expect(await refusal(app(ann, 'POST', `/api/people/${ben.username}/chat`))).toEqual(closed);
  expect((await open(ben, ann)).user_id).toBe(ann.id);
});

test('a person can block a limited number of people', async () => {
  await query(
    `with people as (insert into users (id, first_name) select nextval('ids'), 'x' from generate_series(1, $2::int) returning id)
     insert into person_blocks (user_id, blocked_id) select $1, id from people`,
    [ann.id, limits.blocked_people_max],
  );
  expect(await refusal(app(ann, 'POST', `/api/people/${ben.username}/block`))).toEqual([
    400,
    'Bad Request: too many blocked people',
  ]);
  const page = await ok(ann, 'GET', '/api/me/blocked_people?limit=2');
  expect(page.items).toHaveLength(2);
  expect(
    (await ok(ann, 'GET', `/api/me/blocked_people?limit=2&cursor=${page.next_cursor}`)).items,
  ).toHaveLength(2);
});

test('an export contains all messages of a chat of two people, and the ids of blocked people', async () => {
  const { id } = await open(ann, ben);
  await say(ann, id, 'From Ann');
  await say(ben, id, 'From Ben');
  await ok(ann, 'POST', `/api/people/${ben.username}/block`);
  const answer = await fetch(`${service.fronts[0].url}/api/me/export`, {
    headers: { authorization: `Bearer ${ann.token}` },
  });
  const lines = (await answer.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.find(({ kind, chat }) => kind === 'chat' && chat.id === id)).toMatchObject({
    chat: { type: 'person', first_name: 'ben' },
  });
  const texts = lines.flatMap(({ kind, message }) => (kind === 'message' ? [message.text] : []));
  expect(texts).toEqual(expect.arrayContaining(['From Ann', 'From Ben']));
  expect(lines.find(({ kind }) => kind === 'blocked_person')).toMatchObject({ user_id: ben.id });
});

test('when one of two people deletes their account, the chat is closed and keeps only the messages of the other person', async () => {
  const { id } = await open(ann, ben);
  await say(ann, id, 'From Ann');
  await say(ben, id, 'From Ben');
  await ok(ann, 'DELETE', '/api/me', { confirm: true });
  expect(await ok(ben, 'GET', `/api/chats/${id}`)).toMatchObject({ closed: true, first_name: '' });
  const texts = async () =>
    (await itemsOf(app(ben, 'GET', `/api/chats/${id}/messages`))).map(({ text }: { text: string }) => text);
  await expect.poll(texts, { timeout: 20_000 }).toEqual(['From Ben']);
  expect(await refusal(app(ben, 'POST', `/api/chats/${id}/messages`, { text: 'x' }))).toEqual(closed);
});
