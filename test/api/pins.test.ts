import { afterAll, describe, expect, test } from 'vitest';
import { type EventSource, openEvents } from '../clients/event_source.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let user: TestUser;
let bot: TestBot;
let other: TestBot;
let group: number;
let events: EventSource;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'pins');
  other = await service.newBot(user, 'listener');
  await service.openChat(user, bot);
  group = await service.newGroup(user, 'Team', [bot, other]);
  events = await openEvents(service.fronts[1]?.url ?? '', user.token);
});
afterAll(async () => {
  events?.cut();
});

const call = (method: string, params: object, front = 0, from = bot) =>
  service.bot(from, method, { ...params }, front);
const send = async (chat_id: number, text: string): Promise<number> =>
  (await resultOf(call('sendMessage', { chat_id, text }))).message_id;
const pinnedIn = async (chat_id: number) => (await resultOf(call('getChat', { chat_id }, 1))).pinned_message;
const refused = async (answer: ReturnType<typeof call>, code: number, description: string) =>
  expect((await answer).body).toEqual({ ok: false, error_code: code, description });
const grant = (rights: object, member = bot.id) =>
  resultOf(
    service.app(user, 'PUT', `/api/chats/${group}/members/${member}`, { status: 'administrator', rights }),
  );

interface ReceivedPin {
  readonly message_id: number;
  readonly pinned_message: { readonly message_id: number };
}

/** Polls until `count` pins have arrived, and then until no update arrives for a second. Returns all pins. */
async function pinsHeard(from: TestBot, count: number): Promise<ReceivedPin[]> {
  const received: ReceivedPin[] = [];
  for (let offset = 0; ; ) {
    const timeout = received.length < count ? 20 : 1;
    const updates = await resultOf(call('getUpdates', { offset, timeout }, 0, from));
    if (updates.length === 0) return received;
    offset = updates.at(-1).update_id + 1;
    for (const { message } of updates) if (message?.pinned_message) received.push(message);
  }
}
const drop = (from: TestBot) => resultOf(call('deleteWebhook', { drop_pending_updates: true }, 0, from));

describe('pins in a direct chat', () => {
  test('interface §3, §4.3.4: a new pin in a direct chat replaces the old pin and adds a service message', async () => {
    const [a, b] = [await send(user.id, 'a'), await send(user.id, 'b')];
    await drop(bot);
    const before = events.events.length;
    expect(await resultOf(call('pinChatMessage', { chat_id: user.id, message_id: a }))).toBe(true);
    expect((await pinnedIn(user.id)).message_id).toBe(a);
    expect(
      await resultOf(
        service.app(
          user,
          'POST',
          `/api/chats/${bot.id}/pin`,
          { message_id: b, disable_notification: true },
          1,
        ),
      ),
    ).toBe(true);
    expect(await pinnedIn(user.id)).toMatchObject({ message_id: b, text: 'b', from: { id: bot.id } });
    const chat = await resultOf(service.app(user, 'GET', `/api/chats/${bot.id}`));
    expect(chat.pinned_message).toMatchObject({ message_id: b, text: 'b' });
    const received = await pinsHeard(bot, 2);
    expect(received).toMatchObject([
      { from: { id: bot.id }, chat: { id: user.id }, pinned_message: { message_id: a, text: 'a' } },
      { from: { id: user.id }, chat: { id: user.id }, pinned_message: { message_id: b, text: 'b' } },
    ]);
    const ofPin = (message_id: number) =>
      events.received(
        ({ event, data }) => event === 'pinned' && data.pinned_message?.message_id === message_id,
      );
    expect((await ofPin(a)).data).toMatchObject({ chat_id: bot.id, notify: true });
    expect((await ofPin(b)).data).toMatchObject({ pinned_message: { text: 'b' }, notify: false });
    const service_messages = events.events
      .slice(before)
      .filter(({ event, data }) => event === 'message' && data.pinned_message)
      .map(({ data }) => [data.pinned_message.message_id, data.notify]);
    expect(service_messages).toEqual([
      [a, true],
      [b, false],
    ]);
    const [newest] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
    expect(newest.pinned_message).toMatchObject({ message_id: b, text: 'b' });

    const after = events.events.length;
    expect(await resultOf(call('unpinChatMessage', { chat_id: user.id }))).toBe(true);
    expect(await pinnedIn(user.id)).toBeUndefined();
    const gone = await events.received(({ event }) => event === 'pinned', after);
    expect(gone.data).toEqual({ chat_id: bot.id, notify: false });
  });

  test('behaviour §5: a repeated call that pins a message, or that unpins all messages, changes nothing', async () => {
    const a = await send(user.id, 'again');
    await resultOf(call('pinChatMessage', { chat_id: user.id, message_id: a }));
    await drop(bot);
    expect(await resultOf(call('pinChatMessage', { chat_id: user.id, message_id: a }, 1))).toBe(true);
    expect(await send(user.id, 'next')).toBe(a + 2);
    expect(await pinsHeard(bot, 0)).toEqual([]);
    expect(await resultOf(call('unpinAllChatMessages', { chat_id: user.id }))).toBe(true);
    expect(await resultOf(call('unpinAllChatMessages', { chat_id: user.id }))).toBe(true);
    expect(await pinnedIn(user.id)).toBeUndefined();
    expect(await send(user.id, 'no service message')).toBe(a + 3);
  });

  test('behaviour §5: unknown, deleted and service messages cannot be pinned', async () => {
    const a = await send(user.id, 'a');
    const toPin = 'Bad Request: message to pin not found';
    const toUnpin = 'Bad Request: message to unpin not found';
    const pin = (message_id: number) => call('pinChatMessage', { chat_id: user.id, message_id });
    await refused(pin(a + 1_000), 400, toPin);
    await refused(pin(0), 400, toPin);
    await resultOf(pin(a));
    await refused(pin(a + 1), 400, "Bad Request: service messages can't be pinned");
    await refused(call('unpinChatMessage', { chat_id: user.id, message_id: a + 1 }), 400, toUnpin);
    const path = `/api/chats/${bot.id}/pin`;
    await refused(service.app(user, 'DELETE', path, { message_id: a + 1 }), 400, toUnpin);
    await resultOf(call('deleteMessage', { chat_id: user.id, message_id: a }));
    expect(await pinnedIn(user.id)).toBeUndefined();
    await refused(call('unpinChatMessage', { chat_id: user.id }), 400, toUnpin);
    await refused(service.app(user, 'DELETE', path), 400, toUnpin);
    await refused(pin(a), 400, toPin);
  });
});

describe('pins in a group', () => {
  const right = 'Bad Request: not enough rights to manage pinned messages in the chat';

  test('interface §5.11: a bot needs can_pin_messages to pin in a group', async () => {
    const a = await send(group, 'in the group');
    const pin = () => call('pinChatMessage', { chat_id: group, message_id: a });
    await refused(pin(), 400, right);
    await refused(call('unpinChatMessage', { chat_id: group }), 400, right);
    await refused(call('unpinAllChatMessages', { chat_id: group }), 400, right);
    await grant({ can_edit_messages: true });
    await refused(pin(), 400, right);
    await grant({ can_pin_messages: true });
    await Promise.all([drop(bot), drop(other)]);
    expect(await resultOf(pin())).toBe(true);
    const chat = { id: group, type: 'group' };
    const byBot = { from: { id: bot.id }, chat, pinned_message: { message_id: a } };
    expect(await pinsHeard(bot, 1)).toMatchObject([byBot]);
    const b = await send(group, 'for a person to pin');
    expect(await resultOf(service.app(user, 'POST', `/api/chats/${group}/pin`, { message_id: b }))).toBe(
      true,
    );
    const byPerson = { from: { id: user.id }, chat, pinned_message: { message_id: b } };
    for (const listener of [bot, other]) expect(await pinsHeard(listener, 1)).toMatchObject([byPerson]);
    expect(await resultOf(pin())).toBe(true);
    const member = await service.newUser('bob');
    const path = `/api/chats/${group}/pin`;
    await refused(
      service.app(member, 'POST', path, { message_id: a }),
      403,
      'Forbidden: user is not a member of the chat',
    );
    await grant({}, other.id);
    await refused(call('unpinChatMessage', { chat_id: group }, 0, other), 400, right);
    expect(await resultOf(service.app(user, 'DELETE', path, { message_id: a }))).toBe(true);
  });
});

test('interface §3: 200 simultaneous pins on two fronts leave one message pinned', async () => {
  const ids: number[] = [];
  for (let i = 0; i < 200; i += 20)
    ids.push(...(await Promise.all(Array.from({ length: 20 }, (_, j) => send(user.id, `m ${i + j}`)))));
  const last = Math.max(...ids);
  await drop(bot);
  const answers = await Promise.all(
    ids.map((message_id, i) => call('pinChatMessage', { chat_id: user.id, message_id }, i % 2)),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(200);
  expect(await send(user.id, 'after')).toBe(last + 201);
  const received = await pinsHeard(bot, 200);
  expect(received.map(({ message_id }) => message_id)).toEqual(
    Array.from({ length: 200 }, (_, i) => last + 1 + i),
  );
  const listed = received.map(({ pinned_message }) => pinned_message.message_id);
  expect([...listed].sort((x, y) => x - y)).toEqual([...ids].sort((x, y) => x - y));
  expect((await pinnedIn(user.id)).message_id).toBe(listed.at(-1));
});
