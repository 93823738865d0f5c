import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let bot: TestBot;
let group: number;

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'pages');
  group = await service.newGroup(owner, 'Pages', [bot]);
});

const get = (path: string, who = owner) => service.app(who, 'GET', `/api/chats/${group}/${path}`);

test('a list of members shows each member once, ordered by id, for every page size', async () => {
  const joined = await Promise.all(['a', 'b', 'c', 'd'].map((name) => service.newUser(`member_${name}`)));
  for (const { id } of joined)
    await resultOf(service.app(owner, 'PUT', `/api/chats/${group}/members/${id}`, { status: 'member' }));
  const all = [owner.id, bot.id, ...joined.map(({ id }) => id)].sort((a, b) => a - b);
  for (const limit of [1, 2, 4, 100]) {
    const seen: number[] = [];
    let cursor = '';
    for (let page = 0; page < 8; page++) {
      const { items, next_cursor } = await resultOf(get(`members?limit=${limit}&cursor=${cursor}`));
      expect(items.length).toBeLessThanOrEqual(limit);
      seen.push(...items.map(({ user }: { user: { id: number } }) => user.id));
      if (next_cursor === undefined) break;
      cursor = next_cursor;
    }
    expect(seen).toEqual(all);
  }
  const { items } = await resultOf(get('members'));
  expect(items).toHaveLength(all.length);
  expect(items.find(({ user }: { user: { id: number } }) => user.id === owner.id)).toMatchObject({
    user: { external_id: expect.any(String), is_bot: false },
    status: 'creator',
  });
  expect((await resultOf(get('members?limit=0'))).items).toHaveLength(1);
  for (const [query, what] of [
    ['cursor=x', '"cursor" must be a cursor of an earlier answer'],
    ['limit=x', '"limit" must be an integer'],
  ]) {
    const refused = await get(`members?${query}`);
    expect([refused.status, refused.body.description]).toEqual([400, `Bad Request: parameter ${what}`]);
  }
});

test('a call that gives a member administrator rights but no status is refused and changes nothing', async () => {
  const path = `/api/chats/${group}/members/${bot.id}`;
  const rights = { can_pin_messages: true };
  await resultOf(service.app(owner, 'PUT', path, { status: 'administrator', rights }));
  const refused = await service.app(owner, 'PUT', path, { rights: { can_edit_messages: true } });
  expect([refused.status, refused.body.description]).toEqual([
    400,
    'Bad Request: parameter "status" is required',
  ]);
  const { items } = await resultOf(get('members'));
  expect(items.find(({ user }: { user: { id: number } }) => user.id === bot.id)).toMatchObject({
    status: 'administrator',
    rights,
  });
});

test('a page of messages has 1 to 100 messages older than `before`, newest first', async () => {
  const sent: number[] = [];
  for (let n = 0; n < limits.page_size_default + 2; n++) {
    const { message_id } = await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, text: `${n}` }));
    sent.unshift(message_id);
  }
  const ids = async (query: string) =>
    (await itemsOf(get(`messages?${query}`))).map(({ message_id }: { message_id: number }) => message_id);
  expect(await ids('')).toEqual(sent.slice(0, limits.page_size_default));
  expect(await ids(`before=${sent[2]}&limit=3`)).toEqual(sent.slice(3, 6));
  expect(await ids('limit=0')).toEqual(sent.slice(0, 1));
  expect((await ids('limit=1000')).slice(0, sent.length)).toEqual(sent);
  expect(await ids('before=1')).toEqual([]);
});

test('only members of the chat can read its members and messages', async () => {
  const eve = await service.newUser('eve');
  for (const path of ['members', 'messages']) {
    const refused = await get(path, eve);
    expect([refused.status, refused.body.description]).toEqual([
      403,
      'Forbidden: user is not a member of the chat',
    ]);
  }
});
