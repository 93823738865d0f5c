import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { beforeAll, expect, test } from 'vitest';
import type { Service, TestBot, TestUser } from '../support/service.js';
import { itemsOf, resultOf } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;
let picture: Buffer;

onSharedService(async (running) => {
  service = running;
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  bot = await service.newBot(ann, 'keeper');
});
beforeAll(async () => {
  picture = await sharp({ create: { width: 300, height: 200, channels: 3, background: '#268' } })
    .png()
    .toBuffer();
});

type Json = Record<string, never>;
const app = (who: TestUser, verb: string, path: string, body?: Readonly<Record<string, unknown>>) =>
  service.app(who, verb, path, body);
const ok = (...call: Parameters<typeof app>) => resultOf(app(...call));
const call = (method: string, params: Readonly<Record<string, unknown>>) => service.bot(bot, method, params);
const bad = (text: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${text}` });

async function newGroup(rights: object = { can_change_info: true }): Promise<number> {
  const chat = await service.newGroup(ann, 'Garden');
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${bot.id}`, { status: 'administrator', rights });
  await resultOf(call('getUpdates', { offset: -1 }));
  return chat;
}

const history = (chat: number) => itemsOf(app(ann, 'GET', `/api/chats/${chat}/messages`));
const last = async (chat: number) => (await ok(ann, 'GET', `/api/chats/${chat}`)).last_message;
const unpolled: { offset: number } = { offset: 0 };
/** Returns `count` new updates with messages in the chat. Skips earlier updates. */
async function messages(chat: number, count: number): Promise<Json[]> {
  const found: Json[] = [];
  await expect
    .poll(
      async () => {
        const updates = await resultOf(call('getUpdates', unpolled));
        for (const update of updates) {
          unpolled.offset = update.update_id + 1;
          if (update.message?.chat.id === chat) found.push(update.message);
        }
        return found.length;
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThanOrEqual(count);
  return found;
}
const person = ({ id, first_name, username }: TestUser) => ({ id, is_bot: false, first_name, username });

async function sendPhoto(chat: number, bytes: Buffer | string): Promise<unknown> {
  const form = new FormData();
  form.set('chat_id', String(chat));
  form.set('photo', typeof bytes === 'string' ? bytes : new Blob([new Uint8Array(bytes)]), 'a.png');
  const url = `${service.fronts[0]?.url}/bot${bot.token}/setChatPhoto`;
  return (await fetch(url, { method: 'POST', body: form })).json();
}

test('a new group begins with a service message about its creation', async () => {
  const chat = await service.newGroup(ann, 'Begun');
  expect(await history(chat)).toEqual([
    expect.objectContaining({
      message_id: 1,
      group_chat_created: true,
      from: expect.objectContaining({ id: ann.id }),
    }),
  ]);
  expect(await last(chat)).toMatchObject({ kind: 'group_chat_created', from: { id: ann.id } });
  const channel = await ok(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' });
  expect(await history(channel.id)).toEqual([]);
});

test('service messages name people and bots that joined, were added, left or were removed', async () => {
  const chat = await newGroup();
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${ben.id}`, {});
  await ok(ben, 'POST', `/api/chats/${chat}/leave`);
  const seen = await messages(chat, 3);
  const who = { user: person(ben) };
  expect(seen.slice(-2)).toEqual([
    expect.objectContaining({ from: person(ann), new_chat_members: [who.user] }),
    expect.objectContaining({ from: person(ben), left_chat_member: who.user }),
  ]);
  expect(seen[0]).toMatchObject({ new_chat_members: [{ id: bot.id, is_bot: true }] });
  expect(await last(chat)).toMatchObject({ kind: 'left_chat_member', member: { id: ben.id } });
  const shown = await history(chat);
  expect(shown.map((message: Json) => message.message_id)).toEqual([4, 3, 2, 1]);
});

test('a service message cannot be edited, pinned, forwarded or copied', async () => {
  const chat = await newGroup({ can_change_info: true, can_edit_messages: true, can_pin_messages: true });
  const at = { chat_id: chat, message_id: 1 };
  expect((await call('editMessageText', { ...at, text: 'x' })).body).toEqual(bad("message can't be edited"));
  expect((await call('pinChatMessage', at)).body).toEqual(bad("service messages can't be pinned"));
  const copy = { chat_id: chat, from_chat_id: chat, message_id: 1 };
  expect((await call('copyMessage', copy)).body).toEqual(bad('message to copy not found'));
  expect((await call('forwardMessage', copy)).body).toEqual(bad('message to forward not found'));
});

test('setChatTitle adds a service message if the title changes', async () => {
  const chat = await newGroup();
  expect(await resultOf(call('setChatTitle', { chat_id: chat, title: ' Orchard ' }))).toBe(true);
  expect(await resultOf(call('getChat', { chat_id: chat }))).toMatchObject({ title: 'Orchard' });
  const [newest] = await history(chat);
  expect(newest).toMatchObject({
    new_chat_title: 'Orchard',
    from: { id: bot.id },
    chat: { title: 'Orchard' },
  });
  expect(await last(chat)).toMatchObject({ kind: 'new_chat_title', text: 'Orchard' });
  await resultOf(call('setChatTitle', { chat_id: chat, title: 'Orchard' }));
  expect((await history(chat))[0].message_id).toBe(newest.message_id);
  for (const title of ['', ' ', 'x'.repeat(129)])
    expect((await call('setChatTitle', { chat_id: chat, title })).body).toEqual(bad('title is invalid'));
  expect((await call('setChatTitle', { chat_id: chat })).body).toEqual(bad('parameter "title" is required'));
});

test('setChatDescription adds no service message, and refuses an unchanged description', async () => {
  const chat = await newGroup();
  const before = (await history(chat)).length;
  const set = (description?: string) => call('setChatDescription', { chat_id: chat, description });
  expect(await resultOf(set('Where we plant'))).toBe(true);
  expect(await resultOf(call('getChat', { chat_id: chat }))).toMatchObject({ description: 'Where we plant' });
  expect(await ok(ann, 'GET', `/api/chats/${chat}`)).toMatchObject({ description: 'Where we plant' });
  expect((await set('Where we plant')).body).toEqual(bad('chat description is not modified'));
  expect((await set('x'.repeat(256))).body).toEqual(bad('description is too long'));
  await resultOf(set());
  expect(await resultOf(call('getChat', { chat_id: chat }))).not.toHaveProperty('description');
  expect((await history(chat)).length).toBe(before);
});

test('setChatPhoto sets a photo that bots and people can download', async () => {
  const chat = await newGroup();
  expect(await sendPhoto(chat, picture)).toEqual({ ok: true, result: true });
  const { photo } = await resultOf(call('getChat', { chat_id: chat }));
  const file = await resultOf(call('getFile', { file_id: photo.big_file_id }));
  const loaded = await fetch(`${service.fronts[0]?.url}/file/bot${bot.token}/${file.file_path}`);
  expect(await sharp(await loaded.arrayBuffer()).metadata()).toMatchObject({ width: 512, height: 512 });
  const { avatar } = await ok(ann, 'GET', `/api/chats/${chat}`);
  expect(avatar).toMatchObject({ width: 512, small: { width: 128 } });
  const [newest] = await history(chat);
  expect(newest.new_chat_photo.map(({ width }: { width: number }) => width)).toEqual([128, 512]);
  expect(await resultOf(call('deleteChatPhoto', { chat_id: chat }))).toBe(true);
  expect(await resultOf(call('getChat', { chat_id: chat }))).not.toHaveProperty('photo');
  expect((await history(chat))[0]).toMatchObject({ delete_chat_photo: true });
  expect((await call('deleteChatPhoto', { chat_id: chat })).body).toEqual(bad('CHAT_NOT_MODIFIED'));
  expect((await call('setChatPhoto', { chat_id: chat })).body).toEqual(
    bad('there is no photo in the request'),
  );
  expect((await call('setChatPhoto', { chat_id: chat, photo: photo.big_file_id })).body).toEqual(
    bad('photo must be uploaded as an InputFile'),
  );
  expect(await sendPhoto(chat, readFileSync('package.json'))).toEqual(
    bad('picture must be a PNG, JPEG or WebP image'),
  );
});

test('a replaced or deleted chat photo stays visible in service messages, and still counts towards the uploads of the owner', async () => {
  const chat = await newGroup();
  const stored = async () => (await ok(ann, 'GET', '/api/me/uploads')).bytes;
  const before = await stored();
  await sendPhoto(chat, picture);
  const once = (await stored()) - before;
  expect(once).toBeGreaterThan(0);
  await sendPhoto(chat, picture);
  expect(await stored()).toBe(before + 2 * once);
  await resultOf(call('deleteChatPhoto', { chat_id: chat }));
  const shown = (await history(chat)).flatMap((message: Json) => message.new_chat_photo ?? []);
  expect(shown).toHaveLength(4);
  for (const { file_id, file_size } of shown as unknown as { file_id: string; file_size: number }[]) {
    const { file_path } = await resultOf(call('getFile', { file_id }));
    const loaded = await fetch(`${service.fronts[0]?.url}/file/bot${bot.token}/${file_path}`);
    expect([loaded.status, (await loaded.arrayBuffer()).byteLength]).toEqual([200, file_size]);
  }
});

test('a bot without can_change_info cannot change a group', async () => {
  const chat = await newGroup({ can_pin_messages: true });
  const before = await ok(ann, 'GET', `/api/chats/${chat}`);
  const all = [
    [
      'setChatTitle',
      { title: 'x' },
      'not enough rights to change chat title',
      "can't change private chat title",
    ],
    [
      'setChatDescription',
      { description: 'x' },
      'not enough rights to set chat description',
      "can't change private chat description",
    ],
    ['deleteChatPhoto', {}, 'not enough rights to change chat photo', "can't change private chat photo"],
  ] as const;
  await service.openChat(ann, bot);
  for (const [method, params, shared, direct] of all) {
    expect((await call(method, { chat_id: chat, ...params })).body).toEqual(bad(shared));
    expect((await call(method, { chat_id: ann.id, ...params })).body).toEqual(bad(direct));
  }
  expect(await sendPhoto(chat, picture)).toEqual(bad('not enough rights to change chat photo'));
  expect(await ok(ann, 'GET', `/api/chats/${chat}`)).toEqual(before);
});

test('only members with the right can_change_info can change the title and description of a chat', async () => {
  const chat = await newGroup();
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${ben.id}`, {});
  const path = `/api/chats/${chat}`;
  expect((await app(ben, 'PATCH', path, { title: 'x' })).body).toEqual(
    bad('not enough rights to change chat title'),
  );
  await ok(ann, 'PATCH', path, { title: 'Meadow', description: 'Grass' });
  expect(await ok(ben, 'GET', path)).toMatchObject({ title: 'Meadow', description: 'Grass' });
  expect((await history(chat))[0]).toMatchObject({ new_chat_title: 'Meadow', from: { id: ann.id } });
});
