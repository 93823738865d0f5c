import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let alice: TestUser;
let bob: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'helper');
});

const me = (user: TestUser, verb: string, path: string, body?: unknown) =>
  resultOf(service.app(user, verb, path, body));

describe('people forward messages', () => {
  const forward = (who: TestUser, to: number, from: number, message_ids: readonly number[], front = 0) =>
    service.app(who, 'POST', `/api/chats/${to}/forward`, { from_chat_id: from, message_ids }, front);

  test('a person forwards messages to other chats, which show the original sender', async () => {
    const [from, to, channel] = await Promise.all([
      service.newGroup(alice, 'From', [bob, bot]),
      service.newGroup(alice, 'To', [bot]),
      me(alice, 'POST', '/api/chats', { type: 'channel', title: 'Paper' }).then(({ id }) => id as number),
    ]);
    await service.openChat(alice, bot);
    const hers = await me(alice, 'POST', `/api/chats/${from}/messages`, { text: 'hers' });
    const his = await me(bob, 'POST', `/api/chats/${from}/messages`, { text: 'his' });
    const posted = await me(alice, 'POST', `/api/chats/${channel}/messages`, { text: 'posted' });
    const response = await resultOf(
      service.bot(bot, 'sendMessage', {
        chat_id: alice.id,
        text: 'told',
        reply_markup: { inline_keyboard: [[{ text: 'key', callback_data: '1' }]] },
      }),
    );
    const last = async (n: number) =>
      (await me(alice, 'GET', `/api/chats/${to}/messages?limit=${n}`)).items.toReversed();
    const ids = await resultOf(forward(alice, to, from, [his.message_id, 999_999, hers.message_id], 1));
    const [first, second] = await last(2);
    expect(ids).toEqual([{ message_id: first.message_id }, { message_id: second.message_id }]);
    expect([first, second]).toMatchObject([
      { text: 'his', from: { id: alice.id }, forward_origin: { type: 'user', sender_user: { id: bob.id } } },
      { text: 'hers', from: { id: alice.id }, forward_origin: { sender_user: { id: alice.id } } },
    ]);
    await resultOf(forward(alice, to, bot.id, [response.message_id]));
    const [direct] = await last(1);
    expect(direct.forward_origin).toMatchObject({ type: 'user', sender_user: { id: bot.id, is_bot: true } });
    expect(direct.reply_markup).toBeUndefined();
    await resultOf(forward(alice, to, channel, [posted.message_id]));
    expect((await last(1))[0].forward_origin).toMatchObject({ type: 'channel', chat: { id: channel } });
    // A message that is forwarded again still names its original sender. The bot of a direct chat gets an update about
    // the message.
    await resultOf(service.bot(bot, 'getUpdates', { offset: -1 }));
    await resultOf(forward(alice, bot.id, to, [first.message_id]));
    const received = await resultOf(service.bot(bot, 'getUpdates', { offset: -1 }));
    expect(received[0].message).toMatchObject({
      chat: { id: alice.id },
      text: 'his',
      forward_origin: { sender_user: { id: bob.id } },
    });
  });

  test('nobody can forward protected messages, or messages of a chat that they are not a member of', async () => {
    const [group, channel] = await Promise.all([
      service.newGroup(alice, 'Ours', [bot]),
      me(alice, 'POST', '/api/chats', { type: 'channel', title: 'Read' }).then(({ id }) => id as number),
    ]);
    const [begun] = await Promise.all([
      service.openChat(bob, bot),
      me(bob, 'POST', `/api/chats/${channel}/join`),
    ]);
    const text = { chat_id: group, text: 'secret' };
    const open = await resultOf(service.bot(bot, 'sendMessage', text));
    const kept = await resultOf(service.bot(bot, 'sendMessage', { ...text, protect_content: true }));
    const refusals = [
      [alice, channel, group, [open.message_id, kept.message_id], 'has protected content'],
      [alice, channel, group, [999_999], 'there are no messages to forward'],
      [alice, channel, group, [], 'message identifiers are not specified'],
      [alice, -999_999_999, group, [open.message_id], 'chat not found'],
      [bob, bot.id, group, [open.message_id], 'user is not a member of the chat'],
      [bob, channel, bot.id, [begun.message_id], 'need administrator rights in the channel chat'],
    ] as const;
    for (const [who, to, from, ids, why] of refusals)
      expect((await forward(who, to, from, ids)).body.description, why).toContain(why);
    expect(await me(alice, 'GET', `/api/chats/${channel}/messages`)).toEqual({ items: [] });
    const repeated = () =>
      request(`${service.fronts[0].url}/api/chats/${channel}/forward`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${alice.token}`,
          'content-type': 'application/json',
          'idempotency-key': 'again',
        },
        body: JSON.stringify({ from_chat_id: group, message_ids: [open.message_id] }),
      }).then(({ body }) => body.json());
    expect(await repeated()).toEqual(await repeated());
    expect((await me(alice, 'GET', `/api/chats/${channel}/messages`)).items).toHaveLength(1);
  });

  test('a forwarded message of the management bot does not show its token', async () => {
    const manager = await me(alice, 'GET', '/api/bots/petrelbot');
    const newest = async () => (await me(alice, 'GET', `/api/chats/${manager.id}/messages?limit=1`)).items[0];
    const answered = async ({ message_id }: { message_id: number }) => {
      await expect.poll(async () => (await newest()).message_id).toBeGreaterThan(message_id);
      return newest();
    };
    const ask = async (text: string) =>
      answered(await me(alice, 'POST', `/api/chats/${manager.id}/messages`, { text }));
    // The greeting of the management bot must not count as the answer to the next command.
    await answered(await service.openChat(alice, manager));
    const username = 'forwarded_token_bot';
    for (const text of ['/newbot', 'Careless']) await ask(text);
    const answer = await ask(username);
    const { items: own }: { items: Array<{ id: number; username: string }> } = await me(
      alice,
      'GET',
      '/api/me/bots',
    );
    const made = own.find((one) => one.username === username)?.id;
    const { token } = await me(alice, 'GET', `/api/me/bots/${made}/token`);
    expect(answer.text).toContain(token);
    const group = await service.newGroup(alice, 'Careless', [bob]);
    await resultOf(forward(alice, group, manager.id, [answer.message_id]));
    for (const who of [alice, bob]) {
      const [sent] = (await me(who, 'GET', `/api/chats/${group}/messages`)).items;
      expect(sent.text.length).toBeGreaterThan(10);
      expect(sent.text).not.toContain(token);
    }
  });
});

test('bots see immediately that a person has changed the language', async () => {
  const carol = await service.newUser('carol');
  await service.openChat(carol, bot);
  const hear = async () => {
    await me(carol, 'POST', `/api/chats/${bot.id}/messages`, { text: 'hello' });
    return (await resultOf(service.bot(bot, 'getUpdates', { offset: -1 })))[0].message.from.language_code;
  };
  // Both fronts have cached this person.
  for (const front of [0, 1]) await resultOf(service.app(carol, 'GET', '/api/me', undefined, front));
  expect(await hear()).toBeUndefined();
  const set = (language_code: unknown) => service.app(carol, 'PATCH', '/api/me', { language_code }, 1);
  expect(await resultOf(set('hy'))).toMatchObject({ id: carol.id, language_code: 'hy' });
  expect((await me(carol, 'GET', '/api/me')).language_code).toBe('hy');
  expect(await hear()).toBe('hy');
  await me(alice, 'PATCH', `/api/me/bots/${bot.id}`, { name: { hy: 'Օգնական' } });
  expect((await me(carol, 'GET', `/api/bots/${bot.username}`)).name).toBe('Օգնական');
  for (const wrong of ['HY', 'hye', 7])
    expect((await set(wrong)).body.description).toBe('Bad Request: invalid language code specified');
  expect((await resultOf(set(undefined))).language_code).toBe('hy');
  expect((await resultOf(set('ru'))).language_code).toBe('ru');
  expect(await hear()).toBe('ru');
});
