import { Api, InputFile } from 'grammy';
import { afterAll, expect, test } from 'vitest';
import { diceValues, rollDice } from '../../src/content/dice.js';
import { fileLimits } from '../../src/files/limits.js';
import { systemRandom } from '../../src/random.js';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { mp4, png, wav } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let eviction: Eviction;
let ann: TestUser;
let bot: TestBot;
let api: Api;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  ann = await service.newUser('ann');
  bot = await service.newBot(ann, 'games');
  await service.openChat(ann, bot);
  api = new Api(bot.token, { apiRoot: service.fronts[0]?.url as string });
});
afterAll(async () => {
  await eviction?.close();
});

const call = (method: string, params: object, front = 0) =>
  service.bot(bot, method, { chat_id: ann.id, ...params }, front);
const newest = async () =>
  (await itemsOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=1`)))[0];
const preview = async () => {
  const chats = await itemsOf(service.app(ann, 'GET', '/api/chats'));
  return chats.find(({ id }: { id: number }) => id === bot.id).last_message;
};
const evict = () => eviction.evict(new Set([String(ann.id), String(bot.id)]));
const note = (bytes = mp4(240, 240, 7)) => new InputFile(bytes, 'n.mp4');

test.each(Object.entries(diceValues))('%s has all values from 1 to %i and no other', (emoji, max) => {
  const drawn = new Set(
    Array.from({ length: 60 * max }, () => rollDice(systemRandom, emoji as keyof typeof diceValues).value),
  );
  expect([...drawn].sort((a, b) => a - b)).toEqual(Array.from({ length: max }, (_, i) => i + 1));
});

test('people and the bot see the same value of a die that grammY sends', async () => {
  for (const emoji of Object.keys(diceValues) as Array<keyof typeof diceValues>) {
    const { dice, message_id } = await api.sendDice(ann.id, emoji);
    expect(dice).toEqual({ emoji, value: expect.any(Number) });
    expect(await newest()).toMatchObject({ message_id, dice });
    expect(await preview()).toMatchObject({ kind: 'dice', file_name: `${emoji} ${dice.value}` });
  }
  expect((await resultOf(call('sendDice', {}))).dice.emoji).toBe('🎲');
  expect((await resultOf(call('sendDice', { emoji: '⚽\ufe0f' }))).dice.emoji).toBe('⚽');
});

test('a die has no text and no caption, and only its keyboard can be edited', async () => {
  const reply_markup = { inline_keyboard: [[{ text: 'Again', callback_data: 'a' }]] };
  const { message_id, dice } = await resultOf(call('sendDice', { reply_markup }));
  const edits = [
    ['editMessageText', { text: 'x' }, 'there is no text in the message to edit'],
    ['editMessageCaption', { caption: 'x' }, 'there is no caption in the message to edit'],
  ] as const;
  for (const [method, given, text] of edits) {
    const { status, body } = await call(method, { message_id, ...given });
    expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
  }
  const edited = await resultOf(call('editMessageReplyMarkup', { message_id }));
  expect(edited.dice).toEqual(dice);
  expect(edited).not.toHaveProperty('reply_markup');
});

test('a forwarded die keeps its value, but a copied die gets a new value', async () => {
  const { message_id, dice } = await resultOf(call('sendDice', { emoji: '🎰' }));
  const source = { from_chat_id: ann.id, message_id };
  expect((await resultOf(call('forwardMessage', source, 1))).dice).toEqual(dice);
  const values = new Set<number>();
  for (let i = 0; i < 8; i++) {
    const copied = await resultOf(call('copyMessage', { ...source, caption: 'ignored' }));
    const copy = await newest();
    expect(copy).toMatchObject({ message_id: copied.message_id, dice: { emoji: '🎰' } });
    expect(copy).not.toHaveProperty('caption');
    values.add(copy.dice.value);
  }
  // Eight equal rolls of a die with 64 values happen only once in 10^12 test runs.
  expect(values.size).toBeGreaterThan(1);
});

test('a call that is repeated with its idempotency key returns the stored value', async () => {
  const send = async (front: number) => {
    const answer = await fetch(`${service.fronts[front]?.url}/bot${bot.token}/sendDice`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'one die' },
      body: JSON.stringify({ chat_id: ann.id, emoji: '🎰' }),
    });
    return ((await answer.json()) as { result: { message_id: number; dice: object } }).result;
  };
  const first = await send(0);
  expect(await send(1)).toEqual(first);
  expect(await newest()).toMatchObject({ message_id: first.message_id, dice: first.dice });
});

test('an evicted die is read back from Postgres', async () => {
  const { message_id, dice } = await resultOf(call('sendDice', {}));
  await evict();
  expect(await newest()).toMatchObject({ message_id, dice });
});

test.each(['x', '👍', '🎲🎲', 5])('sendDice refuses the emoji %j', async (emoji) => {
  const before = await newest();
  const { status, body } = await call('sendDice', { emoji });
  const text = emoji === 5 ? 'parameter "emoji" must be a string' : 'EMOTICON_INVALID';
  expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
  expect(await newest()).toEqual(before);
});

test('a video note uploaded by grammY can be sent again by its file_id', async () => {
  const thumbnail = new InputFile(png(64, 64), 't.png');
  const sent = await api.sendVideoNote(ann.id, note(), { thumbnail, length: 100 });
  const size = mp4(240, 240, 7).length;
  expect(sent.video_note).toEqual({
    ...{ file_id: expect.any(String), file_unique_id: expect.any(String), file_size: size },
    ...{ length: 240, duration: 7 },
    thumbnail: expect.objectContaining({ width: 64, height: 64 }),
  });
  expect(sent).not.toHaveProperty('caption');
  expect(await newest()).toMatchObject({ message_id: sent.message_id, video_note: sent.video_note });
  expect(await preview()).toMatchObject({ kind: 'video_note' });
  const { file_id } = sent.video_note;
  expect((await api.sendVideoNote(ann.id, file_id)).video_note).toEqual(sent.video_note);
  const { file_path } = await api.getFile(file_id);
  const answer = await fetch(`${service.fronts[1]?.url}/file/bot${bot.token}/${file_path}`);
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(mp4(240, 240, 7));
});

test('a copied video note has no caption', async () => {
  const { message_id, video_note } = await api.sendVideoNote(ann.id, note());
  await resultOf(call('copyMessage', { from_chat_id: ann.id, message_id, caption: 'ignored' }));
  const copy = await newest();
  expect(copy.video_note).toEqual(video_note);
  expect(copy).not.toHaveProperty('caption');
  const forwarded = await resultOf(call('forwardMessage', { from_chat_id: ann.id, message_id }));
  expect(forwarded).toMatchObject({ video_note, forward_origin: { type: 'user' } });
  const media = { type: 'photo', media: 'https://example.org/a.png' };
  const edits = [
    ['editMessageText', { text: 'x' }, 'there is no text in the message to edit'],
    ['editMessageCaption', { caption: 'x' }, 'there is no caption in the message to edit'],
    ['editMessageMedia', { media }, "message media can't be edited"],
  ] as const;
  for (const [method, given, text] of edits) {
    const { status, body } = await call(method, { message_id, ...given });
    expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
  }
  await evict();
  expect(await newest()).toMatchObject({ message_id: forwarded.message_id, video_note });
});

test('a member without the permission to send video notes cannot send one', async () => {
  const group = await service.newGroup(ann, 'Quiet', [bot]);
  const { video_note } = await api.sendVideoNote(ann.id, note());
  const permissions = { can_send_messages: true, can_send_videos: true };
  const set = service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, { status: 'member' });
  await resultOf(set);
  const admin = await service.newBot(ann, 'guard');
  const rights = { status: 'administrator', rights: { can_restrict_members: true } };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${admin.id}`, rights));
  await resultOf(
    service.bot(admin, 'restrictChatMember', {
      ...{ chat_id: group, user_id: bot.id, permissions, use_independent_chat_permissions: true },
    }),
  );
  const { body } = await call('sendVideoNote', { chat_id: group, video_note: video_note.file_id });
  expect(body.description).toBe('Bad Request: not enough rights to send video notes to the chat');
});

const notSquare = 'video note must be a square video with sides of up to 640 pixels';

test.each([
  ['is not square', mp4(240, 180, 1), notSquare],
  ['is larger than 640 pixels', mp4(642, 642, 1), notSquare],
  ['is not a video', wav(1), notSquare],
  ['is a text', Buffer.from('hello'), notSquare],
  ['is over 12 MiB', Buffer.alloc(fileLimits.video_note_bytes_max + 1), 'file is too big'],
  ['is empty', Buffer.alloc(0), 'file must be non-empty'],
])('a video note that %s is refused', async (_, bytes, text) => {
  const before = await newest();
  const sent = api.sendVideoNote(ann.id, note(bytes));
  await expect(sent).rejects.toMatchObject({ error_code: 400, description: `Bad Request: ${text}` });
  expect(await newest()).toEqual(before);
});

test.each([
  [{}, 'parameter "video_note" is required'],
  [{ video_note: 'https://example.org/n.mp4' }, 'wrong file identifier/HTTP URL specified'],
  [{ video_note: 'attach://gone' }, 'wrong file identifier/HTTP URL specified'],
])('sendVideoNote refuses %j', async (params, text) => {
  const { status, body } = await call('sendVideoNote', params);
  expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
});

test('a photo cannot be sent as a video note', async () => {
  const { photo } = await api.sendPhoto(ann.id, 'https://example.org/p.png');
  const { body } = await call('sendVideoNote', { video_note: photo[0]?.file_id });
  expect(body.description).toBe("Bad Request: can't use file of type Photo as VideoNote");
});
