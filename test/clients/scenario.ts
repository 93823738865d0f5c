import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { eventually, openEvents } from './event_source.js';

/** Sends messages over alternating fronts and waits for each echo. Every echo must appear once and in order. */
export async function expectEcho(
  service: Service,
  user: TestUser,
  bot: TestBot,
  rounds: number,
): Promise<void> {
  const events = await openEvents(service.fronts[1]?.url ?? '', user.token);
  const path = `/api/chats/${bot.id}/messages`;
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const started = performance.now();
    await resultOf(service.app(user, 'POST', path, { text: `round ${i} 👋` }, i % 2));
    const { data } = await events.received(({ data }) => data.text === `echo: round ${i} 👋`);
    expect(data).toMatchObject({ from: { id: bot.id, is_bot: true }, chat: { id: bot.id, type: 'private' } });
    times.push(performance.now() - started);
  }
  // Each message is sent while a poll waits. The message must wake the poll immediately, because a waiting poll checks
  // the queue only once a second. The test compares only the fastest echo, because a busy machine may delay the other
  // echoes.
  expect(Math.min(...times.slice(1))).toBeLessThan(500);
  events.cut();

  // Sends a burst. Many updates are then pending at the next poll, and each is answered once and in order.
  const burst = Array.from({ length: 30 }, (_, i) => `burst ${i}`);
  for (const [i, text] of burst.entries()) await resultOf(service.app(user, 'POST', path, { text }, i % 2));
  const texts = async () =>
    (await itemsOf(service.app(user, 'GET', `${path}?limit=100`, undefined, 1)))
      .reverse()
      .map((message: { text: string }) => message.text);
  await eventually(async () => expect((await texts()).at(-1)).toBe('echo: burst 29'));
  const echoed = (await texts()).filter((text: string) => text.startsWith('echo: '));
  const rounded = Array.from({ length: rounds }, (_, i) => `echo: round ${i} 👋`);
  expect(echoed).toEqual([...rounded, ...burst.map((text) => `echo: ${text}`)]);
}

export const menuOf = (n: number) => ({
  text: `count ${n}`,
  inline_keyboard: [
    [
      { text: '+', callback_data: `add:${n}` },
      { text: 'same', callback_data: `same:${n}` },
    ],
  ],
});

/**
 * Tests a menu with a counter. The bot sends the menu as the answer to `/menu`. When the user presses `add:<n>`, the
 * bot answers `now <n+1>` and edits the menu. Each press permits one edit, so the bot never gets 429. When the user
 * presses `same:<n>`, the bot tries an edit that changes nothing, and answers with the error text.
 */
export async function expectMenu(service: Service, user: TestUser, bot: TestBot): Promise<void> {
  const events = await openEvents(service.fronts[1]?.url ?? '', user.token);
  const path = `/api/chats/${bot.id}/messages`;
  await resultOf(service.app(user, 'POST', path, { text: '/menu' }));
  const { data: shown } = await events.received(({ data }) => data.text === 'count 0');
  expect(shown.reply_markup.inline_keyboard).toEqual(menuOf(0).inline_keyboard);

  const press = (data: string, front: number) =>
    service.app(user, 'POST', `${path}/${shown.message_id}/callback`, { data }, front);
  for (const [n, front] of [0, 1, 0].entries()) {
    const { callback_query_id } = await resultOf(press(`add:${n}`, front));
    const answer = await events.received(
      ({ event, data }) => event === 'callback_answer' && data.callback_query_id === callback_query_id,
    );
    expect(answer.data).toEqual({
      chat_id: bot.id,
      callback_query_id,
      text: `now ${n + 1}`,
      show_alert: n === 2,
    });
    const edited = await events.received(({ data }) => data.text === `count ${n + 1}`);
    expect(edited.event).toBe('edited_message');
    expect(edited.data).toMatchObject({ message_id: shown.message_id, edit_date: expect.any(Number) });
    expect(edited.data.reply_markup.inline_keyboard).toEqual(menuOf(n + 1).inline_keyboard);
  }

  const gone = await press('add:0', 1);
  expect([gone.status, gone.body.description]).toEqual([400, 'Bad Request: button not found']);
  const { callback_query_id } = await resultOf(press('same:3', 0));
  const refused = await events.received(({ data }) => data.callback_query_id === callback_query_id);
  expect(refused.data.text).toContain('message is not modified');
  await sleep(50);
  expect(events.events.filter(({ event }) => event === 'edited_message')).toHaveLength(3);
  events.cut();
}

/**
 * Sends `/start <payload>` in a direct chat, and `/ping` in a group that also contains another bot. Sends `/ping`
 * without a username, with the username of the bot, and with the username of the other bot.
 */
export async function expectCommands(
  service: Service,
  user: TestUser,
  bot: TestBot,
  other: TestBot,
): Promise<void> {
  const newest = async (chat: number, after: number) =>
    (await itemsOf(service.app(user, 'GET', `/api/chats/${chat}/messages?limit=20`, undefined, 1)))
      .filter(
        ({ message_id, from }: { message_id: number; from: { id: number } }) =>
          message_id > after && from.id === bot.id,
      )
      .map(({ text }: { text: string }) => text);

  const started = await service.openChat(user, bot, 'ref_42-A');
  expect(started.text).toBe('/start ref_42-A');
  expect(started.entities).toEqual([{ type: 'bot_command', offset: 0, length: 6 }]);
  await eventually(async () =>
    expect(await newest(bot.id, started.message_id)).toEqual(['payload ref_42-A']),
  );
  const bare = await service.openChat(user, bot);
  await eventually(async () => expect(await newest(bot.id, bare.message_id)).toEqual(['payload']));

  const group = await service.newGroup(user, 'Team', [bot, other]);
  const say = (text: string, front: number) =>
    resultOf(service.app(user, 'POST', `/api/chats/${group}/messages`, { text }, front));
  let after = 0;
  for (const [i, text] of [
    '/ping a b',
    `/ping@${bot.username} c`,
    `/ping@${bot.username.toUpperCase()} d`,
  ].entries()) {
    const { message_id } = await say(text, i % 2);
    await eventually(async () =>
      expect(await newest(group, message_id)).toEqual([`pong ${text.split(' ').slice(1).join(' ')}`]),
    );
    after = message_id + 1;
  }
  await say(`/ping@${other.username} not for us`, 1);
  await say('a word about /ping in the middle', 0);
  // The bot gets updates in order. An answer to this last message therefore shows that the bot has ignored the messages
  // before it.
  await say('/ping last', 1);
  await eventually(async () => expect(await newest(group, after)).toEqual(['pong last']));
}
