/** Tests the actions, such as typing, that people show to each other. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, openEvents } from '../clients/event_source.js';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
const sources: EventSource[] = [];

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
});
afterAll(() => {
  for (const source of sources) source.cut();
});

async function listen(user: TestUser, front = 0): Promise<EventSource> {
  const source = await openEvents(service.fronts[front]?.url ?? '', user.token);
  sources.push(source);
  return source;
}
const show = (who: TestUser, chat: number, action = 'typing') =>
  service.app(who, 'POST', `/api/chats/${chat}/action`, { action });
const say = (who: TestUser, chat: number, text: string) =>
  resultOf(service.app(who, 'POST', `/api/chats/${chat}/messages`, { text }));
const openChat = async (who: TestUser, other: TestUser): Promise<number> =>
  (await resultOf(service.app(who, 'POST', `/api/people/${other.username}/chat`, {}))).id;
const shownBy = ({ events }: EventSource) =>
  events.filter(({ event }) => event === 'chat_action').map(({ data }) => data);
const refusal = async (who: TestUser, chat: number, action?: string) => {
  const { status, body } = await show(who, chat, action);
  return [status, body.description];
};

test('the other members of a chat see an action and its author, and the action is not stored', async () => {
  const [group, chat] = [await service.newGroup(ann, 'Team', [ben]), await openChat(ann, ben)];
  const [own, others] = [await listen(ann), await listen(ben, 1)];
  await resultOf(show(ann, group));
  await resultOf(show(ann, chat, 'record_voice'));
  await say(ann, group, 'end');
  await others.received(({ data }) => data.text === 'end');
  await own.received(({ data }) => data.text === 'end');
  const from = { id: ann.id, is_bot: false, first_name: 'ann', username: ann.username };
  const events = shownBy(others);
  expect(events).toHaveLength(2);
  expect(events).toContainEqual({ chat_id: group, from_id: ann.id, from, action: 'typing' });
  expect(events).toContainEqual({ chat_id: chat, from_id: ann.id, from, action: 'record_voice' });
  expect(shownBy(own)).toEqual([]);
  expect(await itemsOf(service.app(ben, 'GET', `/api/chats/${chat}/messages`))).toEqual([]);
});

test('actions of people are not shown to bots and not shown in channels', async () => {
  const bot = await service.newBot(ann, 'quiet');
  await service.openChat(ann, bot);
  const group = await service.newGroup(ann, 'Team', [bot, ben]);
  const made = { type: 'channel', title: 'News' };
  const { id: channel } = await resultOf(service.app(ann, 'POST', '/api/chats', made));
  await resultOf(service.app(ben, 'POST', `/api/chats/${channel}/join`));
  const events = await listen(ben);
  for (const chat of [bot.id, group, channel]) await resultOf(show(ann, chat));
  await say(ann, channel, 'end');
  await events.received(({ data }) => data.text === 'end');
  expect(shownBy(events).map(({ chat_id }) => chat_id)).toEqual([group]);
  const updates = await resultOf(service.bot(bot, 'getUpdates', { limit: 100 }));
  expect(JSON.stringify(updates)).not.toContain('typing');
});

test('after one person blocks another, neither can show actions in their chat', async () => {
  const chat = await openChat(ann, ben);
  await resultOf(service.app(ben, 'POST', `/api/people/${ann.username}/block`, {}));
  const closed = [403, "Forbidden: you can't write to this person"];
  expect([await refusal(ann, chat), await refusal(ben, chat)]).toEqual([closed, closed]);
});

test('a person cannot show an action in a chat to which they may not send messages', async () => {
  const group = await service.newGroup(ann, 'Team', [ben]);
  const stranger = await service.newUser('eve');
  expect(await refusal(stranger, group)).toEqual([403, 'Forbidden: user is not a member of the chat']);
  expect(await refusal(stranger, -1)).toEqual([404, 'Not Found: chat not found']);
  expect(await refusal(ann, group, 'dance')).toEqual([400, 'Bad Request: wrong parameter action in request']);
});

test('a person who shows too many actions gets 429', async () => {
  const group = await service.newGroup(ann, 'Team', [ben]);
  const answers = await Promise.all(
    Array.from({ length: 3 * limits.actions_per_person_max }, () => show(ann, group)),
  );
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(answers.length - refused.length).toBeGreaterThanOrEqual(limits.actions_per_person_max);
  await resultOf(show(ben, group));
});
