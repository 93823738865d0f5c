import { afterAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let service: Service;
let owner: TestUser;
let bot: TestBot;
let receiver: Receiver;
let answer: (text: string) => string | Promise<string> = () => '';
let arrived: string[] = [];

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  receiver = await startReceiver(certificate, async (_, response, body) => {
    const { message, inline_query } = JSON.parse(body.toString());
    const text = message?.text ?? inline_query?.id;
    arrived.push(text);
    response.end(await answer(text));
  });
});
afterAll(async () => {
  await receiver.close();
});
beforeEach(async () => {
  arrived = [];
  answer = () => '';
  bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  const url = `https://127.0.0.1:${receiver.port}/`;
  const hook = { url, certificate: certificate.cert, drop_pending_updates: true };
  await resultOf(service.bot(bot, 'setWebhook', hook));
});

const say = (text: string) => resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
const chat = async (): Promise<string[]> =>
  (await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages`)))
    .map(({ text }: { text: string }) => text)
    .reverse()
    .slice(1);
const send = (text: string, more = {}) => ({ method: 'sendMessage', chat_id: owner.id, text, ...more });
const calm = () =>
  expect.poll(async () => (await resultOf(service.bot(bot, 'getWebhookInfo'))).pending_update_count).toBe(0);

test('a call in a webhook answer runs before the next update of the chat is delivered', async () => {
  answer = (text) => JSON.stringify(send(`re ${text}`, { method: 'SENDMESSAGE', parse_mode: 'HTML' }));
  await say('one');
  await say('two');
  await expect.poll(chat).toHaveLength(4);
  const texts = await chat();
  expect(texts.filter((text) => text.startsWith('re'))).toEqual(['re one', 're two']);
});

test('if a webhook answer is an array of method calls, the calls run in order', async () => {
  const name = `${bot.username} renamed`;
  const calls = [
    send('a'),
    { method: 'sendMessage', chat_id: owner.id },
    null,
    'x',
    { method: 'noSuchMethod' },
    { method: 7 },
    { method: 'setMyName', name },
    send('b'),
    { method: 'sendMessage', chat_id: 1, text: 'to nobody' },
    send('c'),
  ];
  answer = () => JSON.stringify(calls);
  await say('go');
  await expect.poll(chat).toEqual(['go', 'a', 'b', 'c']);
  expect(await resultOf(service.bot(bot, 'getMyName'))).toEqual({ name });
});

test('a webhook answer cannot call webhook methods, getUpdates, close or logOut', async () => {
  answer = () =>
    JSON.stringify([
      { method: 'deleteWebhook' },
      { method: 'setWebhook', url: '' },
      { method: 'SetWebhook', url: '' },
      { method: 'close' },
      { method: 'logOut' },
      { method: 'getUpdates', timeout: 50 },
      send('done'),
    ]);
  await say('go');
  await expect.poll(chat).toEqual(['go', 'done']);
  expect((await resultOf(service.bot(bot, 'getWebhookInfo'))).url).not.toBe('');
});

test.each([
  ['a body that is not JSON', 'method=sendMessage&chat_id=1&text=a'],
  ['incomplete JSON', '{"method":"sendMessage"'],
  ['no method', '{"text":"a"}'],
  ['a text that contains U+0000', '{"method":"sendMessage","text":"\u0000"}'],
  ['an empty array', '[]'],
])('a webhook answer with %s runs no call and counts as delivered', async (_, body) => {
  answer = () => body;
  await say('go');
  await calm();
  expect(arrived).toEqual(['go']);
  expect(await chat()).toEqual(['go']);
});

test('method calls do not run if the webhook answer is over the size limit', async () => {
  answer = () => JSON.stringify([send('a'), { padding: 'x'.repeat(70_000) }]);
  await say('go');
  await calm();
  expect(await chat()).toEqual(['go']);
});

test('a webhook answer runs at most a hundred method calls', async () => {
  answer = () => JSON.stringify(Array.from({ length: 103 }, (_, n) => send(`${n}`)));
  await say('go');
  await calm();
  const page = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100`));
  expect(page[0].text).toBe('99');
});

test('a call in a webhook answer can answer an inline query', async () => {
  await resultOf(service.app(owner, 'PUT', `/api/me/bots/${bot.id}/inline_mode`, { enabled: true }));
  const result = { type: 'article', id: '1', title: 'One', input_message_content: { message_text: 'one' } };
  answer = (inline_query_id) =>
    JSON.stringify({ method: 'answerInlineQuery', inline_query_id, results: [result], cache_time: 0 });
  const asked = { bot_id: bot.id, query: 'one' };
  const shown = await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/inline_query`, asked, 1));
  expect(shown.inline_query_id.split('-')[0]).toBe(arrived[0]);
  expect(shown.results).toMatchObject([{ id: '1', title: 'One' }]);
});
