/**
 * Tests that a caller cannot learn anything about strangers by trying ids. The id of a stranger gets the same answer as
 * an id that does not exist.
 */
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
/** A person who has started the bot and is in no group. */
let dora: TestUser;
/** A person who only subscribes to the public channel, and is in no other chat. */
let eve: TestUser;
let sam: TestUser;
let bot: TestBot;
/** A bot that subscribes to the public channel as a plain member. */
let reader: TestBot;
let group: number;
let channel: number;
const nobody = 999_999_999;

async function newUser(name: string): Promise<TestUser> {
  const body = {
    username: `${name}_stranger_test`,
    first_name: name,
    last_name: 'Last',
    language_code: 'ru',
  };
  const admin = { token: service.adminToken };
  const { user, token } = await resultOf(service.app(admin, 'POST', '/api/admin/users', body));
  return { id: user.id, username: body.username, first_name: name, token };
}

onSharedService(async (running) => {
  service = running;
  [ann, ben, dora, eve, sam] = [
    await newUser('ann'),
    await newUser('ben'),
    await newUser('dora'),
    await newUser('eve'),
    await newUser('sam'),
  ];
  bot = await service.newBot(ann, 'guide');
  reader = await service.newBot(eve, 'reader');
  await service.openChat(dora, bot);
  const made = (type: string) =>
    resultOf(service.app(ann, 'POST', '/api/chats', { type, title: type, username: `strangers_${type}` }));
  group = (await made('group')).id;
  channel = (await made('channel')).id;
  const admin = {
    status: 'administrator',
    rights: { can_post_messages: true, can_edit_messages: true, can_pin_messages: true },
  };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, admin));
  await resultOf(service.app(ann, 'PUT', `/api/chats/${channel}/members/${bot.id}`, admin));
  await resultOf(service.app(ann, 'PUT', `/api/chats/${channel}/members/${reader.id}`, {}));
  await resultOf(service.app(ben, 'POST', `/api/chats/${group}/join`));
  await resultOf(service.app(eve, 'POST', `/api/chats/${channel}/join`));
}, 60_000);

const link = (id: number) => `<a href="tg://user?id=${id}">x</a>`;
const everybody = () => [ann, ben, dora, eve, sam].map(({ id }) => id);
const text = () => [...everybody(), nobody].map(link).join('');
const html = () => ({ parse_mode: 'HTML', text: text() });
const caption = () => ({ parse_mode: 'HTML', caption: text() });

interface Entity {
  readonly type: string;
  readonly user: { readonly id: number };
}
interface Marked {
  readonly entities?: readonly Entity[];
  readonly caption_entities?: readonly Entity[];
}

const namedBy = (shown: Marked) =>
  (shown.entities ?? shown.caption_entities ?? []).map(({ user }) => user.id);

test('a bot can mention only people who share a chat with it', async () => {
  const known = [ann.id, ben.id, dora.id, eve.id];
  const photo = 'https://example.com/a.jpg';
  const as = (method: string, params: Record<string, unknown>) => resultOf(service.bot(bot, method, params));
  const sent = await as('sendMessage', { chat_id: group, ...html() });
  expect(namedBy(sent)).toEqual(known);
  const edit = { chat_id: group, message_id: sent.message_id };
  expect(namedBy(await as('editMessageText', { ...edit, ...html(), text: `${text()}!` }))).toEqual(known);
  const shown = await as('sendPhoto', { chat_id: group, photo, ...caption() });
  expect(namedBy(shown)).toEqual(known);
  const captioned = { chat_id: group, message_id: shown.message_id, ...caption() };
  const edited = await as('editMessageCaption', { ...captioned, caption: `${text()}!` });
  expect(namedBy(edited)).toEqual(known);
  const album = [1, 2].map((n) => ({ type: 'photo', media: `https://example.com/${n}.jpg`, ...caption() }));
  for (const message of await as('sendMediaGroup', { chat_id: group, media: album }))
    expect(namedBy(message)).toEqual(known);
  const post = await as('createPost', { chat_id: channel, ...html() });
  expect(namedBy(post)).toEqual(known);
  const changed = await as('editPost', { post_id: post.id, ...html(), text: `${text()}!` });
  expect(namedBy(changed)).toEqual(known);
  const given = everybody().map((id, i) => ({ type: 'text_mention', offset: i, length: 1, user: { id } }));
  const plain = await as('sendMessage', { chat_id: group, text: 'xxxxx', entities: given });
  expect(namedBy(plain)).toEqual(known);
});

test('a person can mention themselves and people with whom they share a group', async () => {
  const said = await resultOf(service.app(ben, 'POST', `/api/chats/${group}/messages`, html()));
  expect(namedBy(said)).toEqual([ann.id, ben.id]);
  const path = `/api/chats/${group}/messages/${said.message_id}`;
  const edited = await resultOf(service.app(ben, 'PATCH', path, { parse_mode: 'HTML', text: `${text()}!` }));
  expect(namedBy(edited)).toEqual([ann.id, ben.id]);
});

test('a subscriber of a channel can mention administrators of the channel, but not other subscribers', async () => {
  const chat = (await service.openChat(eve, reader)).chat.id;
  const said = await resultOf(service.app(eve, 'POST', `/api/chats/${chat}/messages`, html()));
  expect(namedBy(said)).toEqual([ann.id, eve.id]);
});

test('a mention contains neither the language nor the external id of the person', async () => {
  const { message_id } = await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, ...html() }));
  const [message] = await itemsOf(service.app(ben, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(message.message_id).toBe(message_id);
  for (const { user } of message.entities)
    expect(Object.keys(user).sort()).toEqual(['first_name', 'id', 'is_bot', 'last_name', 'username']);
});

test('a forward contains neither the language nor the external id of the author', async () => {
  const { message_id } = await resultOf(
    service.app(ben, 'POST', `/api/chats/${group}/messages`, { text: 'to be forwarded' }),
  );
  const to = { chat_id: dora.id, from_chat_id: group, message_id };
  const { forward_from, forward_origin } = await resultOf(service.bot(bot, 'forwardMessage', to));
  expect(forward_from).toEqual({
    id: ben.id,
    is_bot: false,
    first_name: 'ben',
    last_name: 'Last',
    username: ben.username,
  });
  expect(forward_origin.sender_user).toEqual(forward_from);
});

test('getChatMember gives the same answer for a stranger as for an unknown id', async () => {
  const ask = (by: TestBot, user_id: number) =>
    service.bot(by, 'getChatMember', { chat_id: channel, user_id });
  const unknown = await ask(reader, nobody);
  expect(unknown.body.description).toBe('Bad Request: user not found');
  for (const id of [ben.id, dora.id, sam.id]) expect((await ask(reader, id)).body).toEqual(unknown.body);
  expect((await resultOf(ask(reader, eve.id))).status).toBe('member');
  // A person who shares another chat with the bot has the status "left".
  const { status, user } = await resultOf(ask(bot, dora.id));
  expect([status, user.id, user.language_code]).toEqual(['left', dora.id, undefined]);
  expect((await ask(bot, sam.id)).body).toEqual(unknown.body);
});

test('a stranger sees the names of people in a post and its reactions, but not their language or external id', async () => {
  const { message_id } = await resultOf(
    service.app(ann, 'POST', `/api/chats/${channel}/messages`, { text: 'for all' }),
  );
  const posts = await itemsOf(service.app(sam, 'GET', `/api/chats/${channel}/posts`));
  const post = posts.find((each: { message_id: number }) => each.message_id === message_id);
  expect(Object.keys(post.author).sort()).toEqual(['first_name', 'id', 'is_bot', 'last_name', 'username']);
  const path = `/api/posts/${post.id}/reactions`;
  await service.app(eve, 'POST', path, { emoji: '🔥' });
  // Waits, because the list of reactions is read from Postgres, and the flusher writes the reaction a little later.
  const reactor = async () => (await resultOf(service.app(sam, 'GET', path))).items[0]?.user;
  await expect.poll(reactor, { timeout: 20_000 }).toMatchObject({ id: eve.id });
  const { language_code, external_id } = await reactor();
  expect([language_code, external_id]).toEqual([undefined, undefined]);
});

test('a member of a group does not see the languages of other members', async () => {
  const { items } = await resultOf(service.app(ben, 'GET', `/api/chats/${group}/members`));
  for (const { user } of items) expect(user.language_code).toBeUndefined();
  expect((await resultOf(service.app(ben, 'GET', '/api/me'))).language_code).toBe('ru');
});

test('the number of look-ups of strangers is limited per caller', async () => {
  const curious = await service.newBot(ann, 'curious');
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${curious.id}`, {}));
  const look = (who: TestBot) => service.bot(who, 'getChatMember', { chat_id: group, user_id: sam.id });
  const answers = await Promise.all(Array.from({ length: 300 }, () => look(curious)));
  const looked = answers.filter(({ status }) => status === 400).length;
  expect(looked).toBeGreaterThanOrEqual(limits.stranger_look_ups_max);
  expect(looked).toBeLessThan(limits.stranger_look_ups_max + 100);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(300 - looked);
  await resultOf(service.bot(curious, 'getChatMember', { chat_id: group, user_id: ben.id }));
  expect((await look(bot)).status).toBe(400);
});
