import { Api } from 'grammy';
import { afterAll, describe, expect, test } from 'vitest';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const at = { latitude: 52.52, longitude: 13.405 };
const place = { ...at, title: 'Tower', address: 'Square 1', google_place_id: 'g-1' };
const person = { phone_number: '+49 30 1', first_name: 'Eve', last_name: 'Ng', vcard: 'BEGIN:VCARD' };

/**
 * Each row contains a method, its parameters, the expected fields of the message, and the kind and title in the preview
 * of the message.
 */
const kinds = [
  ['sendLocation', at, { location: at }, 'location', undefined],
  [
    'sendVenue',
    place,
    {
      location: at,
      venue: { location: at, title: 'Tower', address: 'Square 1', google_place_id: 'g-1' },
    },
    'venue',
    'Tower',
  ],
  ['sendContact', person, { contact: person }, 'contact', 'Eve Ng'],
] as const;

let service: Service;
let eviction: Eviction;
let ann: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  ann = await service.newUser('ann');
  bot = await service.newBot(ann, 'places');
  await service.openChat(ann, bot);
});
afterAll(async () => {
  await eviction?.close();
});

const call = (method: string, params: object, front = 0) =>
  service.bot(bot, method, { chat_id: ann.id, ...params }, front);
const newest = async () =>
  (await itemsOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=1`)))[0];

describe.each(kinds)('%s', (method, params, fields, kind, title) => {
  test('a sent location, venue or contact appears in the answer and in the chat of the person', async () => {
    const sent = await resultOf(call(method, params));
    expect(sent).toMatchObject(fields);
    for (const name of ['text', 'caption', 'photo']) expect(sent).not.toHaveProperty(name);
    expect(await newest()).toMatchObject({ message_id: sent.message_id, ...fields });
  });

  test('all parameters of a location, venue or contact can be sent as a form', async () => {
    const form = new URLSearchParams({ chat_id: String(ann.id) });
    for (const [name, value] of Object.entries(params)) form.set(name, String(value));
    const answer = await fetch(`${service.fronts[0]?.url}/bot${bot.token}/${method}`, {
      method: 'POST',
      body: form,
    });
    expect(((await answer.json()) as { result: object }).result).toMatchObject(fields);
  });

  test('the chat list shows a preview of a location, venue or contact', async () => {
    await resultOf(call(method, params));
    const chats = await itemsOf(service.app(ann, 'GET', '/api/chats'));
    const chat = chats.find(({ id }: { id: number }) => id === bot.id);
    expect(chat.last_message.kind).toBe(kind);
    expect(chat.last_message.file_name).toBe(title);
  });

  test('a location, venue or contact can be forwarded and copied', async () => {
    const { message_id } = await resultOf(call(method, params));
    const source = { from_chat_id: ann.id, message_id };
    const forwarded = await resultOf(call('forwardMessage', source, 1));
    expect(forwarded).toMatchObject({ ...fields, forward_origin: { type: 'user' } });
    await resultOf(call('copyMessage', { ...source, caption: 'ignored' }));
    const copy = await newest();
    expect(copy).toMatchObject(fields);
    expect(copy).not.toHaveProperty('caption');
  });

  test('only the keyboard of a location, venue or contact can be edited', async () => {
    const reply_markup = { inline_keyboard: [[{ text: 'More', callback_data: 'm' }]] };
    const { message_id } = await resultOf(call(method, { ...params, reply_markup }));
    const edited = await resultOf(call('editMessageReplyMarkup', { message_id }));
    expect(edited).toMatchObject(fields);
    expect(edited).not.toHaveProperty('reply_markup');
    for (const [edit, given, text] of [
      ['editMessageText', { text: 'x' }, 'there is no text in the message to edit'],
      ['editMessageCaption', { caption: 'x' }, 'there is no caption in the message to edit'],
    ] as const) {
      const { status, body } = await call(edit, { message_id, ...given });
      expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
    }
  });

  test('an evicted location, venue or contact is read back from Postgres', async () => {
    const { message_id } = await resultOf(call(method, params));
    await eviction.evict(new Set([String(ann.id), String(bot.id)]));
    expect(await newest()).toMatchObject({ message_id, ...fields });
  });

  test('a location, venue or contact can be posted in a channel', async () => {
    const channel = await resultOf(
      service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }),
    );
    const member = `/api/chats/${channel.id}/members/${bot.id}`;
    await resultOf(
      service.app(ann, 'PUT', member, { status: 'administrator', rights: { can_post_messages: true } }),
    );
    await resultOf(call(method, { ...params, chat_id: channel.id }));
    const [post] = await itemsOf(service.app(ann, 'GET', `/api/chats/${channel.id}/posts`));
    expect(post.media).toMatchObject({ type: kind });
  });
});

test('grammY sends locations, venues and contacts, and reads the answers', async () => {
  const api = new Api(bot.token, { apiRoot: service.fronts[1]?.url as string });
  expect((await api.sendLocation(ann.id, at.latitude, at.longitude)).location).toEqual(at);
  const venue = await api.sendVenue(ann.id, at.latitude, at.longitude, 'Tower', 'Square 1');
  expect(venue.venue).toEqual({ location: at, title: 'Tower', address: 'Square 1' });
  expect((await api.sendContact(ann.id, '+1', 'Eve')).contact).toEqual({
    phone_number: '+1',
    first_name: 'Eve',
  });
});

test.each([
  ['sendLocation', { longitude: 1 }, 'parameter "latitude" is required'],
  ['sendLocation', { latitude: 91, longitude: 1 }, 'parameter "latitude" must be a number from -90 to 90'],
  ['sendLocation', { latitude: '1e1', longitude: 1 }, 'parameter "latitude" must be a number from -90 to 90'],
  ['sendVenue', { ...place, title: '' }, 'parameter "title" is required'],
  [
    'sendVenue',
    { ...place, address: 'x'.repeat(257) },
    'parameter "address" must be a text of 1 to 256 characters',
  ],
  ['sendContact', { first_name: 'Eve' }, 'parameter "phone_number" is required'],
  [
    'sendContact',
    { ...person, vcard: 'x'.repeat(2_049) },
    'parameter "vcard" must be a text of 1 to 2048 characters',
  ],
])('%s refuses %j', async (method, params, text) => {
  const before = await newest();
  const { status, body } = await call(method, params);
  expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
  expect(await newest()).toEqual(before);
});
