import { expect, test } from 'vitest';
import { resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let [ann, ben] = [] as unknown as [TestUser, TestUser];

onSharedService(async (running) => {
  service = running;
  [ann, ben] = await Promise.all([service.newUser('ann'), service.newUser('ben')]);
});

const make = async (params: object) => (await resultOf(service.app(ann, 'POST', '/api/chats', params))).id;
const about = (user: TestUser, chat: number) => service.app(user, 'GET', `/api/chats/${chat}/about`);

test.each(['channel', 'group'])('everybody sees the title and description of a public %s', async (type) => {
  const username = `about_${type}_${process.pid}`;
  const id = await make({ type, title: 'Boats', username });
  await resultOf(service.app(ann, 'PATCH', `/api/chats/${id}`, { description: 'All about boats' }));
  const seen = { id, type, title: 'Boats', username, member_count: 1, description: 'All about boats' };
  expect(await resultOf(about(ben, id))).toEqual(seen);
  expect((await service.app(ben, 'GET', `/api/chats/${id}`)).status).toBe(403);
});

test.each([
  { type: 'channel', title: 'Secret', private: true },
  { type: 'group', title: 'Secret' },
])('only members see the private chat %j', async (params) => {
  const id = await make(params);
  expect(await resultOf(about(ann, id))).toMatchObject({ id, title: 'Secret', member_count: 1 });
  const { status, body } = await about(ben, id);
  expect([status, body.description]).toEqual([404, 'Not Found: chat not found']);
});

test('the endpoint for public chats does not show direct chats', async () => {
  const bot = await service.newBot(ann, 'about');
  await service.openChat(ann, bot);
  expect((await about(ann, bot.id)).status).toBe(404);
});
