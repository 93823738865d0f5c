/** Tests what a new person finds: the chat with the management bot, and suggested bots and channels. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { itemsOf, resultOf, type Service, startService, type TestUser } from '../support/service.js';
import { callOpenly } from '../support/sign_in_calls.js';

let service: Service;
let owner: TestUser;

beforeAll(async () => {
  service = await startService({
    combined: true,
    extraEnv: {
      ...{ SIGN_UP: 'open', SIGN_UPS_PER_ADDRESS: '0' },
      SUGGESTED_CHATS: '@news_of_test guide_bot nothing_here gone_bot closed_chat',
    },
  });
  owner = await service.newUser('owner');
});
afterAll(() => service?.stop());

const signUp = async (username: string, language_code: string): Promise<{ token: string }> =>
  resultOf(callOpenly(service, 'POST', '/api/sign_up', { first_name: 'New', username, language_code }));

const list = (user: { token: string }) => itemsOf(service.app(user, 'GET', '/api/suggestions'));

test('the suggestions are those public bots and chats in the setting that exist, in the order of the setting', async () => {
  const of = (verb: string, path: string, body: unknown) => resultOf(service.app(owner, verb, path, body));
  expect(await list(owner)).toEqual([]);
  const bot = await of('POST', '/api/me/bots', { username: 'Guide_Bot', name: 'Guide' });
  const gone = await of('POST', '/api/me/bots', { username: 'gone_bot', name: 'Gone' });
  await of('DELETE', `/api/me/bots/${gone.id}`, { confirm: true });
  const texts = { short_description: { '': 'Plans walks', ru: 'Планирует прогулки' } };
  await of('PATCH', `/api/me/bots/${bot.id}`, texts);
  const news = await of('POST', '/api/chats', { type: 'channel', title: 'News', username: 'news_of_test' });
  const channel = { type: 'channel', id: news.id, username: 'news_of_test', title: 'News' };
  const guide = { type: 'bot', id: bot.id, username: 'Guide_Bot', title: 'Guide' };
  await expect.poll(() => list(owner)).toEqual([channel, { ...guide, about: 'Plans walks' }]);
  const ivan = await signUp('ivan_new', 'ru');
  expect(await list(ivan)).toEqual([channel, { ...guide, about: 'Планирует прогулки' }]);
});

test("a person who signs up finds the management bot in the chat list, with a message in the person's language", async () => {
  const ivan = await signUp('ivan_second', 'ru');
  const chats = () => itemsOf(service.app(ivan, 'GET', '/api/chats'));
  await expect.poll(chats).toMatchObject([{ username: 'petrelbot', unread_count: 1 }]);
  const [chat] = await chats();
  const [message] = await itemsOf(service.app(ivan, 'GET', `/api/chats/${chat.id}/messages`));
  expect(message.text).toMatch(/^Здравствуйте!(.|\n)*\/newbot/);
  // The chat with the management bot is opened only at a sign-up. The owner was created by an administrator.
  expect(await itemsOf(service.app(owner, 'GET', '/api/chats'))).not.toContainEqual(
    expect.objectContaining({ username: 'petrelbot' }),
  );
});
