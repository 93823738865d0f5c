import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { createFront } from '../support/role_process.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { quick } from '../support/tiers.js';

let service: Service;
const sources: EventSource[] = [];

onSharedService((running) => {
  service = running;
});
afterAll(() => {
  for (const source of sources) source.cut();
});

const urlOf = (front: number) => service.fronts[front % 2]?.url ?? '';

async function listen(user: TestUser, front: number): Promise<EventSource> {
  const source = await openEvents(urlOf(front), user.token);
  sources.push(source);
  return source;
}

const send = (bot: TestBot, chat_id: number, text: string, front = 0, more: object = {}) =>
  resultOf(service.bot(bot, 'sendMessage', { chat_id, text, ...more }, front));

const textsOf = (source: EventSource, chat: number) =>
  source.events.flatMap(({ event, data }) =>
    event === 'message' && data.chat.id === chat && data.text !== undefined ? [data.text] : [],
  );

test('an event stream that is resumed on another front shows each message once and in order', async () => {
  const user = await service.newUser('ann');
  const bots = [await service.newBot(user, 'one'), await service.newBot(user, 'two')] as const;
  for (const bot of bots) await service.openChat(user, bot);
  const events = await listen(user, 0);
  let sending = true;
  let cuts = 0;
  const cutter = (async () => {
    while (sending) {
      await sleep(15 + 30 * Math.random());
      events.cut();
      await sleep(20 * Math.random());
      await events.open(urlOf(++cuts));
    }
  })();
  let sent = 0;
  for (; sent < 200 || cuts < 9; sent++) {
    await send(bots[sent % 2] as TestBot, user.id, `n ${sent}`, sent % 3 === 0 ? 1 : 0);
    await sleep(4);
  }
  sending = false;
  await cutter;
  await eventually(() => expect(events.events.length).toBeGreaterThanOrEqual(sent));
  await sleep(1_200);
  const all = Array.from({ length: sent }, (_, i) => `n ${i}`);
  for (const [n, bot] of bots.entries())
    expect(textsOf(events, bot.id)).toEqual(all.filter((_, i) => i % 2 === n));
  expect(events.events).toHaveLength(sent);
});

test('after too many events, a resumed event stream tells the client to read the chat again', async () => {
  const user = await service.newUser('ann');
  const bot = await service.newBot(user, 'long');
  await service.openChat(user, bot);
  const events = await listen(user, 0);
  await send(bot, user.id, 'before');
  await events.received(({ data }) => data.text === 'before');
  events.cut();
  for (let i = 0; i < 300; i++) await send(bot, user.id, `missed ${i}`, i % 2);
  await events.open(urlOf(1));
  await send(bot, user.id, 'after');
  await events.received(({ data }) => data.text === 'after');
  expect(events.events.map(({ event, data }) => [event, data.text ?? data.chat_id])).toEqual([
    ['message', 'before'],
    ['reset', bot.id],
    ['message', 'after'],
  ]);
});

test('an open event stream shows a chat that is created or joined, with its first message', async () => {
  const [owner, user] = [await service.newUser('olga'), await service.newUser('ann')];
  const events = await listen(user, 1);
  for (let i = 0; i < 8; i++) {
    const bot = await service.newBot(owner, 'fresh');
    await service.openChat(user, bot);
    const first = await events.received(({ data }) => data.chat?.id === bot.id);
    expect(first).toMatchObject({ event: 'message', data: { text: '/start', from: { id: user.id } } });
    const group = await service.newGroup(owner, 'Team', [bot, user]);
    await send(bot, group, 'welcome');
    const welcome = await events.received(({ data }) => data.chat?.id === group && data.text !== undefined);
    expect(welcome).toMatchObject({ event: 'message', data: { text: 'welcome', chat: { type: 'group' } } });
  }
});

test('an event stream shows a message that is sent immediately after the person has joined their first group', async () => {
  const owner = await service.newUser('olga');
  const bot = await service.newBot(owner, 'first');
  for (let i = 0; i < (quick ? 8 : 25); i++) {
    const user = await service.newUser('ann');
    const group = await service.newGroup(owner, 'Team', [bot]);
    const events = await listen(user, 1);
    await resultOf(service.app(owner, 'PUT', `/api/chats/${group}/members/${user.id}`, {}));
    await send(bot, group, 'welcome');
    await events.received(({ data }) => data.text === 'welcome');
    events.cut();
  }
});

test('an event stream delivers messages, edits and deletions in order', async () => {
  const user = await service.newUser('ann');
  const bot = await service.newBot(user, 'kinds');
  await service.openChat(user, bot);
  const events = await listen(user, 1);
  const { message_id } = await send(bot, user.id, 'loud');
  await events.received(({ data }) => data.text === 'loud');
  await resultOf(service.bot(bot, 'editMessageText', { chat_id: user.id, message_id, text: 'changed' }));
  await events.received(({ data }) => data.text === 'changed');
  await resultOf(service.bot(bot, 'deleteMessage', { chat_id: user.id, message_id }, 1));
  await events.received(({ event }) => event === 'message_deleted');
  await send(bot, user.id, 'quiet', 0, { disable_notification: true });
  await events.received(({ data }) => data.text === 'quiet');
  expect(events.events.map(({ event, data }) => [event, data.text ?? data.message_id, data.notify])).toEqual([
    ['message', 'loud', true],
    ['edited_message', 'changed', undefined],
    ['message_deleted', message_id, undefined],
    ['message', 'quiet', false],
  ]);
});

test('chat_action reaches open event streams but is not stored', async () => {
  const [owner, user] = [await service.newUser('olga'), await service.newUser('ann')];
  const bot = await service.newBot(owner, 'busy');
  await service.openChat(user, bot);
  const group = await service.newGroup(owner, 'Team', [bot, user]);
  const [mine, others] = [await listen(user, 1), await listen(owner, 0)];
  await resultOf(service.bot(bot, 'sendChatAction', { chat_id: user.id, action: 'typing' }));
  await resultOf(service.bot(bot, 'sendChatAction', { chat_id: group, action: 'upload_photo' }));
  const from = { id: bot.id, is_bot: true, first_name: 'busy', username: bot.username };
  const shown = { chat_id: group, from_id: bot.id, from, action: 'upload_photo' };
  await others.received(({ event }) => event === 'chat_action');
  await eventually(() =>
    expect(mine.events.map(({ event, data }) => [event, data])).toEqual([
      ['chat_action', { chat_id: bot.id, from_id: bot.id, action: 'typing' }],
      ['chat_action', shown],
    ]),
  );
  expect(others.events.map(({ data }) => data)).toEqual([shown]);
  await mine.open(urlOf(0));
  await send(bot, group, 'end');
  await mine.received(({ data }) => data.text === 'end');
  expect(mine.events).toHaveLength(3);
});

test('callback_answer reaches only the person who pressed the button, even on a resumed stream', async () => {
  const [owner, presser] = [await service.newUser('olga'), await service.newUser('ann')];
  const bot = await service.newBot(owner, 'buttons');
  const group = await service.newGroup(owner, 'Team', [bot, presser]);
  const [mine, others] = [await listen(presser, 1), await listen(owner, 0)];
  const reply_markup = { inline_keyboard: [[{ text: 'a', callback_data: 'a' }]] };
  const { message_id } = await send(bot, group, 'press', 0, { reply_markup });
  await mine.received(({ data }) => data.text === 'press');
  await others.received(({ data }) => data.text === 'press');
  const path = `/api/chats/${group}/messages/${message_id}/callback`;
  const press = async (front: number) => {
    const { callback_query_id } = await resultOf(service.app(presser, 'POST', path, { data: 'a' }, front));
    await resultOf(service.bot(bot, 'answerCallbackQuery', { callback_query_id, text: 'psst' }, 1 - front));
    return callback_query_id as string;
  };
  const first = await press(0);
  await mine.received(({ data }) => data.callback_query_id === first);
  mine.cut();
  others.cut();
  const second = await press(1);
  await mine.open(urlOf(0));
  await others.open(urlOf(1));
  await send(bot, group, 'end');
  await mine.received(({ data }) => data.text === 'end');
  await others.received(({ data }) => data.text === 'end');
  const answer = (callback_query_id: string) => ({
    chat_id: group,
    callback_query_id,
    text: 'psst',
    show_alert: false,
  });
  const answers = (source: EventSource) => source.events.filter(({ event }) => event === 'callback_answer');
  expect(answers(mine).map(({ data }) => data)).toEqual([answer(first), answer(second)]);
  expect(answers(others)).toEqual([]);
});

test('a removed member gets no more events of the chat, on open or resumed streams', async () => {
  const [owner, open, resumed] = [
    await service.newUser('olga'),
    await service.newUser('ann'),
    await service.newUser('bob'),
  ];
  const bot = await service.newBot(owner, 'private');
  const group = await service.newGroup(owner, 'Team', [bot, open, resumed]);
  const received = [await listen(open, 1), await listen(resumed, 0), await listen(owner, 1)] as const;
  await send(bot, group, 'for all');
  for (const source of received) await source.received(({ data }) => data.text === 'for all');
  received[1].cut();
  for (const gone of [open, resumed])
    await resultOf(service.app(owner, 'DELETE', `/api/chats/${group}/members/${gone.id}`));
  for (let i = 0; i < 5; i++) await send(bot, group, `secret ${i}`, i % 2);
  await received[1].open(urlOf(1));
  await received[2].received(({ data }) => data.text === 'secret 4');
  await resultOf(service.bot(bot, 'sendChatAction', { chat_id: group, action: 'typing' }));
  await received[2].received(({ event }) => event === 'chat_action');
  await sleep(1_200);
  expect(textsOf(received[2], group)).toHaveLength(6);
  for (const source of received.slice(0, 2)) expect(textsOf(source, group)).toEqual(['for all']);
});

test('when a front shuts down, its event streams continue on another front without losing an event', async () => {
  const user = await service.newUser('ann');
  const bot = await service.newBot(user, 'leave');
  await service.openChat(user, bot);
  const leaver = await createFront(service.env, {});
  await leaver.start();
  onTestFinished(() => leaver.kill());
  const events = await openEvents(leaver.url, user.token);
  sources.push(events);
  await send(bot, user.id, 'n 0');
  await events.received(({ data }) => data.text === 'n 0');
  const leaving = performance.now();
  expect(await leaver.stop()).toBe('exit code 0');
  // A front that shuts down ends its event streams instead of waiting until all clients disconnect.
  expect(performance.now() - leaving).toBeLessThan(limits.shutdown_ms_max);
  await send(bot, user.id, 'n 1');
  await events.open(urlOf(0));
  await send(bot, user.id, 'n 2', 1);
  await events.received(({ data }) => data.text === 'n 2');
  expect(textsOf(events, bot.id)).toEqual(['n 0', 'n 1', 'n 2']);
});

test('an event stream reports each chat that the person joins, leaves or is removed from', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const seen = (source: EventSource) =>
    source.events.flatMap(({ event, data }) =>
      event === 'chat_joined' || event === 'chat_left' ? [[event, data.chat_id]] : [],
    );
  const [anns, bens] = [await listen(ann, 0), await listen(ben, 1)];
  const group = await service.newGroup(ann, 'Ferry', [ben]);
  const bot = await service.newBot(ann, 'clerk');
  await service.openChat(ben, bot);
  await eventually(() =>
    expect(seen(bens)).toEqual([
      ['chat_joined', group],
      ['chat_joined', bot.id],
    ]),
  );
  await resultOf(service.app(ann, 'DELETE', `/api/chats/${group}/members/${ben.id}`));
  await eventually(() => expect(seen(bens).at(-1)).toEqual(['chat_left', group]));
  const channel = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'Tides' }));
  await resultOf(service.app(ben, 'POST', `/api/chats/${channel.id}/join`));
  await eventually(() => expect(seen(bens).at(-1)).toEqual(['chat_joined', channel.id]));
  expect((await resultOf(service.app(ben, 'GET', `/api/chats/${channel.id}`))).title).toBe('Tides');
  await resultOf(service.app(ben, 'POST', `/api/chats/${channel.id}/leave`));
  await eventually(() => expect(seen(bens).at(-1)).toEqual(['chat_left', channel.id]));
  await eventually(() =>
    expect(seen(anns)).toEqual([
      ['chat_joined', group],
      ['chat_joined', channel.id],
    ]),
  );
});

test('when a person moves a read mark, every event stream of that person reports it, and no other stream does', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const group = await service.newGroup(ann, 'Marks', [ben]);
  const [first, second] = [await listen(ann, 0), await listen(ann, 1)];
  const other = await listen(ben, 1);
  const write = (text: string) =>
    resultOf(service.app(ben, 'POST', `/api/chats/${group}/messages`, { text }));
  const [early, late] = [(await write('one')).message_id, (await write('two')).message_id];
  const read = (message_id: number) =>
    resultOf(service.app(ann, 'POST', `/api/chats/${group}/read`, { message_id }));
  const seen = (source: EventSource) =>
    source.events.flatMap(({ event, data }) => (event === 'chat_read' ? [data] : []));
  await read(early);
  // A read mark cannot move beyond the newest message. The stream does not report a read mark that stays the same.
  for (const id of [late + 1_000, late, early]) await read(id);
  const expected = [early, late].map((message_id) => ({ chat_id: group, message_id }));
  for (const source of [first, second]) await eventually(() => expect(seen(source)).toEqual(expected));
  await write('three');
  await other.received(({ data }) => data.text === 'three');
  await first.received(({ data }) => data.text === 'three');
  expect([seen(first), seen(other)]).toEqual([expected, []]);
});

test('when a person mutes, pins or archives a chat, every event stream of that person reports it, and no other stream does', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const group = await service.newGroup(ann, 'Places', [ben]);
  const [first, second] = [await listen(ann, 0), await listen(ann, 1)];
  const other = await listen(ben, 1);
  const seen = (source: EventSource) =>
    source.events.flatMap(({ event, data }) => (event === 'chat_settings' ? [data] : []));
  const expected: object[] = [];
  for (const setting of ['mute', 'list_pin', 'archive'])
    for (const verb of ['PUT', 'DELETE']) {
      await resultOf(service.app(ann, verb, `/api/chats/${group}/${setting}`));
      expected.push({ chat_id: group });
    }
  for (const source of [first, second]) await eventually(() => expect(seen(source)).toEqual(expected));
  await resultOf(service.app(ben, 'POST', `/api/chats/${group}/messages`, { text: 'last' }));
  await other.received(({ data }) => data.text === 'last');
  expect(seen(other)).toEqual([]);
});
